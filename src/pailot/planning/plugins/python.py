"""`python`: the callbacks' commands are Python."""

from __future__ import annotations

from .plugin_api import PluginError, Steps, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...protocol.model import Callback


def plugin(*, callbacks: Any = (), interpreter: Any = "python3", **_: Any) -> Steps:
    """Run Python code when a task starts and when it ends."""
    command = text(interpreter, "interpreter")
    if not callbacks:
        raise PluginError("there are no 'callbacks' with Python code")
    return Steps(tuple(each.replace(commands=(_heredoc(command, each),)) for each in callbacks))


def _heredoc(interpreter: str, each: Callback) -> str:
    code = "\n".join(each.commands).rstrip("\n")
    mark = "END"
    while mark in code.split("\n"):
        mark += "_"
    return f"{interpreter} - <<'{mark}'\n{code}\n{mark}"
