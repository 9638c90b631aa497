"""Why a job waits, in words: what is missing, who holds it, where in the line it stands, or that it can never fit."""

from __future__ import annotations

from bisect import bisect_left

from ..values import Value
from .capacity import CLASSES, NOTHING, OPPORTUNISTIC, amounts_of, minus
from .requests import Reason, group_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .capacity import Amounts, Group, Ledger, Share
    from .requests import Holding, Request
    from .user_limits import Owner, UserBooks

KINDS = ("cpu", "memory_mb", "gpu")
SHOWN = 5
"""At most this many names are listed; the rest is counted."""


class QueueStanding(Value):
    """How a queue stands when it is asked why a job waits; it is only looked at."""

    clusters: Mapping[str, Share]
    total: Amounts
    ledger: Ledger
    books: UserBooks
    running: Mapping[str, Holding]
    requests: Mapping[str, tuple[Request, Amounts, Any]]
    never: Mapping[str, Request]
    """Those that can never start."""
    orders: Sequence[Sequence[Any]]
    """The places of those that wait, a line for each class."""
    promised: Sequence[str]
    kept: Sequence[str]
    overtaken: Mapping[str, int]


def reason(queue: QueueStanding, job: str) -> Reason:
    """Why a job of that queue waits."""
    request = queue.never.get(job)
    if request is not None:
        return _never(queue, request)
    request, demand, place = queue.requests[job]
    group = group_of(request)
    position = sum(len(line) for line in queue.orders[: group[0]]) + bisect_left(queue.orders[group[0]], place) + 1
    length = sum(map(len, queue.orders))
    standing = f"it is number {position} of {length} in line"
    if job in queue.promised:
        holders = _names(_leaving(queue))
        text = f"{_listed(holders)} {'is' if len(holders) == 1 else 'are'} being stopped to make room for it; {standing}"
        return Reason("stopping", text, {}, holders, position, length)
    owner = queue.books.owner(request.vc, request.user)
    if owner is not None and not queue.books.permits(owner, demand[2]):
        holders, text = _at_the_limit(queue, owner, demand)
        return Reason("limit", f"{text}; {standing}", {}, holders, position, length)
    missing = _missing(queue, group, demand)
    if missing == NOTHING:
        front = tuple(queue_name(queue, each) for each in (*queue.promised, *queue.kept) if each != job)
        if not front:
            return Reason("ready", f"there is room for it now; {standing}", {}, (), position, length)
        text = f"the room for it is kept for {_listed(front)}, which came before it; {standing}"
        return Reason("kept", text, {}, front, position, length)
    holders = _names(_holding(queue, group, missing))
    whose = "" if group[0] == OPPORTUNISTIC else f" for virtual cluster '{request.vc}'" if queue.clusters else ""
    free = minus(demand, missing)
    parts = [
        f"{amount(kind, missing[kind])} more{whose} (it asks for {number(kind, demand[kind])}, {_free(kind, free[kind])})"
        for kind in (2, 0, 1)
        if missing[kind]
    ]
    text = f"it waits for {' and '.join(parts)}"
    if holders:
        text += f"; {_listed(holders)} {'holds' if len(holders) == 1 else 'hold'} what it needs"
    if job in queue.kept:
        text += f"; it was overtaken {queue.overtaken.get(job, 0)} times, so what becomes free is kept for it"
    return Reason("room", f"{text}; {standing}", _as_mapping(missing), holders, position, length)


def never_words(queue: QueueStanding, request: Request) -> str:
    """Return why a job that is too big can never start."""
    return _never(queue, request).text


def queue_name(queue: QueueStanding, job: str) -> str:
    """What messages call a job that waits."""
    request = queue.requests[job][0]
    return request.name or request.id


def amount(kind: int, value: int) -> str:
    """'2 GPUs', '0.5 CPUs', '2048 MB of memory'."""
    if kind == 1:
        return f"{value} MB of memory"
    return f"{number(kind, value)} {'GPU' if kind == 2 else 'CPU'}{'' if number(kind, value) == '1' else 's'}"


def number(kind: int, value: int) -> str:
    """An amount without its unit."""
    return f"{value / 1000:g}" if kind == 0 else str(value)


def _at_the_limit(queue: QueueStanding, owner: Owner, demand: Amounts) -> tuple[tuple[str, ...], str]:
    """Which of a user's own jobs it waits for, and what the limit is."""
    vc, user = owner
    limit, (jobs, gpus) = queue.books.limits[vc], queue.books.held.get(owner, (0, 0))
    own = [each for each in queue.running.values() if (each.request.vc, each.request.user) == owner]
    if limit.jobs is not None and jobs + 1 > limit.jobs:
        count = f"{limit.jobs} {'job' if limit.jobs == 1 else 'jobs'}"
        what, after = f"run {count}", f"{jobs} {'runs' if jobs == 1 else 'run'}"
    else:
        own = [each for each in own if each.request.gpu]
        what, after = f"use {amount(2, limit.gpus or 0)}", f"{gpus} {'is' if gpus == 1 else 'are'} in use"
        after += f", and it asks for {demand[2]}"
    holders = _names([(amounts_of(each.request), each.request.name or each.request.id) for each in own])
    text = f"{user} may {what} at once in virtual cluster '{vc}', and {after}; it waits for the end of {_listed(holders, 'or')}"
    return holders, text


def _never(queue: QueueStanding, request: Request) -> Reason:
    group, demand = group_of(request), amounts_of(request)
    owner = queue.books.owner(request.vc, request.user)
    if owner is not None and queue.books.never_permits(owner, demand[2]):
        limit = queue.books.limits[request.vc]
        may = "run no job" if limit.jobs == 0 else f"use {amount(2, limit.gpus or 0)} at once"
        asks = "" if limit.jobs == 0 else f"it asks for {amount(2, demand[2])}, and "
        text = f"it can never start: {asks}each user may {may} in virtual cluster '{request.vc}'"
        return Reason("never", text, {}, (), 0, 0)
    most = queue.ledger.most(group)
    missing = tuple(max(0, asked - has) for asked, has in zip(demand, most))  # noqa: B905  # Python 3.9
    parts = [
        f"it asks for {amount(kind, demand[kind])}, and {_place(queue, request)} has {number(kind, most[kind])}"
        for kind in (2, 0, 1)
        if missing[kind]
    ]
    text = f"it can never start: {'; '.join(parts)}"
    if group[0] != OPPORTUNISTIC and all(
        asked <= has
        for asked, has in zip(demand, queue.total)  # noqa: B905  # Python 3.9
    ):
        text += "; as an opportunistic job (jobPriorityClass: oppo) it could use the whole machine"
    return Reason("never", text, _as_mapping(missing), (), 0, 0)


def _place(queue: QueueStanding, request: Request) -> str:
    if request.priority == CLASSES[OPPORTUNISTIC] or queue.ledger.shared == list(queue.total):
        return "this machine"
    return f"virtual cluster '{request.vc}', with what is shared by all,"


def _missing(queue: QueueStanding, group: Group, demand: Amounts) -> Amounts:
    ledger = queue.ledger
    lacking = NOTHING if group[0] == OPPORTUNISTIC else ledger.lacking(group[1], demand)
    if lacking != NOTHING:
        return lacking
    if group[0] != OPPORTUNISTIC:  # it has a right to the room; opportunistic jobs are on their way out
        return NOTHING
    short = [min(asked, max(0, asked - max(0, has))) for asked, has in zip(demand, ledger.free)]  # noqa: B905  # Python 3.9
    return (short[0], short[1], short[2])


def _holding(queue: QueueStanding, group: Group, missing: Amounts) -> list[tuple[Amounts, str]]:
    """Who has what is missing: all that run for an opportunistic job, else its cluster and those who draw on the shared rest."""
    ledger = queue.ledger
    found = []
    for holding in queue.running.values():
        request = holding.request
        rank, vc = group_of(request)
        held = amounts_of(request)
        useful = (missing[0] and held[0], missing[1] and held[1], missing[2] and held[2])
        if not any(useful):
            continue
        if group[0] != OPPORTUNISTIC:
            share, used = ledger.shares.get(vc, NOTHING), ledger.used.get(vc, NOTHING)
            draws = any(useful[kind] and used[kind] > share[kind] for kind in (0, 1, 2))
            if rank == OPPORTUNISTIC or (vc != group[1] and not draws):
                continue
        found.append(((useful[2], useful[0], useful[1]), request.name or request.id))
    return found


def _leaving(queue: QueueStanding) -> list[tuple[Amounts, str]]:
    return [
        (amounts_of(holding.request), holding.request.name or holding.request.id)
        for holding in queue.running.values()
        if holding.stopping and holding.request.priority == CLASSES[OPPORTUNISTIC]
    ]


def _names(found: Sequence[tuple[Amounts, str]]) -> tuple[str, ...]:
    return tuple(name for _, name in sorted(found, key=lambda each: ((-each[0][0], -each[0][1], -each[0][2]), each[1])))


def _listed(names: Sequence[str], last: str = "and") -> str:
    shown = list(names[:SHOWN])
    if len(names) > SHOWN:
        shown.append(f"{len(names) - SHOWN} more")
    if len(shown) < 2:
        return shown[0] if shown else "nothing"
    return f"{', '.join(shown[:-1])} {last} {shown[-1]}"


def _free(kind: int, value: int) -> str:
    if not value:
        return "none is free" if kind != 1 else "nothing is free"
    return f"{number(kind, value)} {'is' if value == 1 or kind == 1 else 'are'} free"


def _as_mapping(missing: Sequence[int]) -> dict[str, float]:
    values = (missing[0] / 1000, missing[1], missing[2])
    return {name: value for name, value in zip(KINDS, values) if value}  # noqa: B905  # Python 3.9
