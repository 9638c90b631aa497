"""Where the reader stands in a text: what can be skipped, what is too much, and the words for what is wrong."""

from __future__ import annotations

import re

from ..lazy_regex import pattern
from .document import LIMITS, YamlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_BLANK = pattern(r"[ \t]*+(?:#[^\n]*+)?(?:\n[ \t]*+(?:#[^\n]*+)?)*")
_END_OF_LINE = pattern(r"(?:[ \t]++#[^\n]*+|[ \t]*+)\n")
SPACES = pattern(r"[ \t]*+")
MARKER = pattern(r"(?:---|\.\.\.)(?=[ \t\n])")


class Cursor:
    """A place in a text, and what was found before it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.i = 0
        self.flow_indent = 0  # that lines inside [] and {} need to go on with a text
        self.depth = 0
        self.nodes = 0
        self.repeated = 0
        """Characters that stand here for the second time, by an alias."""
        self.anchors: dict[str, tuple[Any, int, int]] = {}
        self.ambiguous: list[tuple[int, str, str]] = []

    def _enter(self, at: int) -> None:
        self.nodes += 1
        self.depth += 1
        if self.depth > LIMITS.DEPTH:
            self._fail("yaml-limit", f"nested deeper than {LIMITS.DEPTH} levels", at)
        if self.nodes > LIMITS.NODES:
            self._fail("yaml-limit", f"more than {LIMITS.NODES} values, aliases counted in full", at)

    def _leave(self, value: Any, end: int) -> Any:
        self.depth -= 1
        self.i = end
        return value

    def _skip(self, at: int) -> int:
        """Past white space, comments and empty lines."""
        end = _BLANK.match(self.text, at).end()  # type: ignore[union-attr]  # matches everywhere
        return end

    def _skip_blank_lines(self, at: int) -> int:
        text = self.text
        while True:
            at = SPACES.match(text, at).end()  # type: ignore[union-attr]  # matches everywhere
            if at >= len(text) or text[at] != "\n":
                return at
            at += 1

    def _column(self, at: int) -> int:
        return at - self.text.rfind("\n", 0, at) - 1

    def _indent_of(self, at: int) -> int:
        """Spaces at the start of the line that `at` is the first content of."""
        start = self.text.rfind("\n", 0, at) + 1
        end = start
        while end < at and self.text[end] == " ":
            end += 1
        return end - start

    def _end_line(self) -> None:
        at = self.i
        if at >= len(self.text) or (at and self.text[at - 1] == "\n"):
            return
        if not _END_OF_LINE.match(self.text, at):
            stray = SPACES.match(self.text, at).end()  # type: ignore[union-attr]  # matches everywhere
            self._fail("yaml-syntax", self._stray(stray), stray)

    # Words for what went wrong

    def _fail(self, code: str, message: str, at: int) -> NoReturn:
        raise YamlError(code, message, min(at, len(self.text) - 1))

    def _stray(self, at: int) -> str:
        rest = self._rest_of_line(at)
        if rest.startswith(":"):
            if re.fullmatch(r"[\w.$ -]+", self.text[self.text.rfind("\n", 0, at) + 1 : at]):
                return "this line goes on with the value above it, where no key can stand; check the indentation"
            return "a second ': ' on this line; quote the value if the colon belongs to it"
        if rest.startswith("<%"):
            return "a template cannot follow here; quote the whole value: '… <% … %> …'"
        return f"{rest[:30]!r} is not expected here; check the indentation, or quote the value"

    def _not_a_key(self, at: int) -> str:
        rest = self._rest_of_line(at)
        if rest.startswith("- ") or rest == "-":
            return "a list item stands between 'key: value' lines; check the indentation"
        if re.match(r"[A-Za-z_][\w-]*:\S", rest):
            return f"a space is missing after the colon in {rest[:30]!r}"
        return f"expected 'key: value', found {rest[:30]!r}; check the indentation"

    def _not_plain(self, at: int) -> str:
        first = self.text[at]
        if first in "@`%":
            return f"a text cannot begin with {first}; put it in quotes"
        if first == ",":
            return "an item is missing before this comma; quote a text that begins with one"
        if first in "]}":
            return f"{first!r} has no opening bracket here; quote a text that begins with it"
        if first == "\t":
            return "a tab is used for indentation; use spaces"
        return f"a value is expected here, found {self._rest_of_line(at)[:30]!r}; put a text in quotes"

    def _flow_problem(self, at: int, closing: str) -> str:
        start = self.text.rfind("\n", 0, at) + 1
        if "<%" in self.text[start:at] or "<%" in self._rest_of_line(at):
            return f"expected ',' or '{closing}'; inside [] and {{}} a template must be quoted: '<% … %>'"
        return f"expected ',' or '{closing}', found {self._rest_of_line(at)[:30]!r}"

    def _bad_indent(self, at: int, column: int, indent: int) -> str:
        if "\t" in self.text[at - column : at]:
            return "a tab is used for indentation; use spaces"
        return f"this line is indented by {column} spaces, the entries before it by {indent}; align it or quote the value above"

    def _rest_of_line(self, at: int) -> str:
        end = self.text.find("\n", at)
        return self.text[at : end if end >= 0 else len(self.text)].rstrip()
