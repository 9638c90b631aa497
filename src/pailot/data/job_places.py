"""Every place that a plan names and that we open for its job. A new field that names one gets its line here, and nowhere else."""

from __future__ import annotations

from ..values import Value
from .addresses import NotAllowed
from .location import Location
from .provisions import sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..planning import Plan
    from .rules import Rules


class Named(Value):
    """A place, and where in the job file it is named."""

    field: tuple[str, ...]
    words: str
    location: Location


def named_by(plan: Plan, secrets: Mapping[str, str]) -> Iterator[Named]:
    """What a plan names, with its secrets inserted. What its tasks open themselves, with their own rights, is not among it."""
    channels = plan.options.channels
    if channels is not None:
        base = ("extras", "pailot", "channels")
        for kind, found in (("input", channels.sources), ("output", channels.targets)):
            for name, uri in found.items():
                yield Named((*base, f"{kind}s", name), f"the {kind} '{name}'", Location(uri, uri))
        if channels.code:
            yield Named((*base, "code"), "the code", Location(channels.code, channels.code))
    for role, location in sources(plan, secrets):
        yield Named(("taskRoles", role), f"what role '{role}' fetches", location)


def refusals(plan: Plan, secrets: Mapping[str, str], rules: Rules) -> Iterator[tuple[tuple[str, ...], str]]:
    """What a job may not use: where it is named, and why, in words that hold no secret."""
    for each in named_by(plan, secrets):
        try:
            each.location.check(rules)
            if each.location.local:
                each.location.path("", rules)
        except NotAllowed as problem:
            yield each.field, f"{each.words}: {problem}"
