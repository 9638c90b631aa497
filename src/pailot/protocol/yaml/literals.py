"""Texts in quotes, and block texts after `|` and `>`."""

from __future__ import annotations

import re

from ..lazy_regex import pattern
from .cursor import Cursor

_SINGLE = pattern(r"'((?:[^']++|'')*)'(?!')")
_DOUBLE = pattern(r'"((?:[^"\\]++|\\[\s\S])*)"')
# White space before a break stays: OpenPAI keeps it.
_SINGLE_BREAKS = pattern(r"\n[ \t\n]*+")
_DOUBLE_BREAKS = pattern(r"\\\n[ \t\n]*+|\\.|\n[ \t\n]*+")
_HEADER = pattern(r"[|>](?:([-+])([0-9])?|([0-9])([-+])?)?(?:[ \t]++#[^\n]*+|[ \t]*+)\n")
_FIRST_LINE = pattern(r"(?: *+\n)*( *+)")
_ESCAPE = pattern(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([\s\S]))")
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f",
    "r": "\r", "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0",
    "L": "\u2028", "P": "\u2029",
}  # fmt: skip


class Literals(Cursor):
    """Reads what is not plain."""

    def quoted(self, at: int) -> str:
        text = self.text
        single = text[at] == "'"
        found = (_SINGLE if single else _DOUBLE).match(text, at)
        if not found:
            self._fail("yaml-syntax", f"the quote {text[at]} that opens here is never closed", at)
        self.i = found.end()
        body = found[1]
        if "\n" in body:
            marker = re.compile(r"\n(?:---|\.\.\.)(?=[ \t\n])").search(text, at, found.end())
            if marker:
                self._fail("yaml-syntax", "the document ends inside a quoted text", at)
            body = (_SINGLE_BREAKS if single else _DOUBLE_BREAKS).sub(_fold_quoted, body)
        if single:
            return body.replace("''", "'")
        return self._unescape(body, at) if "\\" in body else body

    def _unescape(self, body: str, at: int) -> str:
        def character(found: re.Match[str]) -> str:
            code = found[1] or found[2] or found[3]
            if code:
                number = int(code, 16)
                if number > 0x10FFFF:
                    self._fail("yaml-syntax", f"there is no character \\U{code}", at)
                return chr(number)
            if found[4] not in _ESCAPES:
                self._fail("yaml-syntax", f"unknown escape '\\{found[4]}'; write \\\\ for a backslash or use '…' quotes", at)
            return _ESCAPES[found[4]]

        value = _ESCAPE.sub(character, body)
        if any("\ud800" <= c <= "\udfff" for c in value):
            try:
                value = value.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                self._fail("yaml-encoding", "half of a surrogate pair is not a character", at)
        return value

    def block_scalar(self, at: int, parent: int) -> str:
        text = self.text
        header = _HEADER.match(text, at)
        if not header:
            self._fail("yaml-syntax", "after | or > only -, + and a digit may stand on this line", at)
        chomp = header[1] or header[4] or ""
        digit = header[2] or header[3]
        body = header.end()
        indent = parent + int(digit) if digit else 0
        if not digit:
            first = _FIRST_LINE.match(text, body)
            assert first
            indent = len(first[1])
            longest = max((len(line) for line in text[body : first.start(1)].split("\n")), default=0)
            if indent <= parent or first.end() >= len(text):
                indent = max(parent + 1, longest)
            elif longest > indent:
                self._fail("yaml-syntax", "an empty line of this text is indented deeper than its first line", at)
        if indent < 1 or digit == "0":
            self._fail("yaml-syntax", "the lines of a block text are indented by at least one space", at)
        block = _block_lines(indent).match(text, body)
        assert block
        raw = block[0]
        self.i = body + len(raw) - 1 if raw else body - 1
        lines = [line[indent:] for line in raw.split("\n")[:-1]]
        kept = len(lines)
        while kept and not lines[kept - 1]:
            kept -= 1
        content = "\n".join(lines[:kept]) if text[at] == "|" else _fold_block(lines[:kept])
        if chomp == "-" or (not kept and not chomp):
            return content
        return content + "\n" * (1 + len(lines) - kept if chomp == "+" and kept else len(lines) if chomp == "+" else 1)


def _fold_quoted(found: re.Match[str]) -> str:
    """A line break in quotes is a space, n of them are n-1 breaks, one after a backslash is nothing."""
    breaks = found[0]
    if breaks[0] == "\\":
        return "" if breaks[1] == "\n" else breaks
    return "\n" * (breaks.count("\n") - 1) or " "


def _fold_block(lines: list[str]) -> str:
    """'>' text: single breaks between unindented lines become spaces."""
    out, pending, more_before = "", 0, True
    for position, line in enumerate(lines):
        if not line:
            pending += 1
            continue
        more = line[0] in " \t"
        if position == pending and not out:
            out = "\n" * pending
        elif more or more_before:
            out += "\n" * (pending + 1)
        else:
            out += "\n" * pending if pending else " "
        out += line
        pending, more_before = 0, more
    return out


_block_cache: dict[int, re.Pattern[str]] = {}


def _block_lines(indent: int) -> re.Pattern[str]:
    if indent not in _block_cache:
        if len(_block_cache) > 256:
            _block_cache.clear()
        _block_cache[indent] = re.compile(rf"(?:(?: {{{indent}}}[^\n]*+| *+)\n)*")
    return _block_cache[indent]
