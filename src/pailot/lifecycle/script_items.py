"""Which command of a script ended it, in the words of the job file."""

from __future__ import annotations

from ..values import Value

LONGEST_SCRIPT = 16_384
"""Commands of a longer script are not named: bash reads one whose reading is followed byte by byte."""
LONGEST_QUOTE = 80
MOST_TRIES = 8
"""So often the text before a command is looked at to find where the command begins."""


class Item(Value):
    """One command of the job file in a script: its lines there, counted from 1, and what it is called."""

    first: int
    last: int
    name: str
    """`command 2 of worker`"""
    place: str = ""
    """`job.yaml:12`; empty where the job is no file."""


def starts(items: tuple[Item, ...], last: int) -> list[int]:
    """Lines at which the command that ends in the line `last` may begin, the nearest first."""
    item = next((each for each in items if each.first <= last <= each.last), None)
    if item is None:
        return []
    near = [last] if last != item.first else []
    return [*near, *sorted((each.first for each in items if each.first <= last), reverse=True)][:MOST_TRIES]


def needs_no_look(items: tuple[Item, ...], line: int) -> bool:
    """Whether only words of ours stand before a line."""
    return line == items[0].first


def continues(text: str) -> bool:
    """Whether a text ends with a backslash that joins the next line to it."""
    line = text.rstrip("\n").rpartition("\n")[2]
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def described(items: tuple[Item, ...], lines: list[str], first: int | None, last: int) -> str:
    """The command between two lines of a script, in words; `first` is None where its beginning is not known."""
    ending = next((each for each in items if each.first <= last <= each.last), None)
    if ending is None:
        return ""
    beginning = next((each for each in items if first is not None and each.first <= first <= each.last), None)
    if beginning is None:
        return f"line {last} of its script"
    if beginning is not ending:
        return f"{_at(beginning)}{beginning.name} to {ending.name}"
    what = f"{_at(ending)}{ending.name}"
    if ending.first != ending.last:
        begins, ends = (first or last) - ending.first + 1, last - ending.first + 1
        what += f", line {ends}" if begins == ends else f", lines {begins} to {ends}"
    return f"{what}: {_quoted(lines[last - 1])}" if first == last else what


def _at(item: Item) -> str:
    return f"{item.place}: " if item.place else ""


def _quoted(line: str) -> str:
    text = "".join(each if each.isprintable() else "?" for each in line.strip())
    return f"'{text}'" if len(text) <= LONGEST_QUOTE else f"'{text[: LONGEST_QUOTE - 1]}…'"
