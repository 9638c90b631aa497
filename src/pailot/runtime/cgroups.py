"""Limits of memory and processor time for one task, where this process may make control groups (versions 1 and 2).

Where it may not, there are no limits and `why_not` says why; nothing here raises on such a machine.
"""

from __future__ import annotations

import errno
import os
import time

from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_PERIOD = 100_000  # microseconds, the kernel's own default
_LEAST_QUOTA = 1_000  # the kernel refuses less
_PREFIX = "pailot-"
_known: tuple[Limits | None, str] | None = None


def available() -> Limits | None:
    """What limits this process can set, or None. Found out once, by trying."""
    return _probe()[0]


def why_not() -> str:
    """Why limits are not, or not all, enforced; empty if they are."""
    return _probe()[1]


class Cgroup(Value):
    """The control groups of one task. All there is to know are its folders: another process can take over from a record."""

    folders: tuple[str, ...]
    problem: str = ""
    """What could not be limited and why."""
    origins: tuple[str, ...] = ()
    """The groups that this process was in before, in the same order."""

    @property
    def enter_paths(self) -> tuple[str, ...]:
        """Files into which a process writes "0" to enter."""
        return tuple(os.path.join(folder, "cgroup.procs") for folder in self.folders)

    def enter(self) -> None:
        """Go in: what this process starts from now on is in there, too."""
        for folder in self.folders:
            _must_write(folder, "cgroup.procs", "0")

    def leave(self) -> None:
        """Go back to where we were, so that the limits and their kills are the task's alone."""
        for folder in self.origins:
            _must_write(folder, "cgroup.procs", "0")

    def oom_killed(self) -> bool:
        """Whether the kernel has killed a process of the task because the task used more memory than it may."""
        return any(_counter(os.path.join(folder, name)) > 0 for folder in self.folders for name in _OOM_FILES)

    def kill(self) -> None:
        """Kill all that is in there, as far as that is possible; what is forked meanwhile too."""
        for folder in self.folders:
            _write(os.path.join(folder, "cgroup.kill"), "1")  # version 2, Linux 5.14 and later: all at once
        killed = {os.getpid()}
        # What was forked while we read is found in the next round. The bound is for what forks faster than we kill.
        for _ in range(100):
            new = {pid for folder in self.folders for pid in _processes(folder)} - killed
            if not new:
                return
            for pid in new:
                _kill(pid)
            killed |= new

    def remove(self) -> None:
        """Take the groups away. A group is busy until its last process has been reaped; after a second we let it be."""
        deadline = time.monotonic() + 1
        pause = 0.001
        left = list(self.folders)
        while True:
            left = [folder for folder in left if not _remove(folder)]
            if not left or time.monotonic() >= deadline:
                return
            time.sleep(pause)
            pause = min(pause * 2, 0.05)


def folders_of(pid: int) -> list[str]:
    """The groups of another process, a container's for instance; none that it shares with us, or that hold the whole machine."""
    theirs, ours = (_own_groups(_read(f"/proc/{each}/cgroup")) for each in (pid, "self"))
    found = []
    for mounted_root, mount_point, kind, options in _mounts(_read("/proc/self/mountinfo")):
        for controller in ("",) if kind == "cgroup2" else ("memory", "cpu", "cpuacct", "pids"):
            path = theirs.get(controller, "/")
            if (kind == "cgroup2" or controller in options) and path not in ("/", ours.get(controller)):
                found.append(_below(mounted_root, mount_point, path))
    return [folder for folder in dict.fromkeys(found) if folder and os.path.isdir(folder)]


def clean_up(folders: Sequence[str]) -> None:
    """After a shim that was killed: end what is left in its groups, and remove them."""
    group = Cgroup(tuple(folders))
    group.kill()
    group.remove()


class Limits(Value):
    """Where control groups can be made. A field is the folder to make them in, or empty."""

    memory: str = ""
    cpu: str = ""
    unified: str = ""
    """Version 2, whether it has controllers or, beside version 1, serves only to kill."""
    own_unified: str = ""
    """Our own group of version 2, where that is another than the one in which groups can be made."""

    def create(self, name: str, memory_mb: int, cpus: float) -> Cgroup:
        """Groups for a task, with a limit for what is above zero. What cannot be limited is named in the answer's `problem`."""
        made: dict[str, str] = {}  # where, and the new group there
        problems = []
        wanted = ((self.memory, _limit_memory, memory_mb * 2.0**20, "memory"), (self.cpu, _limit_cpu, cpus, "cpu"))
        for parent, limit, amount, what in wanted:
            if amount <= 0:
                continue
            if not parent:
                problems.append(f"{what} is not limited: {why_not() or 'no control group'}")
                continue
            try:
                if parent not in made:
                    made[parent] = _make(parent, name)
                limit(made[parent], amount)
            except OSError as error:
                problems.append(f"{what} is not limited: {error.strerror} ({error.filename})")
        if self.unified and not made:  # entering a group costs milliseconds; one more only to kill is not worth it
            try:
                made[self.unified] = _make(self.unified, name)
            except OSError:
                pass  # it would only have helped to kill
        origins = tuple(self.own_unified or parent if parent == self.unified else parent for parent in made)
        return Cgroup(tuple(made.values()), "; ".join(problems), origins)


_OOM_FILES = ("memory.events", "memory.oom_control")


def _limit_memory(folder: str, amount: float) -> None:
    size = int(amount)
    if os.path.exists(os.path.join(folder, "memory.max")):
        _must_write(folder, "memory.max", str(size))
        _write(os.path.join(folder, "memory.swap.max"), "0")  # absent without swap
    else:
        _must_write(folder, "memory.limit_in_bytes", str(size))
        _write(os.path.join(folder, "memory.memsw.limit_in_bytes"), str(size))  # memory and swap together; not in every kernel


def _limit_cpu(folder: str, amount: float) -> None:
    quota = max(int(amount * _PERIOD), _LEAST_QUOTA)
    if os.path.exists(os.path.join(folder, "cpu.max")):
        _must_write(folder, "cpu.max", f"{quota} {_PERIOD}")
        return
    try:
        _must_write(folder, "cpu.cfs_period_us", str(_PERIOD))
        _must_write(folder, "cpu.cfs_quota_us", str(quota))
    except OSError as error:
        if error.errno != errno.EINVAL:  # we are ourselves given less than that, which holds for the task as well
            raise


def _make(parent: str, name: str) -> str:
    """A new group. One of that name that an earlier attempt could not remove is left alone: its counters are not ours."""
    base = os.path.join(parent, _PREFIX + name.replace("/", "-").replace("\n", "-")[:200])
    number = 0
    while True:
        folder = f"{base}-{number}" if number else base
        try:
            os.mkdir(folder)
            return folder
        except FileExistsError:
            number += 1


def _remove(folder: str) -> bool:
    """Whether the group, with those that the task may have made in it, is gone."""
    try:
        os.rmdir(folder)
        return True
    except FileNotFoundError:
        return True
    except OSError:
        pass
    try:
        with os.scandir(folder) as entries:
            inner = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        for path in inner:
            _remove(path)
        if inner:
            os.rmdir(folder)
            return True
    except OSError:
        pass  # still busy
    return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, 9)
    except OSError:
        pass  # gone by itself, or not ours


def _processes(folder: str) -> list[int]:
    """The process ids in a group and in those below it."""
    found = []
    for path, _, _ in os.walk(folder):
        found += [int(word) for word in _read(os.path.join(path, "cgroup.procs")).split()]
    return [pid for pid in found if pid > 0]  # 0 is a process outside our own namespace


def _counter(path: str) -> int:
    """How often the kernel killed, of the file of either version."""
    for line in _read(path).splitlines():
        key, _, value = line.partition(" ")
        if key == "oom_kill" and value.isdecimal():
            return int(value)
    return 0


# What there is on this machine


def _probe() -> tuple[Limits | None, str]:
    global _known  # noqa: PLW0603  # found out once
    if _known is None:
        _known = _detect("/proc/self")
    return _known


def _detect(proc: str) -> tuple[Limits | None, str]:
    """Where groups with a memory and a cpu controller can be made, and what is missing."""
    ours = _own_groups(_read(os.path.join(proc, "cgroup")))
    found: dict[str, str] = {}
    reasons: list[str] = []
    for mounted_root, mount_point, kind, options in _mounts(_read(os.path.join(proc, "mountinfo"))):
        if kind == "cgroup2":
            folder = _below(mounted_root, mount_point, ours.get("", ""))
            if folder:
                for controller, parent in _try_unified(folder, mount_point, reasons).items():
                    found.setdefault(controller, parent)
                if found.get("unified", folder) != folder:
                    found["own_unified"] = folder
            continue
        for controller, file in (("memory", "memory.limit_in_bytes"), ("cpu", "cpu.cfs_quota_us")):
            if controller in options:
                folder = _below(mounted_root, mount_point, ours.get(controller, ""))
                if folder and _try(folder, file, reasons) and _may_return(folder, reasons):
                    found[controller] = folder
    missing = [controller for controller in ("memory", "cpu") if controller not in found]
    if not missing:
        return Limits(**found), ""
    why = "; ".join(dict.fromkeys(reasons)) or "this machine has no control groups for " + " and ".join(missing)
    return (Limits(**found) if len(missing) == 1 else None), why


def _try_unified(folder: str, top: str, reasons: list[str]) -> dict[str, str]:
    """Version 2. A group with processes in it cannot have groups with controllers below it, so ours mostly cannot: then
    groups are made beside ours, unless that would let the task out of limits that we are under ourselves.
    """
    best: dict[str, str] = {}
    if not _may_return(folder, reasons):
        return best
    parents = [folder]
    if folder != top and _unlimited(folder, "memory.max") and _unlimited(folder, "cpu.max"):
        parents.append(os.path.dirname(folder))
    for parent in parents:
        # To move a process takes the right to write to the group above both places.
        if not os.access(os.path.join(parent, "cgroup.procs"), os.W_OK):
            reasons.append(f"no permission to move processes below {parent}")
            continue
        if not _try(parent, "cgroup.procs", reasons):
            continue
        # A process is in one group of version 2 only, so all that is used must be in the same place.
        here = {"unified": parent}
        offered = _read(os.path.join(parent, "cgroup.controllers")).split()
        for controller, file in (("memory", "memory.max"), ("cpu", "cpu.max")):
            if controller in offered:
                if controller not in _read(os.path.join(parent, "cgroup.subtree_control")).split():
                    _write(os.path.join(parent, "cgroup.subtree_control"), "+" + controller)
                if _try(parent, file, reasons):
                    here[controller] = parent
        if len(here) > len(best):
            best = here
    return best


def _may_return(folder: str, reasons: list[str]) -> bool:
    """Whether a process of ours that has left our own group may come back."""
    allowed = os.access(os.path.join(folder, "cgroup.procs"), os.W_OK)
    if not allowed:
        reasons.append(f"no permission to move processes below {folder}")
    return allowed


def _unlimited(folder: str, file: str) -> bool:
    return _read(os.path.join(folder, file)).split()[:1] in ([], ["max"])


def _try(parent: str, file: str, reasons: list[str]) -> bool:
    """Whether a group can be made here that has this file."""
    folder = os.path.join(parent, f"{_PREFIX}probe-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        os.mkdir(folder)
    except OSError as error:
        reasons.append(f"cannot make a control group in {parent}: {error.strerror}")
        return False
    try:
        there = os.path.exists(os.path.join(folder, file))
        if not there:
            reasons.append(f"a control group in {parent} has no {file}")
        return there
    finally:
        _remove(folder)


def _own_groups(text: str) -> dict[str, str]:
    """Our group by controller, in /proc/self/cgroup; version 2 by the empty name."""
    groups = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            groups[controller] = path
    return groups


def _mounts(text: str) -> list[tuple[str, str, str, list[str]]]:
    """Root, mount point, type and options of the mounted control groups in /proc/self/mountinfo."""
    found = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(" "), right.split(" ")
        if len(fields) >= 6 and len(kinds) >= 3 and kinds[0] in ("cgroup", "cgroup2"):
            found.append((_unescape(fields[3]), _unescape(fields[4]), kinds[0], kinds[2].split(",")))
    return found


def _unescape(path: str) -> str:
    for char in " \t\n\\":
        path = path.replace(f"\\{ord(char):03o}", char)
    return path


def _below(root: str, mount_point: str, path: str) -> str:
    """The folder of our group: in a container only a part of the tree may be mounted, and ours may not be in it."""
    if not path.startswith("/") or "/.." in path:
        return ""
    root = root.rstrip("/")
    if path != root and not path.startswith(root + "/"):
        return ""
    return os.path.normpath(mount_point + "/" + path[len(root) :])


def _read(path: str) -> str:
    """All of a small file of the kernel, without the layers that `open` would put above it; nothing if it is not there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    pieces = []
    try:
        while True:
            pieces.append(os.read(descriptor, 1 << 16))
            if not pieces[-1]:
                break
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return b"".join(pieces).decode("utf-8", "surrogateescape")


def _write(path: str, text: str) -> bool:
    try:
        _must_write(*os.path.split(path), text)
        return True
    except OSError:
        return False


def _must_write(folder: str, name: str, text: str) -> None:
    path = os.path.join(folder, name)
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)  # never creates: a control file is there or is not
    try:
        os.write(descriptor, text.encode("ascii"))
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(descriptor)
