"""What the records of a run must look like to be believed.

A field of another type is as good as missing; so is a record without one that it cannot do without. Whoever reads a record can
then rely on what is there.
"""

from __future__ import annotations

from ..lifecycle.states import JOB_STATES
from . import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def _text(value: object) -> bool:
    return isinstance(value, str)


def _text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _moment(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15


def _moment_or_none(value: object) -> bool:
    return value is None or _moment(value)


def _number(value: object) -> bool:
    return isinstance(value, int)


def _number_or_none(value: object) -> bool:
    return value is None or isinstance(value, int)


def _state(value: object) -> bool:
    return value in JOB_STATES if isinstance(value, str) else False


def _counts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, int) for each in value.values())


def _object(value: object) -> bool:
    return isinstance(value, dict)


def _options(value: object) -> bool:
    return isinstance(value, dict) and _moment_or_none(value.get("graceSeconds"))


def _roles(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    return all(isinstance(role, dict) and isinstance(role.get("instances"), int) for role in value.values())


def _ports(value: object) -> bool:
    """By task, then by label: lists of numbers."""
    if not isinstance(value, dict):
        return False
    return all(isinstance(each, dict) and all(isinstance(ports, list) for ports in each.values()) for each in value.values())


def _class(value: object) -> bool:
    return value is None or (isinstance(value, dict) and all(key in value for key in ("code", "phrase", "type", "reaction")))


def _lines(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


_END: Mapping[str, Callable[[object], bool]] = {
    "outcome": _text, "reason": _text_or_none, "exitCode": _number_or_none, "signal": _number_or_none, "class": _class,
    "ended": _moment_or_none, "started": _moment_or_none, "until": _moment, "lastLines": _lines,
}  # fmt: skip
_SHAPES: Mapping[str, Mapping[str, Callable[[object], bool]]] = {
    layout.JOB: {
        "id": _text, "name": _text, "user": _text, "engine": _text, "submitted": _moment, "cwd": _text, "workDir": _text,
        "boot": _text, "virtualCluster": _text,
    },
    layout.PLAN: {"name": _text, "taskRoles": _roles, "options": _options, "jobRetryCount": _number},
    layout.STATE: {
        "state": _state, "reason": _text_or_none, "started": _moment_or_none, "attempt": _number, "retries": _counts,
    },
    layout.VERDICT: {
        "state": _state, "reason": _text, "ended": _moment, "started": _moment_or_none, "retries": _counts,
        "exitCode": _number_or_none, "role": _text_or_none, "index": _number_or_none,
    },
    layout.STOP: {"why": _text, "grace": _moment},
    layout.PLACEMENT: {"host": _text, "hosts": _object, "ports": _ports, "driver": _number, "boot": _text},
    layout.FINAL: _END, layout.HELD: _END, layout.EXIT: _END,
    layout.JOURNAL: {
        "at": _moment, "event": _text, "reason": _text_or_none, "class": _class, "lastLines": _lines, "role": _text_or_none,
        "index": _number_or_none, "until": _moment, "seconds": _moment,
    },
}  # fmt: skip
_NEEDED = {
    layout.JOB: ("id", "name", "user", "submitted"),
    layout.PLAN: ("taskRoles",),
    layout.VERDICT: ("state", "reason", "ended"),
    layout.FINAL: ("outcome",),
    layout.HELD: ("outcome",),
    layout.EXIT: ("outcome",),
    layout.JOURNAL: ("at", "event"),
}
_NEEDED_OF_EVENT = {
    "task-started": ("role", "index", "attempt"),
    "task-retry": ("role", "index", "attempt", "of", "reason"),
    "task-held": ("role", "index", "reason", "until"),
    "task-ended": ("role", "index"),
    "job-retry": ("reason", "why"),
    "waiting": ("reason",),
}


def sound(name: str, record: dict[str, Any] | None) -> dict[str, Any] | None:
    """The record without the fields that cannot be believed; None if there is none, or too little is left of it.

    >>> sound(layout.STOP, {"why": "user", "grace": []})
    {'why': 'user'}
    """
    if record is None:
        return None
    shape = _SHAPES.get(name, {})
    wrong = [key for key, fits in shape.items() if key in record and not fits(record[key])]
    if wrong:
        record = {key: value for key, value in record.items() if key not in wrong}
    needed = _NEEDED.get(name, ())
    if name == layout.JOURNAL:
        needed = (*needed, *_NEEDED_OF_EVENT.get(record.get("event", ""), ()))
    return record if all(key in record for key in needed) else None
