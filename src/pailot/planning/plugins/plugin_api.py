"""What a plugin returns, and small help for writing one."""

from __future__ import annotations

from ...protocol.model import START, Callback
from ...protocol.schema import EVENTS
from ...values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ...runfolder.plan import Provision

__all__ = [
    "Callback",
    "PluginError",
    "Steps",
    "callbacks_of",
    "on",
    "quote",
    "text",
    "texts",
    "variable",
]


class Steps(Value):
    """Commands by event, what Pailot must bring beforehand, and notes for the user.

    >>> Steps((on("containerStart", ["mkdir -p out"]),), notes=("made 'out'",)).callbacks[0].commands
    ('mkdir -p out',)
    """

    callbacks: tuple[Callback, ...] = ()
    provisions: tuple[Provision, ...] = ()
    notes: tuple[str, ...] = ()


class PluginError(ValueError):
    """A prerequisite that its plugin cannot handle; `key` is the one at fault."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


def on(event: str, commands: Iterable[str], policy: str = "fail") -> Callback:
    """A callback with commands for an event; with the policy `ignore` their failure is ignored.

    >>> on("containerStart", ["mkdir -p out"], "ignore").ignore_failure
    True
    """
    return Callback(event, tuple(commands), policy == "ignore")


def callbacks_of(nodes: Any, policy: str) -> tuple[Callback, ...]:
    """The callbacks given as parameters of a plugin, checked as those of a prerequisite are. Raises PluginError."""
    if not isinstance(nodes, list | tuple):
        raise PluginError("'callbacks' should be a list", "callbacks")
    return tuple(each if isinstance(each, Callback) else _callback(each, policy) for each in nodes)


def _callback(node: Any, policy: str) -> Callback:
    if not isinstance(node, dict) or node.get("event") not in EVENTS:
        raise PluginError(f"a callback needs an 'event', one of {', '.join(EVENTS)}", "callbacks")
    event = START if node["event"] == "taskStarts" else node["event"]
    return on(event, texts(node.get("commands"), "callbacks"), node.get("failurePolicy", policy))


def text(value: Any, key: str, *, needed: bool = True) -> str:
    """A parameter that is a text. Raises PluginError for anything else, and where it is `needed` and missing."""
    if value is None and not needed:
        return ""
    if not isinstance(value, str) or (needed and not value):
        raise PluginError(
            f"'{key}' should be a text" if value is not None else f"'{key}' is missing", key if value is not None else ""
        )
    return value


def texts(value: Any, key: str) -> list[str]:
    """A parameter that is a list of texts, or one text, as a list. Raises PluginError for anything else."""
    items = [value] if isinstance(value, str) else value or []
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise PluginError(f"'{key}' should be a list of texts", key)
    return list(items)


def variable(prefix: str, name: str) -> str:
    """A variable name made from a prerequisite's name: variable('PAI_FETCH', 'my-data') is PAI_FETCH_my_data."""
    return prefix + "_" + "".join(c if c.isascii() and c.isalnum() else "_" for c in name)


def quote(word: str) -> str:
    """A word for the shell that keeps $VARIABLES alive: spaces and quotes are safe, expansion is not prevented."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`")
    return f'"{escaped}"'
