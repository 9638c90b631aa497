"""Lines of tasks on a terminal: which task they are from, in its role's colour, and what a carriage return does to them."""

from __future__ import annotations

import os

from ..printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_COLOURS = (36, 33, 32, 35, 34, 31)
"""Cyan, yellow, green, magenta, blue, red: the roles of a job in turn."""


def is_screen(descriptor: int) -> bool:
    """Whether a descriptor leads to a terminal that can erase a line."""
    return os.isatty(descriptor) and os.environ.get("TERM") != "dumb"


def has_colours(descriptor: int) -> bool:
    return is_screen(descriptor) and not os.environ.get("NO_COLOR")


class Label:
    """`[worker:0] ` before the lines of a task, in the colour of its role."""

    def __init__(self, role: str, index: int, roles: Sequence[str], *, colour: bool) -> None:
        text = f"[{role}:{index}]"
        self.columns = len(text) + 1
        if colour and role in roles:
            text = f"\033[{_COLOURS[roles.index(role) % len(_COLOURS)]}m{text}\033[0m"
        self.text = f"{text} "
        self.data = self.text.encode()

    def unfinished(self, line: bytes, columns: int) -> str:
        """A line without its end yet, as wide as the terminal allows; what moves the cursor is left out."""
        return self.text + cut(_plain(replaced(line).decode(errors="replace")), columns - self.columns)


def replaced(line: bytes) -> bytes:
    """A line as a terminal shows it in the end: what stands after a carriage return replaces what stood before."""
    if b"\r" not in line:
        return line
    return next((part for part in reversed(line.split(b"\r")) if part), b"")


def _plain(text: str) -> str:
    import re

    return printable(re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", text), instead=" ")


def cut(text: str, columns: int) -> str:
    """The beginning of a text that fits into a number of columns; some characters take two, some none."""
    if text.isascii():
        return text[: max(columns, 0)]
    import unicodedata

    used = 0
    for position, character in enumerate(text):
        if not unicodedata.combining(character):
            used += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used > columns:
            return text[:position]
    return text
