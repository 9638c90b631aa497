"""Data sets of the library for an attempt: said to be in use, fetched if they are not here, and the oldest unused removed."""

from __future__ import annotations

from ...data.data_sets import DataSets, fetch_all, wanted
from ...runtime import rights
from ..contract import EngineError
from .background_child import Whose, in_a_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..contract import Attempt, Engine, Steps


def bring_shared(attempt: Attempt, engine: Engine, stopped: Callable[[], bool]) -> Steps[Mapping[tuple[str, str], str]]:
    """The paths of the data sets that the attempt uses, by label and address.

    On a server a child fetches, as the user who does so for all, never as the job's: a job can neither fill what others read
    nor lend them its credentials. What a data set is called where it lies, this process says.
    """
    context = attempt.context
    found = wanted(attempt.plan)
    if not found:
        return {}
    here = DataSets(context.data_folder)
    here.prepare(_giver(context.data_user) if context.data_user else None)
    for each in found:
        here.note_use(each, attempt.folder)
    beside = engine.context.many_runs or context.rules.server

    def fetch() -> list[str]:
        return fetch_all(context.data_folder, found, context.rules, without_home=bool(context.data_user))

    def evict() -> int:
        return len(here.evict(context.data_bytes))

    if not beside:
        if fetch():
            evict()
    else:
        whose = Whose(context.rules, context.data_user, tuple(each.uri for each in found))
        fetched = yield from in_a_child(fetch, attempt.descriptors, engine, stopped, whose=whose)
        if fetched:
            yield from in_a_child(evict, attempt.descriptors, engine, stopped)
    return {(each.label, each.uri): here.path(each) for each in found}


def _giver(user: str) -> Callable[[str], None]:
    try:
        found = rights.unix_user(user)
    except KeyError:
        raise EngineError(f"data_cache_user: this machine has no Unix user {user}") from None
    return lambda folder: rights.give(folder, found, 0o755)
