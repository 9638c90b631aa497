"""The quick way: a document made of plain `key: value` and `- item` lines, one match per line.

Real job files are almost nothing else. Whatever is not plainly in this form, right or wrong, raises
NotPlainLines, and the general parser reads the document from its start: this module never
reports an error, and the tests hold the two to the same values.
"""

from __future__ import annotations

from ..lazy_regex import pattern
from . import scalars
from .document import Map, new_list, new_map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class General(Protocol):
        """The general parser, as far as single values of a line need it."""

        depth: int

        @property
        def i(self) -> int: ...

        @property
        def nodes(self) -> int: ...

        def inline(self, at: int, parent: int) -> Any: ...

        def note_if_ambiguous(self, at: int, plain: str, value: Any) -> None: ...


class NotPlainLines(Exception):
    """Some line needs the general parser."""


_LINE = pattern(r"( *+)(- ++)?(?:([A-Za-z_][A-Za-z0-9_.-]*+):(?: ++|(?=\n)))?([^\n]*+)\n")
# First characters of a scalar that cannot be anything but plain text.
_PLAIN_START = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/$<=(;^\\")
_SPECIAL_KEYS = frozenset((*scalars.WORDS, "__proto__"))
_REST_OF_LINE = pattern(r"[ ]*+\n")
_ITEM_MARKS = frozenset(("-", "- "))
_MAX_DEPTH = 32  # well inside the parser's own limits, which it enforces with a message
_MAX_NODES = 40_000


def read_lines(text: str, parser: General) -> Map:
    """The root mapping of a document in the common form."""
    numeric, words, plain_start, special = scalars.NUMERIC_START, scalars.WORDS, _PLAIN_START, _SPECIAL_KEYS
    root = new_map(0)
    here: Any = root
    marks: Any = root.marks
    indent, is_map = 0, True
    stack: list[tuple[int, Any]] = []  # enclosing collections with their indents
    open_key: str | None = None  # a key whose value is on the lines to come
    at: int | None = 0
    while at is not None:
        resume, at = at, None
        for line in _LINE.finditer(text, resume):
            spaces, dash, key, rest = line.groups()
            if not key and not dash:
                if not rest or rest[0] == "#":
                    continue
                raise NotPlainLines
            column = len(spaces)
            start = line.start()
            if column > indent:
                if open_key is None or len(stack) > _MAX_DEPTH:
                    raise NotPlainLines
                stack.append((indent, here))
                here[open_key] = here = new_list(start + column) if dash else new_map(start + column)
                marks, indent, is_map, open_key = here.marks, column, not dash, None
            else:
                if open_key is not None:
                    if dash and column == indent:
                        stack.append((indent, here))
                        here[open_key] = here = new_list(start + column)
                        marks, is_map = here.marks, False
                    open_key = None
                if column < indent:
                    while column < indent and stack:
                        indent, here = stack.pop()
                    marks, is_map = here.marks, type(here) is Map
                    if column != indent:
                        raise NotPlainLines
                if not is_map and not dash:
                    # A list may stand at the indent of the mapping that holds it.
                    if not stack or stack[-1][0] != indent:
                        raise NotPlainLines
                    indent, here = stack.pop()
                    marks, is_map = here.marks, True
            start += column
            if dash:
                if is_map:
                    raise NotPlainLines
                start += len(dash)
                marks.append(start)
                if key:
                    stack.append((indent, here))
                    here.append(here := new_map(start))
                    marks, indent, is_map = here.marks, column + len(dash), True
            if key:
                if key in here or key in special:
                    raise NotPlainLines
                marks[key] = start
                if not rest:
                    here[key], open_key = None, key
                    continue
            elif not rest:
                raise NotPlainLines
            first = rest[0]
            value: Any
            if first in plain_start:
                if ": " in rest or " #" in rest or "\t" in rest or rest[-1] in ": ":
                    raise NotPlainLines
                value = words.get(rest, rest)
            elif first in numeric:
                if ": " in rest or " #" in rest or "\t" in rest or rest[-1] in ": " or rest[:2] in _ITEM_MARKS:
                    raise NotPlainLines
                if len(rest) < 16 and rest.isdecimal() and rest.isascii() and (first != "0" or rest == "0"):
                    value = int(rest)
                else:
                    value = scalars.resolve(rest)
                    parser.note_if_ambiguous(line.start(4), rest, value)
            elif first == "'" and rest[-1] == "'" and rest.count("'") == 2:
                value = rest[1:-1]
            elif first == '"' and rest[-1] == '"' and rest.count('"') == 2 and "\\" not in rest:
                value = rest[1:-1]
            elif first in "\"'[{|>":
                parser.depth = len(stack) + 2
                value = parser.inline(line.start(4), indent)
                end = _REST_OF_LINE.match(text, parser.i)
                if not end:
                    raise NotPlainLines
                at = end.end()
            else:
                raise NotPlainLines
            if is_map:
                here[key] = value
            else:
                here.append(value)
            if at is not None:
                break
    if not root or 2 * text.count("\n") + parser.nodes > _MAX_NODES:
        raise NotPlainLines
    root.at = next(iter(root.marks.values()))
    return root
