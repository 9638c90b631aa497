"""Control groups of this machine: limits that hold, kills that are seen, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from pailot.runtime import cgroups
from pailot.runtime.cgroups import Cgroup, Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ENTER = """
import os, sys
for path in sys.argv[2:]:
    with open(path, "w") as stream:
        stream.write("0")
exec(sys.argv[1])
"""
WAIT = "print(flush=True)\nimport signal\nsignal.pause()"


@pytest.fixture(scope="module")
def limits() -> Limits:
    found = cgroups.available()
    if not found or not found.memory or not found.cpu:
        pytest.skip(cgroups.why_not())
    return found


@pytest.fixture
def groups(limits: Limits) -> Iterator[list[Cgroup]]:
    made: list[Cgroup] = []
    yield made
    for group in made:
        group.kill()
        group.remove()
        assert not [folder for folder in group.folders if os.path.exists(folder)]


def start(group: Cgroup, code: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-I", "-S", "-c", ENTER, code, *group.enter_paths]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_task_above_its_memory_is_killed_and_that_is_seen(limits: Limits, groups: list[Cgroup]) -> None:
    group = limits.create(f"test-memory-{os.getpid()}", 64, 0)
    groups.append(group)
    assert group.problem == ""
    task = start(group, "block = bytearray(200 << 20)\nblock[::4096] = b'x' * len(block[::4096])")
    task.communicate()
    assert task.returncode == -9
    assert group.oom_killed()


def test_a_task_within_its_memory_is_not(limits: Limits, groups: list[Cgroup]) -> None:
    group = limits.create(f"test-memory-{os.getpid()}", 64, 1)
    groups.append(group)
    task = start(group, "block = bytearray(16 << 20)\nprint(len(block), open('/proc/self/cgroup').read())")
    out, err = task.communicate()
    assert (task.returncode, err) == (0, "")
    assert out.count(os.path.basename(group.folders[0])) == len(group.folders)
    assert not group.oom_killed()


def test_processor_time_is_limited(limits: Limits, groups: list[Cgroup]) -> None:
    group = limits.create(f"test-cpu-{os.getpid()}", 0, 0.2)
    groups.append(group)
    # 0.2 s of work take at least 0.8 s, however much else the machine has to do.
    code = (
        "import time\nbegan, used = time.monotonic(), time.process_time()\n"
        "while time.process_time() - used < 0.2: pass\nprint(time.monotonic() - began)"
    )
    task = start(group, code)
    out, _ = task.communicate()
    assert float(out) > 0.6


def test_all_that_a_task_has_started_is_killed(limits: Limits, groups: list[Cgroup]) -> None:
    group = limits.create(f"test-kill-{os.getpid()}", 64, 1)
    groups.append(group)
    # A daemon: a session of its own, and its parent gone. The pipe is closed when the last of them is dead.
    daemon = "if not os.fork():\n  os.setsid()\n  if os.fork(): os._exit(0)\n"
    task = start(group, daemon + WAIT)
    assert task.stdout
    assert (task.stdout.readline(), task.stdout.readline()) == ("\n", "\n")
    group.kill()
    task.communicate()
    assert task.returncode == -9
    assert not group.oom_killed()


def test_without_version_2_a_task_is_killed_as_well(limits: Limits, groups: list[Cgroup]) -> None:
    group = limits.create(f"test-kill-{os.getpid()}", 64, 0)
    groups.append(group)
    task = start(group, WAIT)
    assert task.stdout
    task.stdout.readline()
    Cgroup(group.folders[:1]).kill()
    task.communicate()
    assert task.returncode == -9


def test_a_group_in_use_is_left_alone(limits: Limits, groups: list[Cgroup]) -> None:
    group = limits.create(f"test-busy-{os.getpid()}", 64, 0)
    groups.append(group)
    task = start(group, WAIT)
    assert task.stdout
    task.stdout.readline()
    began = time.monotonic()
    group.remove()
    assert time.monotonic() - began >= 1
    assert os.path.exists(group.folders[0])
    group.kill()
    task.communicate()


def test_without_permission_it_says_so() -> None:
    if os.geteuid():
        pytest.skip("only root can become somebody else")
    code = (
        "import os\n"
        "from pailot.runtime import cgroups\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "print(cgroups.available(), cgroups.why_not() != '')"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "None True\n"
