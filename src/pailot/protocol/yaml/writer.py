"""Plain values as YAML that reads the same everywhere: here, in OpenPAI, and in other readers.

A text is left without quotes only where no reader could take it for anything else.
"""

from __future__ import annotations

import base64
import re

from ..lazy_regex import pattern
from . import scalars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def dump(value: Any) -> str:
    """The value as a block-style document; `parse` reads it back as the same value.

    Whole numbers beyond 2**53 come back as floats, since OpenPAI's numbers are doubles.

    >>> print(dump({"name": "hello", "commands": ["echo hi", "date"]}), end="")
    name: hello
    commands:
      - echo hi
      - date
    """
    if _is_collection(value):
        return "".join(f"{line}\n" for line in _lines(value, ""))
    return _scalar(value, "  ") + "\n"


_PLAIN = pattern(r"(?:[^\W\d]|[/$]|\.\.?/|<% )[^\n]*\Z")
# Booleans of YAML 1.1, which many readers still follow; to OpenPAI they are texts.
_OTHER_WORDS = frozenset(("y", "n", "yes", "no", "on", "off"))
_ESCAPES = {
    "\\": "\\\\", '"': '\\"', "\0": "\\0", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v",
    "\f": "\\f", "\r": "\\r", "\x1b": "\\e", "\x85": "\\N", "\xa0": "\\_", "\u2028": "\\L", "\u2029": "\\P",
}  # fmt: skip
_BLANK_LINE_WITH_SPACES = pattern(r"^[ \t]+$", re.MULTILINE)


def _lines(value: Any, indent: str) -> Iterator[str]:
    """The lines of a collection that is not empty; the first one too is indented."""
    if isinstance(value, dict):
        for key, item in value.items():
            head = f"{indent}{_one_line(key)}:"
            if _is_collection(item):
                yield head
                yield from _lines(item, indent + "  ")
            else:
                yield f"{head} {_scalar(item, indent + '  ')}"
        return
    for item in value:
        if _is_collection(item):
            first, *others = _lines(item, indent + "  ")
            yield f"{indent}- {first[len(indent) + 2 :]}"
            yield from others
        else:
            yield f"{indent}- {_scalar(item, indent + '  ')}"


def _is_collection(value: Any) -> bool:
    return isinstance(value, dict | list | tuple) and len(value) > 0


def _scalar(value: Any, indent: str) -> str:
    """A value without parts; a text of several lines goes on below, indented."""
    if isinstance(value, str):
        return _block(value, indent) if _fits_block(value) else _one_line(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, dict | list | tuple):
        return "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, scalars.Timestamp):
        return value.source
    if isinstance(value, bytes):
        return f"!!binary '{base64.b64encode(value).decode()}'"
    raise TypeError(f"{type(value).__name__} has no form in YAML")


def _number(value: int | float) -> str:
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    return repr(value)


def _one_line(text: str) -> str:
    if _is_plain(text):
        return text
    if not text.isprintable():
        return _double(text)
    if "'" in text and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"


def _is_plain(text: str) -> bool:
    if not _PLAIN.match(text) or not text.isprintable() or text.lower() in _OTHER_WORDS:
        return False
    return ": " not in text and " #" not in text and text[-1] not in ": " and scalars.resolve(text) == text


def _double(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(each) or (each if each.isprintable() else _code(each)) for each in text) + '"'


def _code(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _fits_block(text: str) -> bool:
    """Whether a `|` block holds the text: several lines, the first of which shows the indentation."""
    if "\n" not in text or not text.replace("\n", "").replace("\t", "").isprintable():
        return False
    body = text.lstrip("\n")
    return body != "" and body[0] not in " \t" and not _BLANK_LINE_WITH_SPACES.search(text)


def _block(text: str, indent: str) -> str:
    body = text.rstrip("\n")
    breaks = len(text) - len(body)
    chomp = "-" if not breaks else "" if breaks == 1 else "+"
    lines = [*body.split("\n"), *[""] * (breaks - 1)]
    return f"|{chomp}\n" + "\n".join(indent + line if line else "" for line in lines)
