"""What `pailot doctor` looks at: one line for each thing, and what to do where something is amiss."""

from __future__ import annotations

import os
import subprocess
import sys

from ..engines.contract import EngineError
from ..engines.preparation.gpus import discover
from ..engines.preparation.machine import locks_folder, which
from ..engines.preparation.sandbox import wrapper
from ..errors import PailotError
from ..runtime import cgroups
from ..settings import Settings
from ..store.network_filesystems import index_path, is_network
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OK, NOTE, BAD = "ok", "note", "bad"
"""`note`: something cannot be used here, and nothing is broken by it."""
SECONDS = 10
"""As long as a program of others may take to answer."""
LITTLE_SPACE = 1_000_000_000


class Check(Value):
    """One thing that was looked at."""

    name: str
    status: str
    text: str
    advice: str = ""


def checks() -> Iterator[Check]:
    """All that can be known of this machine without a server."""
    for look in (_python, _home, _limits, _sandbox, _containers, _slurm, _gpus, _ports):
        yield from _guarded(look)


def _guarded(look: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from look()
    except (PailotError, OSError) as error:
        yield Check(look.__name__.strip("_"), BAD, str(error))


def _python() -> Iterator[Check]:
    yield Check("python", OK, f"Python {'.'.join(map(str, sys.version_info[:3]))}")


def _home() -> Iterator[Check]:
    home = Settings().home
    place = home
    while not os.path.exists(place):
        place = os.path.dirname(place)
    if not os.access(place, os.W_OK | os.X_OK):
        yield Check("home", BAD, f"{home} cannot be written to", "set PAILOT_HOME to a folder of your own")
        return
    space = os.statvfs(place)
    free = space.f_bavail * space.f_frsize
    if free < LITTLE_SPACE:
        yield Check("home", BAD, f"{home} has {free / 1e6:.0f} MB left", "pailot gc removes old runs")
    else:
        yield Check("home", OK, f"{home}, {free / 1e9:.0f} GB free")
    kind = is_network(home)
    if kind:
        text = f"{home} is on a network file system ({kind}); the index of runs is kept in {index_path(home)}"
        yield Check("network home", NOTE, text, "a server needs a PAILOT_HOME on a local disk")


def _limits() -> Iterator[Check]:
    why_not = cgroups.why_not()
    if not why_not:
        yield Check("limits", OK, "memory and CPU limits of tasks are enforced with control groups")
    elif cgroups.available() is not None:
        yield Check("limits", NOTE, f"not all limits of tasks can be enforced: {why_not}")
    else:
        advice = "run pailot in a session with delegated control groups, e.g. systemd-run --user --scope -p Delegate=yes"
        yield Check("limits", NOTE, f"memory and CPU limits of tasks are not enforced: {why_not}", advice)


def _sandbox() -> Iterator[Check]:
    try:
        wrapper(())
    except EngineError as error:
        text, _, advice = str(error).partition(": ")
        if advice.startswith("sudo "):
            yield Check("sandbox", NOTE, "bubblewrap is not installed: no --sandbox, and no real /ml", advice)
        else:
            yield Check("sandbox", NOTE, str(error))
        del text
    else:
        yield Check("sandbox", OK, "bubblewrap works: --sandbox, and a real /ml")


def _containers() -> Iterator[Check]:
    for name in ("docker", "podman", "nerdctl"):
        path = which(name)
        if path is None:
            continue
        status, answer = _ask([path, "info", "--format", "{{json .}}"])
        if status == 0:
            yield Check(name, OK, f"{name} answers: pailot run -e docker")
        else:
            yield Check(name, NOTE, f"{name} is installed, but does not answer: {answer}", "start its service, or join its group")
    if not any(which(name) for name in ("docker", "podman", "nerdctl")):
        yield Check("containers", NOTE, "neither docker, podman nor nerdctl is installed", "sudo apt-get install podman")


def _slurm() -> Iterator[Check]:
    sinfo = which("sinfo")
    if sinfo is None or which("sbatch") is None:
        yield Check("slurm", NOTE, "Slurm's commands are not installed", "run pailot where sbatch is, to use -e slurm")
        return
    status, answer = _ask([sinfo, "--noheader", "--format", "%P %a"])
    if status == 0:
        yield Check("slurm", OK, "Slurm answers: pailot run -e slurm")
    else:
        yield Check("slurm", NOTE, f"Slurm does not answer: {answer}", "ask who runs the cluster")


def _gpus() -> Iterator[Check]:
    found = discover(os.environ.get("PAILOT_GPUS", "auto"))
    if found:
        names = ", ".join(sorted({gpu.name for gpu in found if gpu.name})) or "declared by PAILOT_GPUS"
        yield Check("gpus", OK, f"{len(found)} GPU{'' if len(found) == 1 else 's'}: {names}")
    else:
        yield Check("gpus", NOTE, "no GPU is found", "where there is one, nvidia-smi must work; or declare them with PAILOT_GPUS")


def _ports() -> Iterator[Check]:
    yield Check("locks", OK, f"ports and GPUs are shared out between all runs of this machine in {locks_folder()}")


def _ask(command: list[str]) -> tuple[int, str]:
    """Status and last words of a program of others."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return 1, f"no answer within {SECONDS} s"
    except OSError as error:
        return 1, str(error.strerror)
    lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
    return done.returncode, lines[-1] if lines else f"status {done.returncode}"
