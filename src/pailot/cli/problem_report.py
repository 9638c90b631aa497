"""Problems as a person reads them: place, code, message, the line and a caret."""

from __future__ import annotations

import os

from ..printable import Styled, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

    from ..problem import Problem

_RED, _YELLOW, _BOLD, _PLAIN = "\033[31m", "\033[33m", "\033[1m", "\033[0m"


def print_problems(problems: Iterable[Problem], stream: TextIO) -> None:
    """Every problem with its source line."""
    colour = use_colour(stream)
    for problem in problems:
        text = format_problem(problem, colour=colour) + "\n"
        stream.write(Styled(text) if colour else text)


def format_problem(problem: Problem, *, colour: bool = False) -> str:
    """`file:line:column: error[code]: message`, then the line with a caret below."""
    where = f"{printable(problem.place)}:"
    kind = f"{problem.severity}[{problem.code}]:"
    if colour:
        where = f"{_BOLD}{where}{_PLAIN}"
        kind = f"{_RED if problem.is_error else _YELLOW}{kind}{_PLAIN}"
    text = f"{where} {kind} {printable(problem.message)}"
    if problem.source.strip():
        text += "\n" + _with_caret(problem.source, problem.column)
    return text


def use_colour(stream: TextIO) -> bool:
    """Colours on a terminal, unless NO_COLOR says otherwise."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def count_text(problems: Iterable[Problem]) -> str:
    """'2 errors, 1 warning', '100 errors and 1,234 more'."""
    severities, more = [], ""
    for problem in problems:
        if problem.code == "more-problems":
            more = f" {problem.message}"
        else:
            severities.append(problem.severity)
    parts = []
    for kind in ("error", "warning"):
        count = severities.count(kind)
        if count:
            parts.append(f"{count} {kind}{'s' if count > 1 else ''}")
    return ", ".join(parts) + more


def _with_caret(line: str, column: int, width: int = 100) -> str:
    """The part of a line around a column, and a caret below it."""
    start = max(0, column - 1 - width // 2) if len(line) > width else 0
    shown = line[start : start + width].replace("\t", " ")
    lead = "…" if start else ""
    tail = "…" if start + width < len(line) else ""
    return f"    {lead}{shown}{tail}\n    {' ' * (len(lead) + column - 1 - start)}^"
