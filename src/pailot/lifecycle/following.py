"""Jobs that follow jobs: what a job waits for before it starts, and what becomes of it. Pure."""

from __future__ import annotations

from ..values import Value
from .states import FINAL_JOB_STATES, SUCCEEDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

SUCCESS, END = "success", "end"
CONDITIONS = (SUCCESS, END)
"""What a job can wait for: that another succeeds, or that it ends in whatever state."""
GONE = "GONE"
"""The state of a predecessor whose record was removed before its end was seen."""


class Predecessor(Value):
    """A job that another one follows. `state` is empty until it has ended."""

    id: str
    name: str
    """What messages call it."""
    on: str = SUCCESS
    state: str = ""
    reason: str = ""

    @property
    def is_over(self) -> bool:
        return bool(self.state)

    @property
    def failed(self) -> bool:
        """Whether the follower can never start."""
        return self.is_over and self.state != SUCCEEDED and not (self.on == END and self.state in FINAL_JOB_STATES)

    def ended(self, state: str, reason: str = "") -> Predecessor:
        return self.replace(state=state, reason=reason)

    def to_json(self) -> dict[str, object]:
        told: dict[str, object] = {"id": self.id, "name": self.name, "on": self.on}
        return {**told, "state": self.state, "reason": self.reason} if self.is_over else told

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Predecessor:
        return cls(*(str(data.get(key, default)) for key, default in _KEYS.items()))


_KEYS = {"id": "", "name": "", "on": SUCCESS, "state": "", "reason": ""}


def read_all(data: Sequence[Mapping[str, Any]]) -> tuple[Predecessor, ...]:
    return tuple(Predecessor.from_json(each) for each in data)


def all_to_json(predecessors: Sequence[Predecessor]) -> list[dict[str, object]]:
    return [each.to_json() for each in predecessors]


def split(text: str) -> tuple[str, str] | None:
    """Return the job and the condition of `JOB`, `JOB:success` or `JOB:end`, or None if the text is none of these."""
    name, colon, on = text.partition(":")
    on = on if colon else SUCCESS
    return (name, on) if name and on in CONDITIONS else None


def waiting_words(predecessors: Sequence[Predecessor]) -> str:
    """Say what the follower waits for: 'it waits for ann~prepare to succeed and for ann~clean to end'."""
    left = [each for each in predecessors if not each.is_over]
    parts = [f"for {each.name} to {'succeed' if each.on == SUCCESS else 'end'}" for each in left]
    return f"it waits {', '.join(parts[:-1])}{' and ' if len(parts) > 1 else ''}{parts[-1]}" if parts else ""


def failure_words(predecessor: Predecessor) -> str:
    """Say why the follower never starts."""
    name = predecessor.name
    if predecessor.state == GONE:
        return f"it was to start after {name}, which was removed before its end was seen"
    why = f": {predecessor.reason}" if predecessor.reason else ""
    return f"it was to start after {name} succeeded, and {name} {predecessor.state}{why}"
