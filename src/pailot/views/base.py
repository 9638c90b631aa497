"""What can be asked of a run, wherever it is."""

from __future__ import annotations

from ..errors import PailotError, suggestion
from ..values import Value
from .log_pieces import as_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from ..runfolder.log_index import LogIndex
    from ..runfolder.log_search import Hit, SearchEnd, Wanted
    from .cancellation import Quit
    from .log_pieces import Line, Piece


class Which(Value):
    """Whose output is wanted. None: of every role, every task, the latest attempt of the job, every attempt of a task."""

    role: str | None = None
    index: int | None = None
    stream: str = "all"
    attempt: int | None = None
    task_attempt: int | None = None
    since: int = 0
    """The first attempt of the job that is followed, where none is named."""
    tail: int | None = None
    """Only the last lines, of the latest attempt of each task."""
    not_before: float | None = None
    """Only lines that were begun at this time (seconds since 1970) or later. What is followed begins with the latest attempts."""


class Why(Value):
    """Why a run is in the state it is in, in sentences."""

    name: str
    state: str
    lines: tuple[str, ...]


class View:
    """A run, looked at. Every call may come from any thread, and one that waits ends early when `quit` is set."""

    name: str
    id: str

    def record(self, attempt: int | None = None) -> dict[str, Any]:
        """What `pailot show --json` prints; with an attempt, the tasks as they were in that one."""
        raise NotImplementedError

    def summary(self) -> Mapping[str, Any]:
        """`name`, `id`, `state` and `reason`, where the tasks are not needed."""
        return self.record()

    def wait(self, timeout: float | None, quit: Quit) -> bool:
        """Until the run is over; False when the time is up first."""
        raise NotImplementedError

    def journal(self) -> list[dict[str, object]]:
        """What happened so far, as `pailot events --json` prints it."""
        raise NotImplementedError

    def events(self, quit: Quit) -> Iterator[Mapping[str, Any]]:
        """What happened so far, then what happens, until the run is over."""
        raise NotImplementedError

    def pieces(self, which: Which, follow: bool, quit: Quit, record: Mapping[str, Any] | None = None) -> Iterator[Piece]:
        """What tasks printed; with `follow` from the attempt `which.since` on, and to the end of the run.

        `record` is what is known of the run, if it was asked for just now.
        """
        raise NotImplementedError

    def times(self, piece: Piece, stream: str) -> LogIndex | None:
        """When each part of the log of a piece was written, at least up to the end of the piece; None if that is not known."""
        return None

    def usage(self) -> list[dict[str, Any]]:
        """What each task of the latest attempt uses now, its peaks, and what it asked for; empty where that is not known."""
        return []

    def search(self, wanted: Wanted, limit: int) -> Iterator[Hit | SearchEnd]:
        """Lines of the logs of all tasks and attempts, and at last how the search ended. A wrong pattern raises PailotError."""
        raise PailotError(f"the logs of '{self.name}' cannot be searched where they are; use: pailot logs {self.name} | grep")

    def save_logs(self, write: Callable[[bytes], object], which: Which) -> None:
        """Write all logs as one ZIP file."""
        raise PailotError(f"the logs of '{self.name}' cannot be saved as one file where they are; use: pailot logs {self.name}")

    def lines(self, which: Which, follow: bool, quit: Quit) -> Iterator[Line]:
        """The same in whole lines."""
        return as_lines(self.pieces(which, follow, quit))

    def log_address(self, which: Which) -> str | None:
        """Where the log of one attempt of a task can be read over the network."""
        return None

    def why(self) -> Why:
        """Why it is in the state it is in."""
        raise NotImplementedError

    tells_why = False
    """Whether the server tells what it waits for, while it waits."""

    def reasons_to_wait(self, quit: Quit) -> Iterator[Sequence[str]]:
        """While it waits: what for, each time that changes."""
        return iter(())

    def stop(self, now: bool) -> None:
        """Ask the run to stop."""
        raise NotImplementedError

    def rerun(self, name: str | None = None, secrets: Mapping[str, str] | None = None) -> View:
        """Run the same job again, here under the same name if none is given, on a server under another."""
        raise NotImplementedError

    def delete(self) -> None:
        """Remove the record of a run that is over."""
        raise NotImplementedError

    def file(self) -> str:
        """The job file, secrets masked."""
        raise NotImplementedError


def tasks_in(tasks: Mapping[str, Sequence[int]], latest: int, which: Which, name: str) -> list[tuple[str, int]]:
    """The tasks whose output is meant, out of the indexes of each role; `latest` is the last attempt of the job."""
    if which.role is not None and which.role not in tasks:
        raise PailotError(f"'{name}' has no role '{which.role}'{suggestion(which.role, tasks)}")
    if which.attempt is not None and not 0 <= which.attempt <= latest:
        raise PailotError(f"'{name}' has no attempt {which.attempt}: it has 0 to {latest}")
    found = [
        (role, index)
        for role, indexes in tasks.items()
        for index in indexes
        if which.role in (None, role) and which.index in (None, index)
    ]
    if not found:
        raise PailotError(f"'{name}' has no task {which.role or 'any'}:{'any' if which.index is None else which.index}")
    return found


def attempts_wanted(which: Which, count: int) -> Sequence[int]:
    """Which attempts of a task to read, of so many."""
    if which.task_attempt is None:
        return range(count) if which.tail is None else range(count)[-1:]
    return (which.task_attempt,) if 0 <= which.task_attempt < count else ()


def no_attempt(which: Which, tasks: Sequence[tuple[str, int]], name: str) -> PailotError:
    """The error where none of the tasks has had the attempt that was asked for."""
    task = f"{tasks[0][0]}:{tasks[0][1]}" if len(tasks) == 1 else "any of these tasks"
    return PailotError(f"'{name}' has no attempt {which.task_attempt} of {task}")


def settled(which: Which, latest: int, follow: bool) -> Which:
    """With the attempt of the job named where only one can be meant."""
    if which.attempt is None and (which.task_attempt is not None or not follow):
        return which.replace(attempt=latest)
    return which
