"""A task of a run as its owner gets at it: a shell beside it, its ports. The same for local runs and for a server's."""

from __future__ import annotations

import os

from ..engines.registry import create, load, traits_of_run
from ..errors import PailotError, suggestion
from ..runfolder import layout
from ..runfolder.records import Placement
from ..runtime.container_shim import entering
from ..runtime.shim import read_environment
from ..values import Value
from .queries import task_attempts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .run_folder import JobFolder


class NoSuchTask(PailotError):
    """A run has no such task, or it has not run."""


class TaskPlace(Value):
    """A task of the latest attempt of a run, and the latest attempt of that task."""

    name: str
    """Of the run."""
    engine: str
    role: str
    index: int
    folder: str
    last: str
    """The folder of its latest attempt."""

    @property
    def ended(self) -> bool:
        return os.path.exists(os.path.join(self.folder, layout.FINAL))

    def __str__(self) -> str:
        return f"{self.role}:{self.index} of '{self.name}'"


class Shell(Value):
    """The program that is a shell beside a task, and what it starts with."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: str = "/"
    outside: bool = False
    """Whether these words are a client of the container engine or the cluster, which runs as we do."""


def locate(name: str, engine: str, folder: JobFolder, role: str | None, index: int) -> TaskPlace:
    """A task by its role (the first by default) and its index; NoSuchTask."""
    roles = list(folder.plan().get("taskRoles", {}))
    role = role or next(iter(roles), "")
    if role not in roles:
        raise NoSuchTask(f"'{name}' has no role '{role}'{suggestion(role, roles)}")
    attempt = max(0, folder.attempts() - 1)
    count = task_attempts(folder, attempt, role, index)
    if not count:
        raise NoSuchTask(f"{role}:{index} of '{name}' has not run")
    task = folder.task(attempt, role, index)
    return TaskPlace(name, engine, role, index, task, layout.task_attempt_folder(task, count - 1))


def shell(
    place: TaskPlace,
    command: str | None,
    *,
    terminal: bool,
    inherited: Mapping[str, str],
    as_we_are: Mapping[str, str],
    term: str = "dumb",
) -> Shell:
    """A shell with the task's environment in its working directory, or a command in place of an interactive one.

    `inherited` is what it has below the task's own variables; `as_we_are` is the environment of the programs that lead
    into a container, which are ours.
    """
    inside = entering(place.folder, place.last, command, terminal=terminal)
    if inside is not None:
        if place.ended:
            raise PailotError(f"{place} has ended, and its container is gone")
        return Shell(tuple(inside), {**as_we_are, "TERM": term}, outside=True)
    environment = {**inherited, **read_environment(os.path.join(place.last, layout.ENVIRONMENT))}
    work = environment.get("PAI_WORK_DIR", place.last)
    exports = environment.get("PAI_EXPORTS_FILE", "")
    step = [] if place.ended else _way_to(place, terminal=terminal)
    script = '[ ! -e "$1" ] || . "$1"; cd "$2"; if [ -n "$3" ]; then eval "$3"; else exec bash -i; fi'
    words = (*step, "bash", "-c", script, "bash", exports, work, command or "")
    return Shell(words, {**environment, "TERM": term}, "/" if step else work, outside=bool(step))


def _way_to(place: TaskPlace, *, terminal: bool) -> list[str]:
    """The words that bring a shell to the machine of a task, where that is another one."""
    if traits_of_run(place.engine).on_this_machine:
        return []
    return create(place.engine).shell_prefix(place.folder, terminal=terminal)


def ports(place: TaskPlace) -> dict[str, list[int]]:
    """The ports that were given to a task, by their labels."""
    return {label: list(numbers) for label, numbers in _placed(place).ports_of(place.role, place.index).items()}


def host(place: TaskPlace) -> str:
    """The machine that a task is on, as it can be reached from here."""
    return _placed(place).host_of(place.role, place.index) or "127.0.0.1"


def _placed(place: TaskPlace) -> Placement:
    return Placement.of(os.path.dirname(os.path.dirname(place.folder)))


def port_of(place: TaskPlace, wanted: str) -> int:
    """A port of a task by its number or its label: one that it was given, or one that it listens on. PailotError for others."""
    known = ports(place)
    if known.get(wanted):
        return known[wanted][0]
    if not (wanted.isascii() and wanted.isdecimal() and 0 < int(wanted) < 65536):
        names = ", ".join(f"{label} ({', '.join(map(str, numbers))})" for label, numbers in known.items()) or "none"
        raise PailotError(f"{place} has no port '{wanted}'; it was given {names}")
    number = int(wanted)
    if number not in {each for numbers in known.values() for each in numbers} and number not in listening(place):
        names = ", ".join(str(each) for numbers in known.values() for each in numbers) or "none"
        raise PailotError(f"port {number} is not one of {place}: it was given {names}, and listens on no other of this number")
    return number


def listening(place: TaskPlace) -> set[int]:
    """The TCP ports on which the processes of a task listen."""
    return set() if place.ended else load(place.engine).listening(place.folder)
