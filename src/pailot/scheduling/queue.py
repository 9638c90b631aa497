"""Which waiting job starts, which running one makes room, and why the others wait: for one machine.

A job is admitted whole or not at all. The rules:

- Each virtual cluster has a guaranteed share; what no cluster has is shared by all. A job of class crit, prod or test uses
  its cluster's share, then what is shared, and nothing else. So a cluster can always have its share.
- An opportunistic job uses whatever lies idle, wherever that belongs. It is stopped and queued again as soon as a job of
  another class may have the room. Nobody else ever is.
- A virtual cluster may limit how many jobs and GPUs each of its users has running in it. Who is at the limit waits aside: such a
  job is neither overtaken nor is room kept for it, and it keeps its place for when one of that user's jobs has ended.
- The line is ordered by class, then by arrival. A job for which there is room may overtake one for which there is none, but
  only `patience` times: after that, room that the one in front could use is kept for it. So in each class and cluster the
  first in line starts once those in front of it (higher classes, earlier arrivals) and what runs have ended, however big it is.

Nothing here asks for the time, reads or writes. `Queue` remembers what it was told, so that a decision costs little with
tens of thousands waiting: jobs of the same shape stand in one line, and only the first of each is looked at.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heapify, heappop, heappush

from ..values import Value
from . import wait_reasons
from .capacity import CLASSES, NOTHING, OPPORTUNISTIC, Capacity, Ledger, Share, amounts_of, capacity_of, minus, plus, shares_of
from .requests import Holding, Reason, Request, group_of
from .user_limits import UserBooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .capacity import Amounts, Group
    from .user_limits import Owner, UserLimits

    Shape = tuple[Amounts, Owner | None]
    """What a job asks for, and in whose name it is counted where users are limited: jobs of one shape are alike."""
    Place = tuple[float, int, str]
    """Where in the line of its class: arrival, serial number, id."""

PATIENCE = 16
"""After this many later jobs have started first, capacity is reserved for the head of the queue."""


class Decision(Value):
    """What to do now, in this order: stop `preempt`, start `start`."""

    start: tuple[str, ...] = ()
    preempt: tuple[str, ...] = ()
    why: Mapping[str, Reason] = {}
    overtaken: Mapping[str, int] = {}


def decide(
    machine: Capacity,
    clusters: Mapping[str, Share],
    running: Sequence[Holding],
    waiting: Sequence[Request],
    now: float = 0,
    patience: int = PATIENCE,
    limits: Mapping[str, UserLimits] | None = None,
) -> Decision:
    """One decision from nothing; who decides often keeps a `Queue`."""
    queue = Queue(machine, clusters, patience, limits)
    for holding in running:
        queue.hold(holding)
    for request in waiting:
        queue.add(request)
    made = queue.decide(now)
    return made.replace(why={each: queue.why(each) for each in queue.waiting()}, overtaken=queue.overtaken())


class Queue:
    """The line of one machine and what runs there."""

    def __init__(
        self,
        machine: Capacity,
        clusters: Mapping[str, Share] | None = None,
        patience: int = PATIENCE,
        limits: Mapping[str, UserLimits] | None = None,
    ) -> None:
        self.patience = patience
        self._serial = 0
        self._running: dict[str, Holding] = {}
        self._requests: dict[str, tuple[Request, Amounts, Place]] = {}
        self._never: dict[str, Request] = {}
        self._groups: dict[Group, _Line] = {}
        self._orders: tuple[list[Place], ...] = tuple([] for _ in CLASSES)
        self._overtaken: dict[str, int] = {}
        self._kept: list[str] = []
        self._promised: list[str] = []
        self.resize(machine, clusters or {}, limits)

    def resize(self, machine: Capacity, clusters: Mapping[str, Share], limits: Mapping[str, UserLimits] | None = None) -> None:
        """The machine, the shares or the limits are others now. Shares beyond the machine are cut in proportion."""
        self.machine, self.clusters = machine, dict(clusters)
        self._total = amounts_of(machine)
        self._ledger = Ledger(self._total, shares_of(self._total, clusters))
        self._books = UserBooks(limits or {})
        for holding in self._running.values():
            self._take(holding)
        again = [*self._never.values(), *(request for request, _, _ in self._requests.values())]
        self._never.clear()
        self._requests.clear()
        self._groups.clear()
        self._orders = tuple([] for _ in CLASSES)
        for request in sorted(again, key=lambda each: each.order):
            self.add(request)
        self._changed = True

    def add(self, request: Request) -> None:
        """A job waits from now on."""
        if request.id in self._requests or request.id in self._never or request.id in self._running:
            raise ValueError(f"{request.id} is in the queue already")
        group, demand = group_of(request), amounts_of(request)
        shape = self._shape(request, demand)
        if self._is_beyond(group, shape):
            self._never[request.id] = request
            return
        self._serial += 1
        place = (request.order, self._serial, request.id)
        self._requests[request.id] = (request, demand, place)
        if request.overtaken:
            self._overtaken.setdefault(request.id, request.overtaken)
        insort(self._orders[group[0]], place)
        self._groups.setdefault(group, _Line()).add(place, shape)
        self._changed = True

    def hold(self, holding: Holding) -> None:
        """A job runs that this queue has not started: the server was started anew."""
        request = holding.request
        if request.id in self._running:
            raise ValueError(f"{request.id} runs already")
        self._withdraw(request.id)
        self._running[request.id] = holding
        self._take(holding)
        self._changed = True

    def stopping(self, job: str) -> None:
        """A running job is being stopped, for whatever reason."""
        holding = self._running.get(job)
        if holding is None or holding.stopping:
            return
        group, demand = group_of(holding.request), amounts_of(holding.request)
        self._ledger.give(group, demand, stopping=False)
        self._running[job] = holding.replace(stopping=True)
        self._ledger.take(group, demand, stopping=True)
        self._changed = True

    def remove(self, job: str) -> None:
        """A running job has ended, or a waiting one is withdrawn; one that is not here is no mistake."""
        holding = self._running.pop(job, None)
        if holding is not None:
            demand = amounts_of(holding.request)
            self._ledger.give(group_of(holding.request), demand, stopping=holding.stopping)
            self._books.give(self._shape(holding.request, demand)[1], demand[2])
            self._changed = True
        self._withdraw(job)

    def waiting(self) -> list[str]:
        """Who waits, in line; then who never fits."""
        return [place[2] for line in self._orders for place in line] + list(self._never)

    def running(self) -> list[str]:
        """Who runs."""
        return list(self._running)

    def never_fits(self) -> list[str]:
        """Who can never start on this machine, in its cluster."""
        return list(self._never)

    def never_starts(self, request: Request) -> str:
        """Return why such a job could never start, in words; empty if it could."""
        return wait_reasons.never_words(self._standing(), request) if self._is_too_big(request) else ""

    def overtaken(self) -> Mapping[str, int]:
        """How often each first in line was overtaken."""
        return dict(self._overtaken)

    def used(self) -> Capacity:
        """What running jobs hold."""
        return capacity_of(minus(self._total, self._ledger.free))

    def used_by(self, vc: str) -> Capacity:
        """What the running jobs of a virtual cluster hold, the opportunistic included."""
        total = NOTHING
        for holding in self._running.values():
            if holding.request.vc == vc:
                total = plus(total, amounts_of(holding.request))
        return capacity_of(total)

    def decide(self, now: float = 0) -> Decision:
        """Decide which jobs start. The result is taken as done: they are counted as running, or as stopping."""
        if not self._changed:
            return Decision()
        self._changed = False
        turn = _Turn(self, now)
        for rank in range(OPPORTUNISTIC):
            turn.guaranteed(rank)
        turn.opportunistic()
        turn.put_back()
        self._kept, self._promised = turn.kept, turn.promised
        return Decision(tuple(turn.started), tuple(turn.preempted))

    def why(self, job: str) -> Reason:
        """Why a job waits; raises KeyError where it does not wait here. Decide first."""
        return wait_reasons.reason(self._standing(), job)

    def _standing(self) -> wait_reasons.QueueStanding:
        return wait_reasons.QueueStanding(
            self.clusters,
            self._total,
            self._ledger,
            self._books,
            self._running,
            self._requests,
            self._never,
            self._orders,
            self._promised,
            self._kept,
            self._overtaken,
        )

    def would_wait(self, request: Request) -> Reason:
        """What a job would wait for that came now; `ready` if it would start. Nothing changes."""
        changed, serial = self._changed, self._serial
        self.add(request)
        try:
            return self.why(request.id)
        finally:
            self._withdraw(request.id)
            self._changed, self._serial = changed, serial

    # Inside the room

    def _shape(self, request: Request, demand: Amounts) -> Shape:
        return demand, self._books.owner(request.vc, request.user)

    def _is_too_big(self, request: Request) -> bool:
        return self._is_beyond(group_of(request), self._shape(request, amounts_of(request)))

    def _is_beyond(self, group: Group, shape: Shape) -> bool:
        """Whether a job of this shape is more than its group, or its user, can ever have."""
        (cpu, memory, gpu), (has_cpu, has_memory, has_gpu) = shape[0], self._ledger.most(group)
        return cpu > has_cpu or memory > has_memory or gpu > has_gpu or self._books.never_permits(shape[1], gpu)

    def _take(self, holding: Holding) -> None:
        request, demand = holding.request, amounts_of(holding.request)
        self._ledger.take(group_of(request), demand, stopping=holding.stopping)
        self._books.take(self._shape(request, demand)[1], demand[2])

    def _withdraw(self, job: str) -> None:
        self._never.pop(job, None)
        self._overtaken.pop(job, None)
        found = self._requests.pop(job, None)
        if found is None:
            return
        request, demand, place = found
        group = group_of(request)
        line = self._orders[group[0]]
        del line[bisect_left(line, place)]
        if self._groups[group].remove(place, self._shape(request, demand)):
            del self._groups[group]
        self._changed = True

    def _start(self, job: str, now: float) -> None:
        holding = self._running[job] = Holding(self._requests[job][0], now)
        self._withdraw(job)
        self._take(holding)
        self._changed = False


class _Line:
    """The waiting jobs of a group, those of one shape together. What has left is dropped when it comes to the front."""

    def __init__(self) -> None:
        self.shapes: dict[Shape, list[Place]] = {}
        self.all: list[Place] = []
        self.gone: set[Place] = set()
        self.count = 0

    def add(self, place: Place, shape: Shape) -> None:
        heappush(self.shapes.setdefault(shape, []), place)
        heappush(self.all, place)
        self.count += 1

    def remove(self, place: Place, shape: Shape) -> bool:
        """Whether the line is empty now."""
        self.gone.add(place)
        self.count -= 1
        if self.first(shape) is None:
            del self.shapes[shape]
        if len(self.gone) > 64 and len(self.gone) > self.count:
            self._sweep()
        return not self.count

    def first(self, shape: Shape) -> Place | None:
        """The first of a shape."""
        line = self.shapes.get(shape)
        while line and line[0] in self.gone:
            heappop(line)
        return line[0] if line else None

    def head(self) -> Place:
        """The first of all."""
        while self.all[0] in self.gone:
            heappop(self.all)
        return self.all[0]

    def _sweep(self) -> None:
        """What left from the middle does not pile up."""
        self.all = [place for place in self.all if place not in self.gone]
        heapify(self.all)
        for line in self.shapes.values():
            line[:] = [place for place in line if place not in self.gone]
            heapify(line)
        self.gone.clear()


class _Turn:
    """One decision: the line is gone through once, on a copy of the ledger where room can be set aside."""

    def __init__(self, queue: Queue, now: float) -> None:
        self.queue, self.now = queue, now
        self.ledger = queue._ledger.copy()
        self.books = queue._books.copy()
        self.started: list[str] = []
        self.preempted: list[str] = []
        self.kept: list[str] = []
        """Those overtaken too often: room is kept for them."""
        self.promised: list[str] = []
        """Those whose room is being made."""
        self.passed: list[tuple[str, Group, Amounts]] = []
        """The firsts in line for which there is no room, and no reservation yet."""
        self.aside: list[tuple[Group, Shape, Place]] = []

    def guaranteed(self, rank: int) -> None:
        """The classes that have a right to their cluster's share."""
        for place, group, shape, is_head in self._candidates(rank):
            job, demand = place[2], shape[0]
            if not self.ledger.permits(group[1], demand):
                if is_head:
                    self._passed_over(job, group, demand)
            elif self.ledger.has_free(demand):
                shared = self.ledger.draws_on_shared(group[1], demand)
                self._start(job, group, shape)
                self._count(group, shared=shared)
            elif self._make_room(demand):
                self._promise(job, group, shape, place)
            elif is_head:
                self._passed_over(job, group, demand)

    def opportunistic(self) -> None:
        """Whatever is left, until another job may have it."""
        self.passed.clear()
        for place, group, shape, is_head in self._candidates(OPPORTUNISTIC):
            demand = shape[0]
            if self.ledger.has_free(demand):
                self._start(place[2], group, shape)
                self._count(group, shared=True)
            elif is_head:
                self._passed_over(place[2], group, demand)

    def put_back(self) -> None:
        """Those promised room go on waiting."""
        for group, shape, place in self.aside:
            heappush(self.queue._groups[group].shapes.setdefault(shape, []), place)

    def _candidates(self, rank: int) -> Iterator[tuple[Place, Group, Shape, bool]]:
        """The first of each group, and of each shape that fits, in line; a shape's next follows when its first has gone.

        Those whose users are at their limit are left out, as if they were not there.
        """
        heap: list[tuple[Place, Group, Shape]] = []
        queue = self.queue
        heads: set[Place] = set()
        for group, line in queue._groups.items():
            if group[0] != rank:
                continue
            head = self._head(group)
            if head is None:
                continue
            heads.add(head)
            heap.append((head, group, self._shape_of(head)))
            cpu, memory, gpu = self.ledger.room(group)
            for shape in line.shapes:
                demand = shape[0]
                if demand[0] <= cpu and demand[1] <= memory and demand[2] <= gpu and self._permitted(shape):
                    place = line.first(shape)
                    if place is not None and place != head:
                        heap.append((place, group, shape))
        heapify(heap)
        queued = {each[0] for each in heap}
        while heap:
            place, group, shape = heappop(heap)
            if not self._permitted(shape):
                continue  # one of that user's has started meanwhile
            gone = len(self.started) + len(self.aside)
            yield place, group, shape, place in heads
            if len(self.started) + len(self.aside) == gone:
                continue  # it stays, and so do all of its shape
            line_left = queue._groups.get(group)
            if line_left is None:
                continue
            following = line_left.first(shape)
            if following is not None and self._may_fit(group, shape):
                queued.add(following)
                heappush(heap, (following, group, shape))
            head_now = self._head(group) if place in heads else None
            if head_now is not None:
                heads.add(head_now)
                if head_now not in queued:
                    queued.add(head_now)
                    heappush(heap, (head_now, group, self._shape_of(head_now)))

    def _head(self, group: Group) -> Place | None:
        """The first of a group that is neither started nor promised room, and whose user is not at the limit."""
        line = self.queue._groups.get(group)
        if line is None:
            return None
        aside = {place for _, _, place in self.aside}
        if not aside and not self.books.limits:
            return line.head()
        shapes = [shape for shape in list(line.shapes) if self._permitted(shape)]
        firsts = [first for shape in shapes if (first := line.first(shape)) is not None and first not in aside]
        return min(firsts, default=None)

    def _shape_of(self, place: Place) -> Shape:
        request, demand, _ = self.queue._requests[place[2]]
        return self.queue._shape(request, demand)

    def _permitted(self, shape: Shape) -> bool:
        """Whether the user may have one such job more."""
        return self.books.permits(shape[1], shape[0][2])

    def _may_fit(self, group: Group, shape: Shape) -> bool:
        demand = shape[0]
        if not self._permitted(shape):
            return False
        if group[0] == OPPORTUNISTIC:
            return self.ledger.has_free(demand)
        return self.ledger.permits(group[1], demand)

    def _start(self, job: str, group: Group, shape: Shape) -> None:
        self.started.append(job)
        self._book(group, shape)
        self.queue._start(job, self.now)

    def _promise(self, job: str, group: Group, shape: Shape, place: Place) -> None:
        self.promised.append(job)
        self._book(group, shape)
        line = self.queue._groups[group]
        heappop(line.shapes[shape])
        self.aside.append((group, shape, place))

    def _book(self, group: Group, shape: Shape) -> None:
        self.ledger.take(group, shape[0], stopping=False)
        self.books.take(shape[1], shape[0][2])

    def _passed_over(self, job: str, group: Group, demand: Amounts) -> None:
        if self.queue._overtaken.get(job, 0) >= self.queue.patience:
            self._keep(job, group, demand)
        else:
            self.passed.append((job, group, demand))

    def _count(self, by: Group, *, shared: bool) -> None:
        """A job has started: those in front of it, which could have used the room, were overtaken."""
        overtaken = self.queue._overtaken
        for entry in list(self.passed):
            job, group, demand = entry
            if shared or group[1] == by[1]:
                overtaken[job] = overtaken.get(job, 0) + 1
                if overtaken[job] >= self.queue.patience:
                    self.passed.remove(entry)
                    self._keep(job, group, demand)

    def _keep(self, job: str, group: Group, demand: Amounts) -> None:
        """From here on in the line, room is used only where this job could not use it."""
        self.kept.append(job)
        if group[0] == OPPORTUNISTIC:
            self.ledger.free = minus(self.ledger.free, demand)
        else:
            self.ledger.book(group[1], demand)

    def _make_room(self, demand: Amounts) -> bool:
        """Have opportunistic jobs stopped until the demand is met: the last started first, and none in vain."""
        ledger = self.ledger
        need = [max(0, demand[kind] - ledger.free[kind] - ledger.leaving[kind]) if demand[kind] else 0 for kind in (0, 1, 2)]
        if not any(need):
            return True
        chosen: list[tuple[str, Amounts]] = []
        for job, held in self._victims():
            if any(need[kind] > 0 and held[kind] for kind in (0, 1, 2)):
                chosen.append((job, held))
                need = [need[kind] - held[kind] for kind in (0, 1, 2)]
                if max(need) <= 0:
                    break
        if max(need) > 0:
            return False
        for entry in sorted(chosen, key=lambda each: (each[1][2], each[1][0], each[1][1]), reverse=True):
            if all(need[kind] + entry[1][kind] <= 0 for kind in (0, 1, 2)):
                chosen.remove(entry)
                need = [need[kind] + entry[1][kind] for kind in (0, 1, 2)]
        for job, held in chosen:
            self.preempted.append(job)
            ledger.leaving = plus(ledger.leaving, held)
            self.queue.stopping(job)
        self.queue._changed = False
        return True

    def _victims(self) -> Iterator[tuple[str, Amounts]]:
        found = [
            (holding.started, job, amounts_of(holding.request))
            for job, holding in self.queue._running.items()
            if not holding.stopping and holding.request.priority == CLASSES[OPPORTUNISTIC]
        ]
        for _, job, held in sorted(found, reverse=True):
            yield job, held
