"""The engines by name: a table of ours, then the entry-point group `pailot.engines`."""

from __future__ import annotations

from .contract import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .contract import Engine

BUILT_IN = {
    "local": "pailot.engines.local.engine:LocalEngine",
    "docker": "pailot.engines.docker.engine:DockerEngine",
    "slurm": "pailot.engines.slurm.engine:SlurmEngine",
    "openpai": "pailot.engines.openpai.engine:OpenpaiEngine",
}

GO_ON = frozenset({"slurm"})
"""Engines whose jobs go on when the process that started them dies, and tell whoever looks how they are."""
FOLLOWED = frozenset({"openpai"})
"""Engines whose jobs go on as well, but are known only to a process that follows them."""


def create(name: str, waiting: Callable[[str], None] = lambda _: None) -> Engine:
    """The engine of that name; `waiting` is told, in words, what it waits for."""
    target = BUILT_IN.get(name) or _installed(name)
    if target is None:
        raise EngineError(f"there is no engine '{name}'; there is {', '.join(BUILT_IN)}")
    from importlib import import_module

    module, _, attribute = target.partition(":")
    engine: Engine = getattr(import_module(module), attribute)(waiting)
    return engine


def check(name: str) -> None:
    """Refuse a name that no engine has."""
    if name not in BUILT_IN and _installed(name) is None:
        raise EngineError(f"there is no engine '{name}'; there is {', '.join(BUILT_IN)}")
    if name == "slurm":
        from .slurm.slurm_cli import check as check_slurm

        check_slurm()


def _installed(name: str) -> str | None:
    """Only for a name that our table lacks: to look costs 45 ms."""
    from importlib.metadata import entry_points

    found = [each.value for each in entry_points(group="pailot.engines", name=name)]
    return found[0] if found else None
