"""Slurm's own programs, and how their output is read: fixed text formats, the same in all releases we know."""

from __future__ import annotations

import os
import re
import signal

from ...values import Value
from ..contract import EngineError, Unreachable
from ..preparation.child_registry import CHILDREN
from ..preparation.machine import which
from .sbatch_request import Nodes, Partition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

SECONDS = 60
FORMAT = "%i|%T|%r|%V|%k"
KEPT = ("SBATCH_", "SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT")
_WORDS = re.compile(r"^(sbatch|squeue|scancel|sinfo|srun|scontrol): (error: )?", re.MULTILINE)
_AWAY = ("Unable to contact slurm controller", "Socket timed out", "Zero Bytes were transmitted", "Connection refused")
_FINAL = frozenset("BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED TIMEOUT GONE".split())


class SlurmRefused(EngineError):
    """Slurm does not take this job."""


class Away(Unreachable):
    """Slurm's controller does not answer; it may a little later."""


class JobSeen(Value):
    """A job as Slurm tells it; GONE if it does not know it any more."""

    id: str
    state: str
    reason: str = ""
    comment: str = ""

    @property
    def final(self) -> bool:
        return self.state in _FINAL


class Command:
    """One call of a Slurm program that is not waited for: its owner is touched when it has ended."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], text: str = "", owner: Any = None) -> None:
        self.words, self.owner = words, owner
        self.status: int | None = None
        self._out, self._err = (os.memfd_create(name, os.MFD_CLOEXEC) for name in ("out", "err"))
        given = os.memfd_create("in", os.MFD_CLOEXEC)
        os.write(given, text.encode())
        os.lseek(given, 0, os.SEEK_SET)
        files = [(os.POSIX_SPAWN_DUP2, given, 0), (os.POSIX_SPAWN_DUP2, self._out, 1), (os.POSIX_SPAWN_DUP2, self._err, 2)]

        defaults = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD)
        try:
            # A group of its own: Ctrl-C at the terminal is for the run, not for this.
            pid = os.posix_spawnp(words[0], list(words), environment, file_actions=files, setpgroup=0, setsigdef=defaults)
        except FileNotFoundError:
            raise no_slurm(words[0]) from None
        finally:
            os.close(given)
        CHILDREN.add(pid, self)

    def child_ended(self, _pid: int, status: int) -> None:
        self.status = os.waitstatus_to_exitcode(status)
        self.out, self.err = (_read(each) for each in (self._out, self._err))
        if self.owner is not None:
            CHILDREN.touched[self.owner] = None


def run(words: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """A call that is waited for: status, output, errors."""
    import subprocess

    try:
        done = subprocess.run(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise no_slurm(words[0]) from None
    except subprocess.TimeoutExpired:
        return 1, "", f"{words[0]}: error: Socket timed out"
    return done.returncode, done.stdout, done.stderr


class NoSlurm(Unreachable):
    """This is no login node."""


def check() -> None:
    """Refuse to go on where there is no Slurm."""
    if which("sbatch") is None:
        raise no_slurm("sbatch")


def no_slurm(program: str) -> EngineError:
    return NoSlurm(f"there is no Slurm here: '{program}' was not found; run this on a login node of the cluster")


def complain(program: str, err: str) -> EngineError:
    """What went wrong, in one line."""
    lines = [line for line in _WORDS.sub("", err).splitlines() if line.strip()]
    words = lines[-1] if lines else "no reason was given"
    words = words.removeprefix("Batch job submission failed: ").removeprefix("error: ")
    if "establish a configuration source" in err:
        return NoSlurm(f"there is no Slurm here: {words}; run this on a login node of the cluster")
    if any(each in err for each in _AWAY):
        return Away(f"Slurm does not answer ({program}: {words})")
    return SlurmRefused(f"Slurm refused the job: {words}")


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """What Slurm's programs are told: how to reach the cluster, the user's defaults; nothing of an allocation we may be in."""
    base = {name: given[name] for name in ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ") if name in given}
    base.update({name: value for name, value in given.items() if name.startswith(KEPT)})
    base.setdefault("PATH", os.defpath)
    return base


def partitions(given: Mapping[str, str]) -> list[Partition]:
    """All partitions of the cluster, in one question."""
    status, out, err = run(["sinfo", "-h", "-o", "%P|%a|%D|%c|%m|%G|%l|%s"], environment(given))
    if status:
        raise complain("sinfo", err)
    return parse_partitions(out)


def exit_code(job: str) -> int | None:
    """What a job's script ended with, as far as Slurm knows it."""
    _, out, _ = run(["scontrol", "-o", "show", "job", job], environment(os.environ))
    found = re.search(r"\bExitCode=([0-9]+):", out)
    return int(found[1]) if found else None


def parse_partitions(out: str) -> list[Partition]:
    """A line for each group of like nodes; the largest of a partition counts."""
    found: dict[str, Partition] = {}
    for line in out.splitlines():
        words = line.split("|")
        if len(words) not in (7, 8):
            continue
        name, up, nodes, cpus, memory, listed, limit = words[:7]
        before = found.get(name.rstrip("*"), Partition(name.rstrip("*"), False, 0, 0, 0, 0))
        found[before.name] = Partition(
            before.name,
            up == "up",
            before.nodes + _number(nodes),
            max(before.cpus, _number(cpus)),
            max(before.memory_mb, _number(memory)),
            max(before.gpus, _gpus(listed)),
            name.endswith("*"),
            _seconds(limit),
            (*before.groups, Nodes(_number(nodes), _number(cpus), _gpus(listed))),
            _most_nodes(words[7]) if len(words) == 8 else None,
        )
    return list(found.values())


def parse_jobs(out: str) -> dict[str, JobSeen]:
    """What `squeue -o FORMAT` prints; the components of a heterogeneous job count as its first."""
    found: dict[str, JobSeen] = {}
    for line in out.splitlines():
        words = line.split("|", 4)
        if len(words) == 5:
            number, plus, component = words[0].partition("+")
            if not plus or component == "0":
                found[number] = JobSeen(number, words[1], words[2], words[4])
    return found


def _number(text: str) -> int:
    digits = re.match("[0-9]+", text)
    return int(digits[0]) if digits else 0


def _gpus(listed: str) -> int:
    """`gpu:fake:2(S:0),shard:8` has 2."""
    return sum(int(match[1]) for match in re.finditer(r"(?:^|,)gpu(?::[^:,()]+)?:([0-9]+)", re.sub(r"\([^)]*\)", "", listed)))


def _most_nodes(size: str) -> int | None:
    """`1-infinite` has no bound, `1-2` has 2, `4` has 4."""
    most = size.rpartition("-")[2]
    return int(most) if most.isascii() and most.isdecimal() else None


def _seconds(limit: str) -> float | None:
    """`1-00:00:00`, `30:00`, `infinite`."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", limit)
    if not match:
        return None
    days, hours, minutes, seconds = (int(each or 0) for each in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _read(descriptor: int) -> str:
    with os.fdopen(descriptor, "rb") as stream:
        stream.seek(0)
        return stream.read().decode("utf-8", "replace")
