"""Which files belong to a code folder: the rules of `.gitignore`, and a `.pailotignore` that is read in the same way.

A `.pailotignore` speaks after the `.gitignore` beside it, so that it can leave out more or (`!data`) take something back in.

A pattern is matched step by step of a path, and a step piece by piece, each at the first place where it fits: what lies between
two `**/`, or two `*`, has a fixed length, so a later place is never better and nothing is tried twice. However many of them
there are, the time is at most the length of the pattern times that of the path.
"""

from __future__ import annotations

import os
import re

from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import Protocol

    class Step(Protocol):
        """A compiled expression, as far as it is used."""

        def fullmatch(self, string: str, /) -> object: ...


FILES = (".gitignore", ".pailotignore")
ALWAYS = frozenset((".git",))
"""Never part of the code, whatever a file says."""
_NOTHING, _SOMETHING = re.compile("(?!)"), re.compile(".+", re.DOTALL)


ANYWHERE = None
"""`**/` in a pattern: any number of steps."""


class Rule(Value):
    """One line of an ignore file."""

    steps: tuple[Step | None, ...]
    """What each step of a path has to be, or ANYWHERE."""
    negated: bool
    folders_only: bool
    """It ended with a slash."""
    anchored: bool
    """It is matched against the whole path below its file, not against the name alone."""

    def matches(self, path: str, name: str, *, is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        return match_steps(self.steps, path.split("/") if self.anchored else (name,))


def match_steps(pattern: Sequence[Step | None], steps: Sequence[str]) -> bool:
    """Whether a path is as a pattern says; only the latest `**/` is ever tried further on."""
    at = place = begun = 0
    latest = -1
    while place < len(steps):
        wanted = pattern[at] if at < len(pattern) else _NOTHING
        if wanted is ANYWHERE:
            latest, begun = at, place
            at += 1
        elif wanted.fullmatch(steps[place]):
            at, place = at + 1, place + 1
        elif latest >= 0:
            begun += 1
            at, place = latest + 1, begun
        else:
            return False
    return all(each is ANYWHERE for each in pattern[at:])


def read_rules(text: str) -> list[Rule]:
    """The rules of an ignore file, in order."""
    found = []
    for line in text.removeprefix("\ufeff").split("\n"):
        rule = _rule(line.removesuffix("\r"))
        if rule is not None:
            found.append(rule)
    return found


def walk(
    folder: str,
    files: Sequence[str] = FILES,
    *,
    always: Collection[str] = ALWAYS,
    left_out: Callable[[os.DirEntry[str]], bool] = lambda _: False,
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """What is not ignored in a folder, sorted: the path below it, and its entry. A folder comes before what is in it.

    `files` say what is ignored; names in `always` and what is `left_out` are not looked at, whatever they say.
    """
    levels = [_level(folder, "", [], files)]
    while levels:
        entries, below, rules = levels[-1]
        if not entries:
            levels.pop()
            continue
        entry = entries.pop()
        path = f"{below}{entry.name}"
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name in always or _is_ignored(path, entry.name, is_folder, rules) or left_out(entry):
            continue
        yield path, entry
        if is_folder:
            levels.append(_level(entry.path, f"{path}/", rules, files))


def _level(
    folder: str, below: str, rules: list[tuple[str, list[Rule]]], files: Sequence[str]
) -> tuple[list[os.DirEntry[str]], str, list[tuple[str, list[Rule]]]]:
    """A folder that is just looked at: its entries, the last one first, its path and the rules that hold in it."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name, reverse=True)
    here = [rule for name in files for rule in _rules_of(folder, name)]
    return entries, below, [*rules, (below, here)] if here else rules


def _is_ignored(path: str, name: str, is_folder: bool, rules: list[tuple[str, list[Rule]]]) -> bool:
    """The last rule that matches decides; rules of deeper folders come later."""
    for base, each in reversed(rules):
        for rule in reversed(each):
            if rule.matches(path[len(base) :], name, is_folder=is_folder):
                return not rule.negated
    return False


def _rules_of(folder: str, name: str) -> list[Rule]:
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="surrogateescape", newline="") as stream:
            return read_rules(stream.read())
    except OSError:
        return []  # most folders have none


def _rule(line: str) -> Rule | None:
    if line.startswith("#"):
        return None
    line = _without_trailing_spaces(line)
    negated = line.startswith("!")
    if negated:
        line = line[1:]
    folders_only = line.endswith("/")
    if folders_only:
        line = line[:-1]
    if not line:
        return None
    anchored = "/" in line
    line = line.removeprefix("/") if anchored else line
    try:
        steps = _translate(line)
    except re.error:
        return None  # git has its own way with such brackets
    return None if steps is None else Rule(steps, negated, folders_only, anchored)


def _without_trailing_spaces(line: str) -> str:
    """Spaces at the end do not count, unless a backslash stands before them."""
    kept = len(line.rstrip(" "))
    if kept < len(line):
        backslashes = kept - len(line[:kept].rstrip("\\"))
        if backslashes % 2:
            kept += 1
    return line[:kept]


def _translate(glob: str) -> tuple[Step | None, ...] | None:
    """A pattern of git, step by step; None where git would match nothing."""
    steps: list[Step | None] = []
    pieces = [""]
    """Of the step at hand: expressions for what stands between its `*`."""
    position = 0
    while position < len(glob):
        char = glob[position]
        if char == "*":
            end = position
            while end < len(glob) and glob[end] == "*":
                end += 1
            starts = position == 0 or glob[position - 1] == "/"
            ends = end == len(glob) or glob[end] == "/"
            if end - position == 2 and starts and ends and "/" in glob:
                steps.append(ANYWHERE)
                if end == len(glob):
                    return (*steps, _SOMETHING)
                position = end + 1
            else:
                pieces.append("")
                position = end
        elif char == "/" or glob.startswith("\\/", position):
            steps.append(_step(pieces))
            pieces = [""]
            position += 1 if char == "/" else 2
        elif char == "?":
            pieces[-1] += "[^/]"
            position += 1
        elif char == "[":
            bracket = _bracket(glob, position)
            if bracket is None:
                return None
            text, position = bracket
            pieces[-1] += text
        elif char == "\\":
            if position + 1 == len(glob):
                return None
            pieces[-1] += re.escape(glob[position + 1])
            position += 2
        else:
            pieces[-1] += re.escape(char)
            position += 1
    return (*steps, _step(pieces))


def _step(pieces: Sequence[str]) -> Step:
    """One step of a path: what comes first, each piece where it first fits (`(?>…)` looks no further), what comes last."""
    first, *middle = pieces
    last = f"[^/]*{middle.pop()}" if middle else ""
    return re.compile(first + "".join(f"(?>[^/]*?{piece})" for piece in middle if piece) + last)


_NAMED = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r" \t\n\r\f\v",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9A-Fa-f",
    "cntrl": r"\x00-\x1f\x7f",
    "graph": "!-~",
    "print": " -~",
}


def _bracket(glob: str, start: int) -> tuple[str, int] | None:
    """`[a-z]` and its kin; never matches a slash."""
    position = start + 1
    negated = position < len(glob) and glob[position] in "!^"
    position += negated
    parts: list[str] = []
    first = True
    while position < len(glob) and (glob[position] != "]" or first):
        first = False
        if glob.startswith("[:", position):
            end = glob.find(":]", position + 2)
            if end < 0 or glob[position + 2 : end] not in _NAMED:
                return None
            parts.append(_NAMED[glob[position + 2 : end]])
            position = end + 2
            continue
        low, position = _member(glob, position)
        if low is None:
            return None
        if position + 1 < len(glob) and glob[position] == "-" and glob[position + 1] != "]":
            high, position = _member(glob, position + 1)
            if high is None:
                return None
            if ord(low) <= ord(high):  # otherwise the range is empty
                parts.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            parts.append(re.escape(low))
    if position >= len(glob):
        return None
    body = "".join(parts)
    if not body:
        return ("(?!)" if not negated else "[^/]"), position + 1
    return (f"(?!/)[{'^' if negated else ''}{body}]"), position + 1


def _member(glob: str, position: int) -> tuple[str | None, int]:
    if glob[position] == "\\":
        position += 1
        if position == len(glob):
            return None, position
    return glob[position], position + 1
