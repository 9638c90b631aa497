"""A job that was started, wherever that is, and the one of a name that was started last."""

from __future__ import annotations

from ..lifecycle.states import FINAL_JOB_STATES
from ..sdk.errors import RunError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from ..sdk.run import Run
    from ..views.cancellation import Quit

SUCCEEDED = ("SUCCEEDED", "SUCCEED")
ENDED = (*FINAL_JOB_STATES, "SUCCEED")


class PaiJobFailed(RunError, RuntimeError):
    """The job of a task did not succeed; `.reason`, `.exit_code`, `.task`, `.last_lines` say why."""


class Started:
    """A job that was started."""

    def __init__(self, run: Run, url: str = "") -> None:
        self.run, self.url, self.name = run, url, run.name

    def state(self) -> str:
        return self.run.state

    def is_good(self) -> bool:
        """Whether it has not failed: it runs, will run, or has succeeded."""
        state = self.state()
        return state in SUCCEEDED or state not in ENDED

    def record(self) -> dict[str, Any]:
        return self.run.describe()

    def changes(self, quit: Quit) -> Iterator[Sequence[str]]:
        """Each time something may have changed, until it is over: the lines that tell what is to be known of it, if any."""
        for event in self.run.changes(quit):
            yield [event.details["reason"]] if event.kind == "waiting" else event.details.get("notes") or ()

    def lines(self, quit: Quit) -> Iterator[str]:
        return self.run.logs(follow=True).until(quit)

    def stop(self) -> None:
        self.run.stop(wait=False)


def last_of(name: str, get: Callable[[str], Started | None]) -> tuple[int, Started] | None:
    """The last of `name`, `name-r2`, … that there is, and its number."""
    last, number = None, 1
    while True:
        found = get(numbered(name, number))
        if found is None:
            return last
        last, number = (number, found), number + 1


def numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-r{number}"
