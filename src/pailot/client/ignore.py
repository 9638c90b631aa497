"""Which files belong to a code folder: the rules of `.gitignore`, and a `.pailotignore` that is read in the same way.

A `.pailotignore` speaks after the `.gitignore` beside it, so that it can leave out more or (`!data`) take something back in.
"""

from __future__ import annotations

import os
import re

from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FILES = (".gitignore", ".pailotignore")
ALWAYS = frozenset((".git",))
"""Never part of the code, whatever a file says."""


class Rule(Value):
    """One line of an ignore file."""

    pattern: re.Pattern[str]
    negated: bool
    folders_only: bool
    """It ended with a slash."""
    anchored: bool
    """It is matched against the whole path below its file, not against the name alone."""

    def matches(self, path: str, name: str, *, is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        return self.pattern.fullmatch(path if self.anchored else name) is not None


def read_rules(text: str) -> list[Rule]:
    """The rules of an ignore file, in order."""
    found = []
    for line in text.removeprefix("\ufeff").split("\n"):
        rule = _rule(line.removesuffix("\r"))
        if rule is not None:
            found.append(rule)
    return found


def walk(folder: str, files: Sequence[str] = FILES) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """What is not ignored in a folder, sorted: the path below it, and its entry. A folder comes before what is in it."""
    yield from _walk(folder, "", [], files)


def _walk(
    folder: str, below: str, rules: list[tuple[str, list[Rule]]], files: Sequence[str]
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    here = [rule for name in files for rule in _rules_of(folder, name)]
    rules = [*rules, (below, here)] if here else rules
    for entry in entries:
        path = f"{below}{entry.name}"
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name in ALWAYS or _is_ignored(path, entry.name, is_folder, rules):
            continue
        yield path, entry
        if is_folder:
            yield from _walk(entry.path, f"{path}/", rules, files)


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
    pattern = _translate(line)
    return None if pattern is None else Rule(pattern, negated, folders_only, anchored)


def _without_trailing_spaces(line: str) -> str:
    """Spaces at the end do not count, unless a backslash stands before them."""
    kept = len(line.rstrip(" "))
    if kept < len(line):
        backslashes = kept - len(line[:kept].rstrip("\\"))
        if backslashes % 2:
            kept += 1
    return line[:kept]


def _translate(glob: str) -> re.Pattern[str] | None:
    """A pattern of git as a regular expression; None where git would match nothing."""
    out = []
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
                if end == len(glob):
                    out.append(".+" if position else ".*")
                    position = end
                else:
                    out.append("(?:.+/)?")
                    position = end + 1
            else:
                out.append("[^/]*")
                position = end
        elif char == "?":
            out.append("[^/]")
            position += 1
        elif char == "[":
            bracket = _bracket(glob, position)
            if bracket is None:
                return None
            text, position = bracket
            out.append(text)
        elif char == "\\":
            if position + 1 == len(glob):
                return None
            out.append(re.escape(glob[position + 1]))
            position += 2
        else:
            out.append(re.escape(char))
            position += 1
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error:
        return None


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
