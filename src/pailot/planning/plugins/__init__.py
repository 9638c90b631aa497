"""Plugins: each turns a prerequisite into start and exit commands, as `plugin(**prerequisite)`.

A plugin is a callable that takes the keys of a prerequisite (templates rendered, `callbacks` as
`Callback` values) and returns `Steps`. Ours are in a table; others are found through the
entry-point group `pailot.plugins`, which is only looked at for a name the table lacks.
"""

from __future__ import annotations

import sys
from importlib import import_module

from .plugin_api import PluginError, Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Plugin: TypeAlias = Callable[..., Steps]

GROUP = "pailot.plugins"
_installed: dict[tuple[str, ...], dict[str, list[Any]]] = {}
_BUILTIN = {
    "cmd": "cmd",
    "docker": "cmd",
    "git": "git",
    "ssh": "ssh",
    "tensorboard": "tensorboard",
    "teamwise_storage": "storage",
    "python": "python",
    "fetch": "fetch",
}


def find(name: str) -> Plugin:
    """The plugin with this name."""
    module = _BUILTIN.get(name)
    if module is not None:
        plugin: Plugin = import_module(f".{module}", __name__).plugin
        return plugin
    for entry in _entry_points(name):
        loaded: Plugin = entry.load()
        return loaded
    raise PluginError("it is not installed", "")


def exists(name: str) -> bool:
    """Whether there is a plugin with this name, ours or an installed one."""
    return name in _BUILTIN or bool(_entry_points(name))


def _entry_points(name: str) -> list[Any]:
    """The installed plugins of a name; they are looked for once, since each look goes through all packages."""
    here = tuple(sys.path)
    if here not in _installed:
        from importlib.metadata import entry_points

        found: dict[str, list[Any]] = {}
        for each in entry_points(group=GROUP):
            found.setdefault(each.name, []).append(each)
        _installed.clear()
        _installed[here] = found
    return _installed[here].get(name, [])


__all__ = ["GROUP", "PluginError", "Steps", "exists", "find"]
