"""The engines by name: a table of ours with their traits, then the entry-point group `pailot.engines`."""

from __future__ import annotations

from importlib import import_module

from ..errors import suggestion
from ..values import Value
from . import traits as known_traits
from .contract import EngineContext, EngineError
from .traits import Traits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .contract import Engine


class Entry(Value):
    """An engine that need not be loaded to be known."""

    target: str
    """Module and class, as `package.module:Class`."""
    traits: Traits


BUILT_IN = {
    "local": Entry("pailot.engines.local.engine:LocalEngine", known_traits.LOCAL),
    "docker": Entry("pailot.engines.docker.engine:DockerEngine", known_traits.DOCKER),
    "slurm": Entry("pailot.engines.slurm.engine:SlurmEngine", known_traits.SLURM),
    "kubernetes": Entry("pailot.engines.kubernetes.engine:KubernetesEngine", known_traits.KUBERNETES),
    "openpai": Entry("pailot.engines.openpai.engine:OpenpaiEngine", known_traits.OPENPAI),
}
DEFAULT = "local"


def create(name: str, context: EngineContext | None = None) -> Engine:
    """The engine of that name, for one run; `context` describes the process that it works for."""
    return load(name)(context)


def traits(name: str) -> Traits:
    """How the engine of that name differs from others; one of ours is not loaded for it."""
    known = BUILT_IN.get(name)
    return known.traits if known is not None else load(name).traits


def traits_of_run(name: str) -> Traits:
    """The same for an engine that a run's record names; it may have been removed from this machine since."""
    try:
        return traits(name)
    except EngineError:
        return Traits()


def check(name: str) -> None:
    """Refuse a name that no engine has, and an engine that cannot be used here."""
    known = BUILT_IN.get(name)
    if known is None or not known.traits.on_this_machine:  # ours on this machine say when they start what they lack
        load(name).check()


def load(name: str) -> type[Engine]:
    """The class of the engine of that name."""
    known = BUILT_IN.get(name)
    target = known.target if known is not None else _installed(name)
    if target is None:
        hint = "; 'docker' uses Podman, too" if name == "podman" else suggestion(name, BUILT_IN)
        raise EngineError(f"there is no engine '{name}'; there is {', '.join(BUILT_IN)}{hint}")

    module, _, attribute = target.partition(":")
    engine: type[Engine] = getattr(import_module(module), attribute)
    return engine


def names() -> list[str]:
    """Every engine that can be named here; to look for those of others costs 45 ms."""
    from importlib.metadata import entry_points

    return list(dict.fromkeys([*BUILT_IN, *(each.name for each in entry_points(group="pailot.engines"))]))


def _installed(name: str) -> str | None:
    """Only for a name that our table lacks: to look costs 45 ms."""
    from importlib.metadata import entry_points

    found = [each.value for each in entry_points(group="pailot.engines", name=name)]
    return found[0] if found else None
