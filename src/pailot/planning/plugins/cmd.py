"""`cmd`, the default: callbacks as written; also OpenPAI's preCommands and postCommands."""

from __future__ import annotations

from ...protocol.model import START, SUCCEEDS
from .plugin_api import PluginError, Steps, on, texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def plugin(
    *,
    callbacks: Any = (),
    preCommands: Any = None,  # noqa: N803  # the file's own spelling
    postCommands: Any = None,  # noqa: N803  # the file's own spelling
    failurePolicy: str = "fail",  # noqa: N803  # the file's own spelling
    **_: Any,
) -> Steps:
    """Run shell commands when a task starts and when it ends."""
    if callbacks and (preCommands or postCommands):
        raise PluginError("give either 'callbacks' or 'preCommands' and 'postCommands', not both", "callbacks")
    found = list(callbacks)
    if preCommands:
        found.append(on(START, texts(preCommands, "preCommands"), failurePolicy))
    if postCommands:
        found.append(on(SUCCEEDS, texts(postCommands, "postCommands"), failurePolicy))
    return Steps(tuple(found))
