"""What can be asked of a run, wherever it is."""

from __future__ import annotations

from ..errors import PailotError, suggestion
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol, TypeAlias

    from .cancellation import Quit

    Line: TypeAlias = tuple[str, int, str]
    """Role, index, text without its end."""

    class View(Protocol):
        """What a Run asks; every call may come from any thread, and one that waits ends early when `quit` is set."""

        name: str
        id: str

        def record(self) -> dict[str, Any]:
            """What `pailot show --json` prints, with `task` and `lastLines` of the task that decided."""

        def wait(self, timeout: float | None, quit: Quit) -> bool:
            """Until the run is over; False when the time is up first."""

        def events(self, quit: Quit) -> Iterator[Mapping[str, Any]]:
            """What happened so far, then what happens, until the run is over."""

        def lines(self, which: Which, follow: bool, quit: Quit) -> Iterator[Line]:
            """What tasks printed; with `follow` from the first attempt on, and to the end of the run."""

        def stop(self, now: bool) -> None:
            """Ask the run to stop."""

        def delete(self) -> None:
            """Remove the record of a run that is over."""

        def source(self) -> str:
            """The job file, secrets masked."""


class Which(Value):
    """Whose lines are wanted. None: of every role, every task, the latest attempt of the job, every attempt of a task."""

    role: str | None = None
    index: int | None = None
    stream: str = "all"
    attempt: int | None = None
    task_attempt: int | None = None


def tasks_in(record: Mapping[str, Any], which: Which, name: str) -> list[tuple[str, int]]:
    """The tasks whose logs are meant."""
    roles = record["taskRoles"]
    if which.role is not None and which.role not in roles:
        raise PailotError(f"'{name}' has no role '{which.role}'{suggestion(which.role, roles)}")
    if which.attempt is not None and not 0 <= which.attempt <= record["attempt"]:
        raise PailotError(f"'{name}' has no attempt {which.attempt}: it has 0 to {record['attempt']}")
    tasks = [
        (role, task["index"])
        for role, node in roles.items()
        for task in node["tasks"]
        if which.role in (None, role) and which.index in (None, task["index"])
    ]
    if not tasks:
        raise PailotError(f"'{name}' has no task {which.role or 'any'}:{'any' if which.index is None else which.index}")
    return tasks


def warn_of_gap(task: str, missing: int) -> None:
    """Tell that lines are missing before the next one."""
    import warnings

    from ..runfolder.logs import gap_words

    warnings.warn(gap_words(task, missing), RuntimeWarning, stacklevel=2)
