"""Scripts that bash is sure to read: lines of plain words. Nothing needs to be asked of them.

`python train.py --rate "$RATE"` is such a line. What opens something (a quote, a bracket, a loop, a here-document), continues
a line, or has another meaning to bash is not plain, and then only bash knows.
"""

from __future__ import annotations

import re

_RESERVED = frozenset("if then else elif fi case esac for select while until do done in function time coproc".split())
_VARIABLE = r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})"
_LINE = rf"""(?:[A-Za-z0-9_./:=,@%+ \t-]|{_VARIABLE}|'[^'\\]*'|"(?:[^"$`\\!]|{_VARIABLE})*")*"""
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+- \t")
LONGEST_LINE = 2_000


def is_plain(script: str) -> bool:
    r"""Whether every line is a comment or a simple command of plain words.

    >>> is_plain("#!/bin/bash\necho \"$HOME\" '(as it is)'\n"), is_plain("for i in 1 2\n"), is_plain("echo 'open\n")
    (True, False, False)
    """
    return script.isascii() and all(_is_plain_line(line) for line in script.split("\n"))


def _is_plain_line(line: str) -> bool:
    line = line.strip(" \t")
    if line[:1] == "#" or not line:
        return "\r" not in line and "\0" not in line
    if len(line) > LONGEST_LINE or not _RESERVED.isdisjoint(line.split()):
        return False
    return _BARE.issuperset(line) or (line.isprintable() and re.fullmatch(_LINE, line) is not None)
