"""What is made of a machine's control groups, on machines that are files here; real ones are in tests/integration."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest

from pailot.runtime import cgroups
from pailot.runtime.cgroups import Cgroup, Limits

V1 = {"memory": ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"], "cpu": ["cpu.cfs_period_us", "cpu.cfs_quota_us"]}
V2 = {"memory": ["memory.max", "memory.swap.max"], "cpu": ["cpu.max"]}


class Machine:
    """A tree of folders in which a new folder gets the files that the kernel would put there."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.proc = root / "proc"
        self.proc.mkdir()
        (self.proc / "cgroup").touch()
        (self.proc / "mountinfo").write_text("22 1 0:5 / / rw - ext4 /dev/vda rw\n")
        self.refused: dict[str, int] = {}
        self.with_processes = ""
        self.mkdir, self.rmdir, self.write = os.mkdir, os.rmdir, cgroups._must_write
        monkeypatch.setattr(cgroups, "_must_write", self.control)
        monkeypatch.setattr(os, "mkdir", self.make)
        monkeypatch.setattr(os, "rmdir", self.remove)

    def mount(self, name: str, kind: str, options: str, path: str, own: str, mounted: str = "/") -> Path:
        """Mount a hierarchy and put us into one of its groups; answers that group's folder."""
        top = self.root / name
        self.mkdir(top)
        controllers = options.split(",") if kind == "cgroup" else []
        with (self.proc / "cgroup").open("a") as stream:
            stream.write(f"7:{','.join(controllers)}:{path}\n")
        with (self.proc / "mountinfo").open("a") as stream:
            where = str(top).replace(" ", "\\040")
            stream.write(f"31 22 0:29 {mounted} {where} rw shared:9 - {kind} {kind} rw,{options}\n")
        folder = top / own
        folder.mkdir(parents=True, exist_ok=True)
        for each in {top, folder}:
            for file in ("cgroup.procs", "cgroup.kill"):
                (each / file).touch()
            if kind == "cgroup2":
                (each / "cgroup.controllers").write_text(options.replace(",", " "))
                (each / "cgroup.subtree_control").touch()
        return folder

    def make(self, path: str, mode: int = 0o777) -> None:
        parent = os.path.dirname(path)
        for refused, number in self.refused.items():
            if parent == refused:
                raise OSError(number, os.strerror(number), path)
        self.mkdir(path, mode)
        files = ["cgroup.procs"]
        control = Path(parent, "cgroup.subtree_control")
        if control.exists():
            files += ["cgroup.kill"]
            for controller in control.read_text().split():
                files += V2.get(controller, [])
        else:
            for controller, names in V1.items():
                files += names if controller in parent else []
        for file in files:
            Path(path, file).touch()

    def control(self, folder: str, name: str, text: str) -> None:
        if name != "cgroup.subtree_control":
            self.write(folder, name, text)
        elif folder == self.with_processes:
            raise OSError(errno.EBUSY, "busy")
        else:
            path = Path(folder, name)
            path.write_text(path.read_text() + text.replace("+", " "))

    def remove(self, path: str) -> None:
        entries = list(Path(path).iterdir())
        if any(entry.is_dir() for entry in entries):
            raise OSError(errno.EBUSY, "busy", path)
        for entry in entries:
            entry.unlink()
        self.rmdir(path)

    def detect(self) -> tuple[Limits | None, str]:
        before = sorted(self.root.rglob("*"))
        found = cgroups._detect(str(self.proc))
        assert sorted(self.root.rglob("*")) == before, "the probe left something behind"
        return found


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    root = tmp_path / "a machine"
    root.mkdir()
    return Machine(root, monkeypatch)


def test_version_1_beside_an_empty_version_2(machine: Machine) -> None:
    memory = machine.mount("memory", "cgroup", "memory", "/user/1", "user/1")
    cpu = machine.mount("cpu,cpuacct", "cgroup", "cpu,cpuacct", "/", ".")
    unified = machine.mount("unified", "cgroup2", "hugetlb", "/", ".")
    limits, why = machine.detect()
    assert (limits, why) == (Limits(str(memory), str(cpu), str(unified)), "")
    assert limits
    group = limits.create("job/1", 64, 1.5)
    assert [os.path.basename(folder) for folder in group.folders] == ["pailot-job-1"] * 2
    assert (memory / "pailot-job-1/memory.limit_in_bytes").read_text() == "67108864"
    assert (memory / "pailot-job-1/memory.memsw.limit_in_bytes").read_text() == "67108864"
    assert (cpu / "pailot-job-1/cpu.cfs_quota_us").read_text() == "150000"
    assert group.problem == ""
    assert group.enter_paths == tuple(f"{folder}/cgroup.procs" for folder in group.folders)
    again = limits.create("job/1", 0, 0)
    assert again.folders == (f"{unified}/pailot-job-1",)
    again.kill()
    assert (unified / "pailot-job-1/cgroup.kill").read_text() == "1"
    for each in (group, again):
        each.remove()
        each.remove()
        each.kill()
        assert not each.oom_killed()
    assert not list(machine.root.rglob("pailot-*"))


def test_version_2_below_our_own_group(machine: Machine) -> None:
    top = machine.mount("unified", "cgroup2", "cpuset,cpu,memory", "/", ".")
    limits, why = machine.detect()
    assert (limits, why) == (Limits(str(top), str(top), str(top)), "")
    assert limits
    group = limits.create("job", 1, 0.001)
    assert group.folders == (f"{top}/pailot-job",)
    assert (top / "pailot-job/memory.max").read_text() == "1048576"
    assert (top / "pailot-job/memory.swap.max").read_text() == "0"
    assert (top / "pailot-job/cpu.max").read_text() == "1000 100000"


@pytest.mark.parametrize("limit", ["max", "1000000"])
def test_version_2_beside_our_own_group_unless_that_is_limited(machine: Machine, limit: str) -> None:
    ours = machine.mount("unified", "cgroup2", "cpu,memory", "/app.slice/ours", "app.slice/ours")
    parent = ours.parent
    (parent / "cgroup.procs").touch()
    (parent / "cgroup.controllers").write_text("cpu memory")
    (parent / "cgroup.subtree_control").write_text("cpu memory")
    (ours / "memory.max").write_text(f"{limit}\n")
    (ours / "cpu.max").write_text("max 100000\n")
    machine.with_processes = str(ours)
    limits, why = machine.detect()
    if limit == "max":
        assert (limits, why) == (Limits(str(parent), str(parent), str(parent), str(ours)), "")
        assert limits
        assert limits.create("job", 64, 1).origins == (str(ours),)
    else:
        assert limits is None
        assert why == f"a control group in {ours} has no memory.max; a control group in {ours} has no cpu.max"


def test_part_of_the_tree_in_a_container(machine: Machine) -> None:
    memory = machine.mount("memory", "cgroup", "memory", "/docker/abc", ".", mounted="/docker/abc")
    cpu = machine.mount("cpu", "cgroup", "cpu", "/docker/abc/inner", "inner", mounted="/docker/abc")
    assert machine.detect() == (Limits(str(memory), str(cpu)), "")


@pytest.mark.parametrize("mounted", ["/docker/other", "/.."])
def test_a_tree_that_we_are_not_in(machine: Machine, mounted: str) -> None:
    machine.mount("memory", "cgroup", "memory", "/docker/abc", ".", mounted=mounted)
    assert machine.detect() == (None, "this machine has no control groups for memory and cpu")


def test_a_group_outside_our_namespace(machine: Machine) -> None:
    machine.mount("memory", "cgroup", "memory", "/../..", ".")
    assert machine.detect()[0] is None


def test_folders_that_may_not_be_written(machine: Machine) -> None:
    memory = machine.mount("memory", "cgroup", "memory", "/", ".")
    cpu = machine.mount("cpu", "cgroup", "cpu", "/", ".")
    machine.refused[str(memory)] = errno.EACCES
    limits, why = machine.detect()
    assert limits == Limits(cpu=str(cpu))
    assert why == f"cannot make a control group in {memory}: Permission denied"
    machine.refused[str(cpu)] = errno.EROFS
    limits, why = machine.detect()
    assert limits is None
    assert "Read-only file system" in why


def test_version_2_that_only_root_may_use(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    top = machine.mount("unified", "cgroup2", "cpu,memory", "/", ".")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert machine.detect() == (None, f"no permission to move processes below {top}")


@pytest.mark.parametrize("text", ["", "nonsense\n", "1 2\n - \n", "1 2 3 4 5 6 - cgroup\n", "::\n"])
def test_a_machine_without_control_groups(tmp_path: Path, text: str) -> None:
    reason = "this machine has no control groups for memory and cpu"
    assert cgroups._detect(str(tmp_path)) == (None, reason)
    (tmp_path / "cgroup").write_text(text)
    (tmp_path / "mountinfo").write_text(text)
    assert cgroups._detect(str(tmp_path)) == (None, reason)


def test_the_machine_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def detect(proc: str) -> tuple[None, str]:
        calls.append(proc)
        return None, "because"

    monkeypatch.setattr(cgroups, "_known", None)
    monkeypatch.setattr(cgroups, "_detect", detect)
    assert cgroups.available() is None
    assert cgroups.why_not() == "because"
    assert calls == ["/proc/self"]


def test_what_cannot_be_limited_is_said(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "_known", (None, "it is so"))
    cpu = machine.mount("cpu", "cgroup", "cpu", "/", ".")
    machine.refused[str(cpu)] = errno.ENOSPC
    group = Limits(cpu=str(cpu), unified=str(cpu)).create("job", 64, 1)
    assert group.folders == ()
    assert group.problem == f"memory is not limited: it is so; cpu is not limited: No space left on device ({cpu}/pailot-job)"
    assert not group.oom_killed()
    group.kill()
    group.remove()


@pytest.mark.parametrize(("number", "problem"), [(errno.EINVAL, ""), (errno.EIO, "cpu is not limited: refused")])
def test_less_than_asked_for_is_a_limit_as_well(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, number: int, problem: str
) -> None:
    cpu = machine.mount("cpu", "cgroup", "cpu", "/", ".")

    def refuse(*_: Any) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr(os, "write", refuse)
    assert Limits(cpu=str(cpu)).create("job", 0, 64).problem.startswith(problem)
    assert bool(Limits(cpu=str(cpu)).create("job", 0, 64).problem) == bool(problem)


@pytest.mark.parametrize(
    ("file", "text", "killed"),
    [
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", True),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", False),
        ("memory.oom_control", "oom_kill_disable 1\nunder_oom 1\n", False),
        ("memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\noom_group_kill 0\n", True),
        ("memory.events", "low 0\nhigh 0\nmax 9\noom 0\noom_kill 0\n", False),
        ("memory.events", "oom_kill many\n", False),
    ],
)
def test_a_memory_kill_is_read_from_either_version(tmp_path: Path, file: str, text: str, killed: bool) -> None:
    (tmp_path / file).write_text(text)
    assert Cgroup((str(tmp_path / "none"), str(tmp_path))).oom_killed() is killed


def test_a_busy_group_is_given_up_after_a_while(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    tries = []

    def busy(path: str) -> None:
        tries.append(path)
        raise OSError(errno.EBUSY, "busy", path)

    monkeypatch.setattr(os, "rmdir", busy)
    Cgroup((str(machine.root),)).remove()
    assert 1 <= now[0] < 1.1
    assert len(tries) > 10


def test_groups_that_the_task_has_made_are_removed_too(machine: Machine) -> None:
    cpu = machine.mount("cpu", "cgroup", "cpu", "/", ".")
    group = Limits(cpu=str(cpu)).create("job", 0, 1)
    (Path(group.folders[0]) / "a" / "b").mkdir(parents=True)
    group.remove()
    assert not list(cpu.glob("pailot-*"))


def test_all_in_a_group_are_killed_and_we_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    procs = tmp_path / "cgroup.procs"
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/cgroup.procs").write_text("0\n7\n")
    procs.write_text(f"5\n{os.getpid()}\n")

    def kill(pid: int, number: int) -> None:
        assert number == 9
        killed.append(pid)
        if pid == 5:  # it has forked meanwhile
            procs.write_text("6\n")
        if pid == 6:
            raise ProcessLookupError

    monkeypatch.setattr(os, "kill", kill)
    Cgroup((str(tmp_path),)).kill()
    assert sorted(killed) == [5, 6, 7]
