"""A parsed file: plain dicts and lists that remember where each part stood."""

from __future__ import annotations

import re
from itertools import accumulate

from ...printable import printable
from ..lazy_regex import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    Step: TypeAlias = str | int
    Path: TypeAlias = Sequence[Step]


SHOWN_LENGTHS = (37, 99)
"""Where `describe` and `cut` cut a text."""
MOST_HIDDEN = 200
"""Lines are shown only up to this number of secrets: each line is searched for each of them."""


SMALL = 8 * 1024
"""In a text up to this size a place is found more quickly than all lines are."""


class LIMITS:
    """What a document may be at most."""

    BYTES = 1024 * 1024
    REPEATED = 1024 * 1024
    """Characters that aliases repeat."""
    DEPTH = 64
    NODES = 50_000


class YamlError(Exception):
    """The text is not a document we read; `offset` says where."""

    def __init__(self, code: str, message: str, offset: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.offset = offset


class Map(dict[str, "Any"]):
    """A mapping; `marks[key]` is the offset of the key."""

    __slots__ = ("at", "marks")
    at: int
    marks: dict[str, int]


class List(list["Any"]):
    """A sequence; `marks[n]` is the offset of item n."""

    __slots__ = ("at", "marks")
    at: int
    marks: list[int]


def new_map(at: int = 0) -> Map:
    """An empty mapping that stands at an offset (a function: an __init__ would cost more than the dict)."""
    made = Map()
    made.at = at
    made.marks = {}
    return made


def new_list(at: int = 0) -> List:
    """An empty list that stands at an offset."""
    made = List()
    made.at = at
    made.marks = []
    return made


class Document:
    """The root value of a file, its text, and the scalars that other YAML readers see differently."""

    __slots__ = ("_hidden", "_lines", "_shown", "_span", "_starts", "ambiguous", "root", "text")

    def __init__(self, text: str, root: Any, ambiguous: Sequence[tuple[int, str, str]]) -> None:
        self.text = text
        self.root = root
        self.ambiguous = ambiguous
        # What places are worked out from, made once, with the first problem.
        self._lines: list[str] | None = None
        self._starts: list[int] = []
        self._hidden: list[str] | None = None
        self._span: tuple[int, int] | None = None
        self._shown: dict[int, str] = {}

    def path(self, path: Path) -> tuple[Step, ...]:
        """The place in this document of a place in the job that was read from it."""
        return tuple(path)

    def offset(self, path: Path, *, key: bool = False) -> int:
        """Where the value at `path` begins (or its key); the nearest parent's place if it is not there."""
        node, at = self.root, getattr(self.root, "at", 0)
        for depth, step in enumerate(path):
            last = depth == len(path) - 1
            if isinstance(node, Map) and isinstance(step, str) and step in node.marks:
                at = node.marks[step]
                node = node[step]
                at = at if key and last else self._value_after(at, node)
            elif isinstance(node, List) and isinstance(step, int) and step < len(node.marks):
                at = node.marks[step]
                node = node[step]
            else:
                break
        return at

    def _value_after(self, key_at: int, value: Any) -> int:
        found = _KEY_AND_SPACE.match(self.text, key_at)
        if not found or (value is None and not self.text.startswith(("~", "null", "Null", "NULL"), found.end())):
            return key_at  # an empty value has no place of its own
        return found.end()

    def in_secrets(self, offset: int) -> bool:
        """Whether a place is inside the top-level `secrets` of a job."""
        if self._span is None:
            self._span = self._secrets_span()
        start, end = self._span
        return start <= offset < end

    def shown_line(self, number: int) -> str:
        """A line of the text as it may be shown: no secret of this document, no control characters."""
        shown = self._shown.get(number)
        if shown is None:
            few = len(self._all_hidden()) <= MOST_HIDDEN  # a line may be long; a message shows only its beginning
            line = self.without_secrets(self.line(number)) if few else ""
            shown = self._shown[number] = printable(line, keep="\t", instead="\ufffd")
        return shown

    def without_secrets(self, text: str) -> str:
        """A line or message without any secret of this document."""
        for secret in self._all_hidden():
            if secret in text:
                text = text.replace(secret, "******")
        return text

    def _all_hidden(self) -> list[str]:
        if self._hidden is None:
            from ..document_secrets import hidden_in_lines  # only where something is wrong

            found = set(hidden_in_lines(self.root, self.text))
            # Messages repeat the beginning of a long text only.
            found |= {text[:most] for text in found for most in SHOWN_LENGTHS if len(text) > most}
            self._hidden = sorted(found, key=len, reverse=True)  # one may be part of another
        return self._hidden

    def _secrets_span(self) -> tuple[int, int]:
        if isinstance(self.root, Map):
            start = self.root.marks.get("secrets")
            if start is None:
                return 0, 0
            later = [at for at in self.root.marks.values() if at > start]
            return start, min(later, default=len(self.text))
        # The document could not be read: go by the look of the lines.
        found = re.search(r"^[\"']?secrets[\"']? *:", self.text, re.MULTILINE)
        if not found:
            return 0, 0
        after = re.compile(r"^[^\s#]", re.MULTILINE).search(self.text, found.end())
        return found.start(), after.start() if after else len(self.text)

    def find(self, fragment: str, start: int) -> int:
        """The first place of `fragment` from `start` on, or `start` itself."""
        found = self.text.find(fragment, start)
        return start if found < 0 else found

    def line(self, number: int) -> str:
        """The text of a line, counted from 1."""
        lines = self.text.split("\n", number) if len(self.text) <= SMALL else self._split()
        return lines[number - 1] if number <= len(lines) else ""

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Both count from 1; columns count characters."""
        if len(self.text) <= SMALL:
            line_start = self.text.rfind("\n", 0, offset) + 1
            return self.text.count("\n", 0, offset) + 1, offset - line_start + 1
        from bisect import bisect_right

        self._split()
        number = bisect_right(self._starts, offset)
        return number, offset - self._starts[number - 1] + 1

    def _split(self) -> list[str]:
        if self._lines is None:
            self._lines = self.text.split("\n")
            self._starts = list(accumulate((len(line) + 1 for line in self._lines[:-1]), initial=0))
        return self._lines


_KEY_AND_SPACE = pattern(
    r"""(?:\?\s++)?(?:"(?:[^"\\]++|\\[\s\S])*"|'(?:[^']++|'')*'(?!')|(?:[^:\s]++|:(?=[^\s,\[\]{}"'])|[ \t]++(?!:))*)\s*+:"""
    r"""(?:[ \t]|\n|(?<=[ \t\n])#[^\n]*)*"""
)
