"""The tags a value may carry, and what each makes of it; anything else is refused."""

from __future__ import annotations

import base64

from . import scalars
from .document import List, Map, new_list, new_map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _as_string(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError
    return value


def _as_kind(accepts: Callable[[str], bool]) -> Any:
    def convert(value: Any) -> Any:
        if not isinstance(value, str) or not accepts(value):
            raise ValueError
        return scalars.resolve(value)

    return convert


def _as_null(value: Any) -> None:
    if value is not None and value not in ("~", "null", "Null", "NULL"):
        raise ValueError


def _as_binary(value: Any) -> bytes:
    if value is None:
        raise ValueError
    text = _as_string(value).replace("\n", "")
    if len(text) % 4:
        raise ValueError
    return base64.b64decode(text, validate=True)


def _as_map(value: Any) -> Any:
    if value is None:
        return new_map()
    if not isinstance(value, Map):
        raise TypeError
    return value


def _as_list(value: Any) -> Any:
    if value is None:
        return new_list()
    if not isinstance(value, List):
        raise TypeError
    return value


def _as_ordered(value: Any) -> Any:
    names = [*map(_single_key, _as_list(value))]
    if len(set(names)) < len(names):
        raise ValueError
    return value if names else new_list()


def _as_pairs(value: Any) -> Any:
    result = new_list()
    for pair in _as_list(value):
        name = _single_key(pair)
        item = new_list(pair.at)
        item += name, pair[name]
        item.marks += pair.marks[name], pair.marks[name]
        result.append(item)
        result.marks.append(pair.at)
    return result


def _single_key(value: Any) -> str:
    if not isinstance(value, Map) or len(value) != 1:
        raise ValueError
    return next(iter(value))


def _as_set(value: Any) -> Any:
    members = _as_map(value)
    if any(item is not None for item in members.values()):
        raise ValueError
    return members


TAGS: dict[str, Any] = {
    "!": None,
    "!!str": _as_string,
    "!!int": _as_kind(scalars.is_integer),
    "!!float": _as_kind(scalars.is_float),
    "!!bool": _as_kind(lambda text: isinstance(scalars.resolve(text), bool)),
    "!!null": _as_null,
    "!!timestamp": _as_kind(lambda text: isinstance(scalars.resolve(text), scalars.Timestamp)),
    "!!binary": _as_binary,
    "!!map": _as_map,
    "!!seq": _as_list,
    "!!omap": _as_ordered,
    "!!pairs": _as_pairs,
    "!!set": _as_set,
}
