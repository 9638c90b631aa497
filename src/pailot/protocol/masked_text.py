"""A job file with some of its values replaced where they stand: comments, order and layout stay as they were written."""

from __future__ import annotations

import re

from .yaml import YamlError, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    from .yaml import Document

    Path: TypeAlias = tuple[str | int, ...]
    Shown: TypeAlias = Callable[[Path, Any], Any]
    """From a path and the value there to the value to show."""

_QUOTED = re.compile(r""""(?:[^"\\]|\\[\s\S])*"|'(?:[^']|'')*'""")
_PLAIN = re.compile(r"[^\n]*?(?=[ \t]+#|[ \t]*\n|[ \t]*$)")
_PLAIN_IN_FLOW = re.compile(r"[^\n,\[\]{}]*?(?=[ \t]*(?:[\n,\[\]{}]|$)|[ \t]+#)")
_HEADER = re.compile(r"[|>][^\n]*\n")
_SAFE = re.compile(r"[A-Za-z][\w.-]*")


def with_values_shown(text: str, shown: Shown) -> str | None:
    """The text with each value replaced by what `shown` makes of it; None where that cannot be done in place.

    The result is read again: it says exactly what it should, or it is not returned.
    """
    try:
        document = parse(text)
        wanted = _changed(document.root, shown, ())
        pieces, at = [], 0
        for start, value in sorted(_replacements(document, shown)):
            end = _end(document.text, start)
            if end is None or start < at:
                return None
            pieces += [document.text[at:start], _written(document.text[start:end], value)]
            at = end
        made = "".join([*pieces, document.text[at:]])
        return made if parse(made).root == wanted else None
    except YamlError:
        return None


def values_of(text: str) -> list[tuple[Path, Any]]:
    """Every scalar of a text with its path; nothing where the text cannot be read."""
    try:
        return list(scalars(parse(text).root))
    except YamlError:
        return []


def _changed(value: Any, shown: Shown, path: Path) -> Any:
    if isinstance(value, dict):
        return {key: _changed(item, shown, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_changed(item, shown, (*path, position)) for position, item in enumerate(value)]
    return shown(path, value)


def _replacements(document: Document, shown: Shown) -> Iterator[tuple[int, str]]:
    """Where a value begins that changes, and what it becomes."""
    for path, value in scalars(document.root):
        new = shown(path, value)
        if new is not value and new != value:
            yield document.offset(path), new


def scalars(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every scalar below a value, with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from scalars(item, (*path, key))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from scalars(item, (*path, position))
    else:
        yield path, value


def _end(text: str, start: int) -> int | None:
    """The end of the scalar that begins there; None for a form that is not known here."""
    first = text[start : start + 1]
    if first in ("'", '"'):
        found = _QUOTED.match(text, start)
        return found.end() if found else None
    if first in ("|", ">"):
        return _end_of_block(text, start)
    if not first or first in "&*!?[]{},\n#":
        return None
    line = text[text.rfind("\n", 0, start) + 1 : start]
    in_flow = line.count("[") + line.count("{") > line.count("]") + line.count("}")
    found = (_PLAIN_IN_FLOW if in_flow else _PLAIN).match(text, start)
    return found.end() if found else None


def _end_of_block(text: str, start: int) -> int | None:
    header = _HEADER.match(text, start)
    if header is None:
        return None
    at, end, indent = header.end(), header.end(), None
    while at < len(text):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        line = text[at:stop]
        if line.strip():
            depth = len(line) - len(line.lstrip(" "))
            indent = depth if indent is None else indent
            if depth < indent:
                break
            end = stop
        at = stop + 1
    return end if indent else None


def _written(raw: str, value: str) -> str:
    """A new scalar in place of another."""
    if _SAFE.fullmatch(value) and _SAFE.fullmatch(raw):
        return value
    return "'" + value.replace("'", "''") + "'" if value.isprintable() else _block(raw, value)


def _block(raw: str, value: str) -> str:
    """A text of several lines in the indentation and with the header of the one that it replaces."""
    header, _, body = raw.partition("\n")
    first = next((line for line in body.split("\n") if line.strip()), "")
    indent = " " * (len(first) - len(first.lstrip(" ")))
    if raw[:1] != "|" or not indent:
        return raw  # what cannot be written this way is found when the text is read again
    lines = value.rstrip("\n").split("\n")
    return "\n".join([header, *(indent + line if line else "" for line in lines)])
