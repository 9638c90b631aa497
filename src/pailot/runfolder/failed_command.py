"""The command that failed, in the words of the job file: from the record of a task's end and the plan of its run."""

from __future__ import annotations

from ..printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .records import TaskRecord

LONGEST_QUOTE = 80


def failed_command(plan: Mapping[str, Any], role: str, end: TaskRecord) -> str:
    """Say which command of a role failed, and how; empty where that is not known.

    `job.yaml:12: command 2 of worker: 'test -e /nonexistent' exited with 1`

    It quotes the job file, so it is only for users who may see that. `plan` is the kept one, in which secrets are masked.
    """
    where = end.failed_at
    if where is None:
        return ""
    try:
        planned = plan["taskRoles"][role]
        text = str(planned["script"][where["script"]])
        commands = planned["commandPlaces"].get(where["script"], [])
        if planned["commandPlaces"]["lines"].get(where["script"]) != text.count("\n"):
            text = ""
        lines = text.split("\n")
        said = _said(commands, lines, where["firstLine"], int(where["lastLine"]))
        trapped = not text or any("trap" in line for each in commands for line in lines[each[0] - 1 : each[1]])
    except (KeyError, TypeError, ValueError, AttributeError):
        return ""  # an earlier Pailot kept no places, or the record is spoilt
    # A trap may end the script with another status than that of the command.
    certain = said and end.signal is None and end.exit_code is not None and not trapped
    return f"{said} exited with {end.exit_code}" if certain else said


def _said(commands: Sequence[Any], lines: Sequence[str], first: int | None, last: int) -> str:
    ending = _at(commands, last)
    if ending is None:
        return ""
    beginning = _at(commands, first) if first is not None else None
    if beginning is None:
        return f"{ending[3]}: line {last} of its script" if ending[3] else f"line {last} of its script"
    place = f"{beginning[3]}: " if beginning[3] else ""
    if beginning[0] != ending[0]:
        return f"{place}{beginning[2]} to {ending[2]}"
    said = f"{place}{ending[2]}"
    if ending[0] != ending[1]:
        begins, ends = (first or last) - ending[0] + 1, last - ending[0] + 1
        said += f", line {ends}" if begins == ends else f", lines {begins} to {ends}"
    return f"{said}: {_quoted(lines[last - 1])}" if first == last and ending[4] and last <= len(lines) else said


def _at(commands: Sequence[Any], line: int) -> Any:
    return next((each for each in commands if each[0] <= line <= each[1]), None)


def _quoted(line: str) -> str:
    text = printable(line.strip())
    return f"'{text}'" if len(text) <= LONGEST_QUOTE else f"'{text[: LONGEST_QUOTE - 1]}…'"
