"""A run of this home that follows others: the driver waits for their ends, or the cluster does where it can."""

from __future__ import annotations

import time

from ..engines.registry import load
from ..errors import PailotError
from ..lifecycle.completion import Verdict
from ..lifecycle.following import GONE, SUCCESS, Predecessor, failure_words, split, waiting_words
from ..lifecycle.states import STOPPED
from ..runfolder import layout
from ..values import Value
from . import queries
from .run_folder import JobFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..engines.contract import Steps
    from ..store.index import Index

LOOK_SECONDS = 1.0
"""How often the other runs are looked at: they are driven by other processes, of which we hear nothing."""


class Following(Value):
    """What a run waits for before its first attempt."""

    predecessors: tuple[Predecessor, ...]

    def look(self, index: Index) -> Following:
        """Return it with the ends of those that have ended by now."""
        return Following(tuple(each if each.is_over else _looked_at(each, index) for each in self.predecessors))

    @property
    def failed(self) -> Predecessor | None:
        return next((each for each in self.predecessors if each.failed), None)

    @property
    def left(self) -> tuple[Predecessor, ...]:
        return tuple(each for each in self.predecessors if not each.is_over)


def find(wishes: Iterable[str], user: str, index: Index) -> Following | None:
    """Find the runs of this home that a run is to follow. Raises PailotError for one that does not exist."""
    found = []
    for wish in wishes:
        parts = split(wish)
        if parts is None:
            raise PailotError(f"after: '{wish}' should be JOB, JOB:success or JOB:end")
        row, _ = queries.find(parts[0], user, index)
        found.append(Predecessor(row.id, row.name, parts[1]))
    return Following(tuple(found)) if found else None


def wait(following: Following, index: Index, tell: Callable[[str], None], stopped: Callable[[], bool]) -> Steps[Verdict | None]:
    """Wait until the run may start. Returns the verdict of a run that never will."""
    told = ""
    while True:
        following = following.look(index)
        if following.failed is not None:
            return Verdict(STOPPED, failure_words(following.failed))
        if not following.left:
            return None
        if stopped():
            return Verdict(STOPPED, "stopped before it started")
        words = waiting_words(following.left)
        if words != told:
            tell(words)
            told = words
        yield time.monotonic() + LOOK_SECONDS


def dependency(following: Following, engine: str, index: Index) -> str:
    """Return how the engine itself can wait for all of them, or an empty text where it cannot know their ends.

    A cluster sees the end of one attempt. A run that has retries left may succeed after that, so the driver waits for such a run.
    """
    ends = []
    for each in following.left:
        row = index.get(each.id)
        if row is None or row.engine != engine:
            return ""
        folder = JobFolder(row.folder)
        plan = folder.record(layout.PLAN) or {}
        if plan.get("jobRetryCount") or not folder.attempts():
            return ""
        ends.append((folder.attempt(folder.attempts() - 1), each.on == SUCCESS))
    return load(engine).dependency(ends) if ends else ""


def _looked_at(predecessor: Predecessor, index: Index) -> Predecessor:
    row = index.get(predecessor.id)
    if row is None:
        return predecessor.ended(GONE)
    row = queries.refresh(row, index)
    return predecessor if row.ended is None else predecessor.ended(row.state, row.reason or "")
