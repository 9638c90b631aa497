"""Finding lines in the logs of a run: in all tasks, in all attempts of the job and of its tasks.

A hit is a line. Logs are read in blocks of whole lines. A line above `LONGEST_LINE_BYTES` is searched in parts that overlap.
A text is found in the bytes of a block, which is quick; a regular expression is tried line by line.
"""

from __future__ import annotations

import re

from ..values import Value
from . import layout, log_index, logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    Found: TypeAlias = tuple[int, int, int]
    """Where a line begins and ends in a block, and where in the block the match begins."""
    Step: TypeAlias = "Hit | int"
    """A hit, or how many bytes were looked at since the last such number: a moment to end early."""

BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 1 << 20
OVERLAP_BYTES = 4096
LONGEST_TEXT = 1000
"""The bytes around the match that are shown of a longer line."""
BEFORE_MATCH = 200
MAX_PATTERN = 1000


class BadPattern(ValueError):
    """A pattern that cannot be searched for."""


class Wanted(Value):
    """What is searched for, and where. None: in every role, every task, every attempt."""

    pattern: str
    regex: bool = False
    case: bool = False
    """Whether large and small letters are different."""
    role: str | None = None
    index: int | None = None
    attempt: int | None = None
    task_attempt: int | None = None
    stream: str = layout.ALL

    def to_json(self) -> dict[str, object]:
        return {
            "pattern": self.pattern, "regex": self.regex, "case": self.case, "role": self.role, "index": self.index,
            "attempt": self.attempt, "taskAttempt": self.task_attempt, "stream": self.stream,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Wanted:
        names = ("pattern", "regex", "case", "role", "index", "attempt", "taskAttempt", "stream")
        return cls(*(data[name] for name in names))


class Place(Value):
    """The logs of one attempt of a task."""

    role: str
    index: int
    attempt: int
    task_attempt: int
    folder: str


class Hit(Value):
    """A line that matches."""

    role: str
    index: int
    attempt: int
    task_attempt: int
    offset: int
    """Where the line begins in its log."""
    match: int
    """Where in the log the first match of the line begins."""
    line: int | None
    """The number of the line, from 1; None where the beginning of the log was rotated away."""
    at: int | None
    """When it was written, in ms since 1970, if that is known."""
    stderr: bool | None
    text: str
    cut: bool = False
    """Whether the line is longer than the text."""

    def to_json(self) -> dict[str, object]:
        return {
            "role": self.role, "index": self.index, "attempt": self.attempt, "taskAttempt": self.task_attempt,
            "offset": self.offset, "match": self.match, "line": self.line, "at": self.at, "stderr": self.stderr,
            "text": self.text, "cut": self.cut,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Hit:
        names = ("role", "index", "attempt", "taskAttempt", "offset", "match", "line", "at", "stderr", "text", "cut")
        return cls(*(data[name] for name in names))


class SearchEnd(Value):
    """How a search ended: `stopped` is empty where all was looked at, else `limit` or `time`."""

    hits: int
    stopped: str = ""
    bytes: int = 0


class Text:
    """Finds a text. Where case does not matter, that holds for the letters A to Z; `matcher` chooses another way for others."""

    def __init__(self, needle: str, *, case: bool) -> None:
        data = needle.encode(errors="surrogateescape")
        self._needle, self._case = (data, True) if case or data.lower() == data.upper() else (data.lower(), False)
        self.overlap = len(data) - 1

    def lines(self, block: bytes) -> Iterator[Found]:
        searched = block if self._case else block.lower()
        at = searched.find(self._needle)
        while at >= 0:
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            yield block.rfind(b"\n", 0, at) + 1, end, at
            at = searched.find(self._needle, end)


class Expression:
    """Finds a regular expression, in each line by itself."""

    overlap = OVERLAP_BYTES

    def __init__(self, pattern: str, *, case: bool) -> None:
        try:
            self._pattern = re.compile(pattern, 0 if case else re.IGNORECASE)
        except (re.error, OverflowError, RecursionError, ValueError) as error:
            raise BadPattern(f"the regular expression cannot be read: {error}") from None

    def lines(self, block: bytes) -> Iterator[Found]:
        search, begin = self._pattern.search, 0
        for line in block.split(b"\n"):
            text = line.decode(errors="replace")
            found = search(text)
            if found is not None:
                yield begin, begin + len(line), begin + len(text[: found.start()].encode())
            begin += len(line) + 1


def matcher(wanted: Wanted) -> Text | Expression:
    """What finds the lines. Raises BadPattern."""
    if not wanted.pattern:
        raise BadPattern("there is nothing to search for")
    if len(wanted.pattern) > MAX_PATTERN:
        raise BadPattern(f"the pattern has {len(wanted.pattern)} characters, more than {MAX_PATTERN}")
    if "\n" in wanted.pattern and not wanted.regex:
        raise BadPattern("a line holds no line end: search for one line at a time")
    if wanted.regex:
        return Expression(wanted.pattern, case=wanted.case)
    if is_quick(wanted):
        return Text(wanted.pattern, case=wanted.case)
    return Expression(re.escape(wanted.pattern), case=False)


def is_quick(wanted: Wanted) -> bool:
    """Whether a text is searched for, in time that is bounded by the size of the logs."""
    others = (letter for letter in wanted.pattern if not letter.isascii())
    return not wanted.regex and (wanted.case or all(each.lower() == each.upper() for each in others))


def places(run: str, roles: Mapping[str, int], wanted: Wanted) -> Iterator[Place]:
    """All logs that are wanted in the folder of a run, by attempt of the job, role and index."""
    for attempt in _some(wanted.attempt, layout.begun_attempts(run)):
        folder = layout.attempt_folder(run, attempt)
        for role, count in roles.items():
            if wanted.role in (None, role):
                for index in _some(wanted.index, count):
                    task = layout.task_folder(folder, role, index)
                    for number in _some(wanted.task_attempt, layout.begun_attempts(task)):
                        yield Place(role, index, attempt, number, layout.task_attempt_folder(task, number))


def _some(chosen: int | None, count: int) -> Sequence[int]:
    return range(count) if chosen is None else (chosen,) if 0 <= chosen < count else ()


def search(run: str, roles: Mapping[str, int], wanted: Wanted) -> Iterator[Step]:
    """Hits in the folder of a run, and numbers of bytes in between. Raises BadPattern at once."""
    finder = matcher(wanted)
    return (step for place in places(run, roles, wanted) for step in in_log(place, wanted.stream, finder))


def in_log(place: Place, stream: str, finder: Text | Expression) -> Iterator[Step]:
    """Hits in one log, and numbers of bytes."""
    offset = logs.begin(place.folder, stream)
    scan = _Scan(place, stream, finder, offset)
    while True:
        try:
            data, after = logs.read(place.folder, stream, offset, BLOCK_BYTES)
        except OSError:
            return  # the folder has gone
        if not data:
            break
        if after - len(data) != offset:  # what comes next was rotated away meanwhile
            yield from scan.finish()
            scan = _Scan(place, stream, finder, after - len(data))
        offset = after
        yield from scan.feed(data)
        yield len(data)
    yield from scan.finish()


class _Scan:
    """One log, block by block."""

    def __init__(self, place: Place, stream: str, finder: Text | Expression, offset: int) -> None:
        self._place, self._stream, self._finder = place, stream, finder
        self._line = 1 if offset == 0 else None
        self._line_begin = self._base = offset
        """Where the line begins that the next block begins in, and where that block begins."""
        self._rest = b""
        self._told = False
        """Whether a part of this line was found already."""
        self._times: log_index.LogIndex | None = None
        self._has_looked = False

    def feed(self, data: bytes) -> Iterator[Hit]:
        whole = data.rfind(b"\n") + 1
        if whole:
            block, self._rest = self._rest + data[:whole], data[whole:]
            yield from self._search(block)
        else:
            self._rest += data
            if len(self._rest) >= LONGEST_LINE_BYTES:
                block = self._rest
                self._rest = block[len(block) - self._finder.overlap :]
                yield from self._search(block, len(block) - len(self._rest))

    def finish(self) -> Iterator[Hit]:
        yield from self._search(self._rest)

    def _search(self, block: bytes, used: int | None = None) -> Iterator[Hit]:
        """Look at a block. `used`: how many of its bytes will not be looked at again; by default all."""
        counted = 0
        for begin, end, match in self._finder.lines(block[:-1] if block.endswith(b"\n") else block):
            if self._line is not None:
                self._line += block.count(b"\n", counted, begin)
            counted = begin
            if begin > 0 or not self._told:
                yield self._hit(block, begin, end, match)
            self._told = self._told or begin == 0
        last = block.rfind(b"\n") + 1
        if self._line is not None:
            self._line += block.count(b"\n", counted)
        if last:
            self._line_begin, self._told = self._base + last, False
        self._base += len(block) if used is None else used

    def _hit(self, block: bytes, begin: int, end: int, match: int) -> Hit:
        offset = self._base + begin if begin else self._line_begin
        if not self._has_looked:
            self._times, self._has_looked = log_index.read(self._place.folder, self._stream), True
        entry = self._times.at(self._base + match) if self._times else -1
        first = begin if end - begin <= LONGEST_TEXT else max(begin, match - BEFORE_MATCH)
        last = min(end, first + LONGEST_TEXT)
        return Hit(
            self._place.role,
            self._place.index,
            self._place.attempt,
            self._place.task_attempt,
            offset,
            self._base + match,
            self._line,
            self._times.times[entry] if self._times and entry >= 0 else None,
            self._times.errors[entry] if self._times and entry >= 0 else None,
            block[first:last].decode(errors="replace"),
            cut=last - first < end - begin or offset < self._base,
        )


def roles_of(plan: Mapping[str, Any]) -> dict[str, int]:
    """The roles of a plan and how many tasks each has."""
    return {name: int(node["instances"]) for name, node in plan.get("taskRoles", {}).items()}
