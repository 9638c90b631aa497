"""The queue against a naive model, and what it promises in any course of events."""

from __future__ import annotations

import heapq
import os
import random
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.scheduling.capacity import CLASSES, Capacity, Ledger, Share
from pailot.scheduling.queue import Decision, Queue, decide
from pailot.scheduling.requests import Holding, Request
from pailot.scheduling.user_limits import UserBooks, UserLimits

MACHINE = Capacity(8, 8_000, 8)
LIMITS = {"a": UserLimits(jobs=2), "b": UserLimits(gpus=2), "c": UserLimits(1, 4)}
SHARES = {"a": Share(3, 3_000, 3), "b": Share(2, 2_000, 4)}


def amounts(of: Capacity | Request) -> tuple[float, ...]:
    return (of.cpu, of.memory_mb, of.gpu)


def plus(one: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
    return tuple(left + right for left, right in zip(one, other, strict=True))


def within(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(left <= right for left, right in zip(one, other, strict=True))


def total(jobs: Sequence[Request]) -> tuple[float, ...]:
    result: tuple[float, ...] = (0, 0, 0)
    for job in jobs:
        result = plus(result, amounts(job))
    return result


class Naive:
    """The rules as one would write them without a thought for speed: every job is looked at every time, with sums made anew."""

    def __init__(
        self, machine: Capacity, shares: dict[str, Share], patience: int, limits: dict[str, UserLimits] | None = None
    ) -> None:
        self.machine, self.shares, self.patience, self.limits = machine, shares, patience, limits or {}
        self.running: dict[str, Holding] = {}
        self.line: list[Request] = []
        self.overtaken: dict[str, int] = {}

    def at_the_limit(self, job: Request, beside: Sequence[Request]) -> bool:
        """Whether the job's user may not have it beside these."""
        limit = self.limits.get(job.vc, UserLimits())
        own = [each for each in beside if (each.vc, each.user) == (job.vc, job.user)]
        too_many = limit.jobs is not None and len(own) >= limit.jobs
        return too_many or (limit.gpus is not None and job.gpu > 0 and sum(each.gpu for each in own) + job.gpu > limit.gpus)

    def never(self, job: Request) -> bool:
        if self.at_the_limit(job, []):
            return True
        if job.priority == "oppo":
            return not within(amounts(job), amounts(self.machine))
        return not self.allowed([job])

    def allowed(self, jobs: Sequence[Request], blame: Request | None = None, kinds: Sequence[int] = (0, 1, 2)) -> bool:
        """Whether these guaranteed jobs fit into the shares and the rest; `blame`: whether the fault is not this one's."""
        for kind in kinds:
            rest = amounts(self.machine)[kind] - sum(amounts(share)[kind] for share in self.shares.values())
            beyond = {}
            for vc in {job.vc for job in jobs}:
                share = amounts(self.shares.get(vc, Share()))[kind]
                beyond[vc] = max(0, total([job for job in jobs if job.vc == vc])[kind] - share)
            if sum(beyond.values()) > rest:
                if blame is None:
                    return False
                if amounts(blame)[kind] and beyond[blame.vc] > 0:
                    return False
        return True

    def decide(self) -> tuple[list[str], set[str]]:
        started: list[str] = []
        preempted: set[str] = set()
        phantoms: list[Request] = []
        promised: list[Request] = []
        waiting_heads: list[Request] = []
        oppo_kept: list[Request] = []
        for name in CLASSES:
            if name == "oppo":
                waiting_heads = []
            blocked: set[str] = set()
            for job in sorted((each for each in self.line if each.priority == name), key=lambda each: (each.order, each.id)):
                if self.never(job) or self.at_the_limit(job, [*(each.request for each in self.running.values()), *promised]):
                    continue
                group = "" if name == "oppo" else job.vc
                is_head = group not in blocked
                holdings = [each.request for each in self.running.values()]
                free = [
                    have - used
                    for have, used in zip(
                        amounts(self.machine),
                        total([*holdings, *promised, *(oppo_kept if name == "oppo" else [])]),
                        strict=True,
                    )
                ]
                fits = all(asked == 0 or asked <= has for asked, has in zip(amounts(job), free, strict=True))
                guaranteed = [each for each in holdings if each.priority != "oppo"] + promised + phantoms
                permitted = name == "oppo" or self.allowed([*guaranteed, job], blame=job)
                if permitted and fits:
                    draws = name == "oppo" or any(
                        asked and used > has
                        for asked, used, has in zip(
                            amounts(job),
                            total([each for each in [*guaranteed, job] if each.vc == job.vc]),
                            amounts(self.shares.get(job.vc, Share())),
                            strict=True,
                        )
                    )
                    self.running[job.id] = Holding(job, started=len(started))
                    self.line.remove(job)
                    self.overtaken.pop(job.id, None)
                    started.append(job.id)
                    for head in list(waiting_heads):
                        if draws or head.vc == job.vc:
                            self.overtaken[head.id] = self.overtaken.get(head.id, 0) + 1
                            if self.overtaken[head.id] >= self.patience:
                                waiting_heads.remove(head)
                                (oppo_kept if name == "oppo" else phantoms).append(head)
                    continue
                if permitted and name != "oppo":
                    victims = self.victims(job, free)
                    if victims is not None:
                        promised.append(job)
                        preempted |= {each.request.id for each in victims}
                        for each in victims:
                            self.running[each.request.id] = each.replace(stopping=True)
                        continue
                blocked.add(group)
                if is_head:
                    if self.overtaken.get(job.id, 0) >= self.patience:
                        (oppo_kept if name == "oppo" else phantoms).append(job)
                    else:
                        waiting_heads.append(job)
        return started, preempted

    def victims(self, job: Request, free: Sequence[float]) -> list[Holding] | None:
        leaving = total([e.request for e in self.running.values() if e.stopping and e.request.priority == "oppo"])
        asked = amounts(job)

        def enough(chosen: Sequence[Holding]) -> bool:
            have = plus(plus(free, leaving), total([each.request for each in chosen]))
            return all(asked[kind] == 0 or asked[kind] <= have[kind] for kind in (0, 1, 2))

        if enough([]):
            return []
        everyone = [e for e in self.running.values() if not e.stopping and e.request.priority == "oppo"]
        return everyone if enough(everyone) else None


jobs = st.builds(
    Request,
    id=st.just(""),
    cpu=st.integers(0, 9),
    memory_mb=st.integers(0, 9).map(lambda each: each * 1000),
    gpu=st.sampled_from([0, 0, 1, 2, 4, 8, 9]),
    priority=st.sampled_from(CLASSES),
    vc=st.sampled_from(["a", "b", "c"]),
    user=st.sampled_from(["ann", "bob"]),
)
courses = st.lists(st.one_of(jobs, st.integers(0, 30)), min_size=1, max_size=60)


@given(courses, st.sampled_from([0, 1, 3]), st.booleans(), st.booleans())
def test_it_decides_as_the_naive_model_does(course: list[Request | int], patience: int, shares: bool, limited: bool) -> None:
    clusters, limits = SHARES if shares else {}, LIMITS if limited else {}
    queue, model = Queue(MACHINE, clusters, patience, limits), Naive(MACHINE, clusters, patience, limits)
    for number, step in enumerate(course):
        if isinstance(step, int):
            everyone = sorted(model.running)
            if not everyone:
                continue
            ended = everyone[step % len(everyone)]
            again = model.running.pop(ended)
            queue.remove(ended)
            if again.stopping:
                model.line.append(again.request)
                queue.add(again.request)
        else:
            request = step.replace(id=f"{number:03}", order=number)
            queue.add(request)
            model.line.append(request)
        made = queue.decide(number)
        before = {key: holding.stopping for key, holding in model.running.items()}
        expected, possible = model.decide()
        assert list(made.start) == expected
        assert bool(made.preempt) == bool(possible)
        assert set(made.preempt) <= possible
        for each in possible - set(made.preempt):  # the model stops all of them, the queue only whom it needs
            if not before[each]:
                model.running[each] = model.running[each].replace(stopping=False)
        assert {k: v for k, v in queue.overtaken().items() if v} == {k: v for k, v in model.overtaken.items() if v}


@given(courses)
def test_no_user_ever_has_more_than_the_limits_allow(course: list[Request | int]) -> None:
    """And all that can run does in the end: who waits aside is not forgotten."""
    queue = Queue(MACHINE, SHARES, 1, LIMITS)
    asked: dict[str, Request] = {}
    preempted: set[str] = set()

    def decided() -> None:
        made = queue.decide()
        preempted.update(made.preempt)
        for vc, limit in LIMITS.items():
            for user in ("ann", "bob"):
                own = [asked[each] for each in queue.running() if (asked[each].vc, asked[each].user) == (vc, user)]
                assert limit.jobs is None or len(own) <= limit.jobs
                assert limit.gpus is None or sum(each.gpu for each in own) <= limit.gpus
        for job in queue.waiting():
            reason = queue.why(job)
            assert reason.text
            if reason.kind == "limit":
                owner = (asked[job].vc, asked[job].user)
                named = {each for each in reason.holders if (asked[each].vc, asked[each].user) == owner}
                assert named, "a limit is told without whose end is waited for"
                assert named == set(reason.holders)

    def ended(job: str) -> None:
        queue.remove(job)
        if job in preempted:
            preempted.discard(job)
            queue.add(asked[job])

    for number, step in enumerate(course):
        if isinstance(step, int):
            running = sorted(queue.running())
            if running:
                ended(running[step % len(running)])
        else:
            request = asked[f"{number:03}"] = step.replace(id=f"{number:03}", order=number)
            queue.add(request)
        decided()
    while queue.running():
        ended(min(queue.running()))
        decided()
    assert set(queue.waiting()) == set(queue.never_fits())


class Course:
    """A course of events in which every job ends some time; after each decision the promises are checked."""

    def __init__(self, machine: Capacity, shares: dict[str, Share], patience: int, *, check: bool = True) -> None:
        self.queue = Queue(machine, shares, patience)
        self.machine, self.shares, self.patience, self.check = machine, shares, patience, check
        self.jobs: dict[str, tuple[Request, float]] = {}
        self.ends: list[tuple[float, str]] = []
        self.running: dict[str, Request] = {}
        self.stopping: set[str] = set()
        self.waiting: dict[str, Request] = {}
        self.heads: dict[str, int] = {}
        self.finished = self.preemptions = self.decisions = 0
        self.longest_line = 0

    def run(self, arrivals: Sequence[tuple[float, Request, float]], *, grace: float = 0.5) -> None:
        coming = sorted(arrivals, key=lambda each: each[0], reverse=True)
        while coming or self.ends:
            now = min(coming[-1][0] if coming else float("inf"), self.ends[0][0] if self.ends else float("inf"))
            while coming and coming[-1][0] == now:
                _, request, seconds = coming.pop()
                self.jobs[request.id] = (request, seconds)
                self.waiting[request.id] = request
                self.queue.add(request)
            while self.ends and self.ends[0][0] == now:
                self._ended(heapq.heappop(self.ends)[1])
            self._decided(self.queue.decide(now), now, grace)
        assert not self.running
        assert set(self.waiting) == set(self.queue.never_fits())

    def _ended(self, job: str) -> None:
        if job not in self.running:
            return  # it was stopped before
        request = self.running.pop(job)
        self.queue.remove(job)
        if job in self.stopping:
            self.stopping.discard(job)
            self.waiting[job] = request
            self.queue.add(request)
        else:
            self.finished += 1

    def _decided(self, made: Decision, now: float, grace: float) -> None:
        self.decisions += 1
        self.longest_line = max(self.longest_line, len(self.waiting))
        for job in made.preempt:
            assert self.running[job].priority == "oppo"
            assert job not in self.stopping
            self.stopping.add(job)
            self.preemptions += 1
            self.ends = [each for each in self.ends if each[1] != job]
            heapq.heapify(self.ends)
            heapq.heappush(self.ends, (now + grace, job))
        for job in made.start:
            request = self.waiting.pop(job)
            self.running[job] = request
            self.heads.pop(job, None)  # should it be stopped for another, it begins anew
            heapq.heappush(self.ends, (now + self.jobs[job][1], job))
        if self.check:
            self._check_promises(made)

    def _check_promises(self, made: Decision) -> None:
        running = list(self.running.values())
        assert within(total(running), amounts(self.machine)), "more is given than there is"
        line = [self.waiting[each] for each in self.queue.waiting() if each not in set(self.queue.never_fits())]
        reasons = {job.id: self.queue.why(job.id) for job in line}
        firsts: dict[str, Request] = {}
        for job in line:
            if job.priority != "oppo":
                firsts.setdefault(job.vc, job)
        for vc, job in firsts.items():
            used = total([each for each in running if each.vc == vc and each.priority != "oppo"])
            if within(plus(used, amounts(job)), amounts(self.shares.get(vc, Share()))):
                assert reasons[job.id].kind == "stopping", "a cluster waits for its own share"
        kinds = {reason.kind for reason in reasons.values()}
        assert "ready" not in kinds, "room lies idle"
        for reason in reasons.values():
            assert reason.kind != "room" or (reason.missing and reason.holders)
        # How often the first of a class and cluster is overtaken by those of the same that came later.
        groups: dict[tuple[str, str], Request] = {}
        for job in line:
            groups.setdefault((job.priority, "" if job.priority == "oppo" else job.vc), job)
        for (priority, vc), job in groups.items():
            later = [
                each
                for each in made.start
                if self.running[each].priority == priority
                and vc in ("", self.running[each].vc)
                and self.running[each].order > job.order
            ]
            harmful = [each for each in later if self._harms(self.running[each], job)]
            self.heads[job.id] = self.heads.get(job.id, 0) + len(harmful)
            assert self.heads[job.id] <= self.patience, "it was overtaken too often"

    def _harms(self, other: Request, job: Request) -> bool:
        """Whether `other`, which runs, has something that `job` lacks now."""
        running = list(self.running.values())
        for kind in (0, 1, 2):
            if not amounts(other)[kind] or not amounts(job)[kind]:
                continue
            if job.priority == "oppo":
                short = total([*running, job])[kind] > amounts(self.machine)[kind]
            else:
                guaranteed = [each for each in running if each.priority != "oppo"]
                short = not Naive(self.machine, self.shares, 0).allowed([*guaranteed, job], kinds=(kind,))
            if short:
                return True
        return False


@given(
    st.lists(
        st.tuples(st.floats(0, 30).map(lambda each: round(each, 1)), jobs, st.sampled_from([0.5, 1.0, 3.0, 9.0])),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([0, 1, 4]),
    st.booleans(),
)
def test_in_any_course_of_events_the_promises_hold(
    arrivals: list[tuple[float, Request, float]], patience: int, shares: bool
) -> None:
    numbered = [
        (when, request.replace(id=f"{number:03}", order=when + number / 1000), seconds)
        for number, (when, request, seconds) in enumerate(arrivals)
    ]
    course = Course(MACHINE, SHARES if shares else {}, patience)
    course.run(numbered)
    assert course.finished + len(course.waiting) == len(arrivals)


def random_jobs(count: int, seed: int, load: float) -> Iterator[tuple[float, Request, float]]:
    """A stream that keeps the machine about as busy as `load` says: mostly small jobs, some that want all of it."""
    dice = random.Random(seed)
    now = 0.0
    for number in range(count):
        gpus = dice.choices([0, 1, 2, 4, 8], [50, 30, 12, 6, 2])[0]
        seconds = dice.expovariate(1 / 20)
        now += dice.expovariate(1 / (seconds * max(gpus / 8, 1 / 16))) / load
        request = Request(
            id=str(number),
            cpu=max(1, gpus),
            memory_mb=dice.choice([100, 200, 500, 900]),
            gpu=gpus,
            priority=dice.choices(CLASSES, [5, 35, 40, 20])[0],
            vc=dice.choice(["a", "b", "c"]),
            order=now,
        )
        yield now, request, seconds


@pytest.mark.parametrize("load", [0.9, 1.5])
def test_a_long_course(load: float) -> None:
    """Every job ends or never fits; jobs that want the whole machine are among them. In `make soak` it is 100,000 of them."""
    count = 100_000 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 4_000
    machine = Capacity(16, 16_000, 8)
    shares = {"a": Share(4, 4_000, 2), "b": Share(4, 4_000, 2)}
    course = Course(machine, shares, 16, check=False)
    course.run(list(random_jobs(count, 1, load)))
    assert course.finished + len(course.waiting) == count
    assert all(course.queue.why(each).kind == "never" for each in course.waiting)
    assert course.preemptions


def test_the_big_job_starts_though_small_ones_never_cease() -> None:
    queue = Queue(Capacity(4, 4_000, 4), patience=5)
    queue.add(Request("small-0", gpu=1, order=0))
    queue.decide()
    queue.add(Request("big", "u~big", gpu=4, order=1))
    overtook = 0
    for number in range(1, 100):
        queue.add(Request(f"small-{number}", gpu=1, order=1 + number))
        started = queue.decide().start
        overtook += len(started)
        if number > 3:
            queue.remove(queue.running()[0])
            started = queue.decide().start
        if "big" in started:
            break
    assert "big" in queue.running()
    assert overtook <= 5


def test_patience_of_a_cluster_is_not_another_ones_business() -> None:
    """What b does with its own share does not touch a's line."""
    queue = Queue(Capacity(0, 0, 4), {"a": Share(gpu=2), "b": Share(gpu=2)}, patience=1)
    queue.add(Request("a1", gpu=1, vc="a", order=1))
    queue.decide()
    queue.add(Request("a2", "a2", gpu=2, vc="a", order=2))
    for number in range(5):
        queue.add(Request(f"b{number}", gpu=2, vc="b", order=3 + number))
        assert queue.decide().start == (f"b{number}",)
        queue.remove(f"b{number}")
    assert not queue.overtaken()


def test_opportunistic_jobs_use_what_is_idle_and_give_it_back() -> None:
    queue = Queue(Capacity(4, 4_000, 4), {"a": Share(2, 2_000, 2), "b": Share(2, 2_000, 2)})
    for number in range(4):
        queue.add(Request(f"o{number}", f"u~o{number}", cpu=1, gpu=1, priority="oppo", vc="b", order=number))
    assert queue.decide(1).start == ("o0", "o1", "o2", "o3")
    queue.add(Request("a", "u~a", cpu=1, gpu=2, vc="a", order=9))
    made = queue.decide(2)
    assert (made.start, set(made.preempt)) == ((), {"o3", "o2"})
    assert queue.decide(3) == Decision()
    reason = queue.why("a")
    assert reason.kind == "stopping"
    assert reason.text == "u~o2 and u~o3 are being stopped to make room for it; it is number 1 of 1 in line"
    queue.remove("o3")
    queue.add(Request("o3", "u~o3", cpu=1, gpu=1, priority="oppo", vc="b", order=3))
    assert queue.decide(4) == Decision(), "its place is promised"
    queue.remove("o2")
    assert queue.decide(5).start == ("a",)
    assert queue.why("o3").holders == ("u~a", "u~o0", "u~o1")


def test_guaranteed_jobs_are_never_stopped_for_others() -> None:
    queue = Queue(Capacity(4, 4_000, 4), {"a": Share(gpu=2)})
    queue.add(Request("one", "u~one", gpu=2, vc="b", priority="test", order=1))
    queue.add(Request("two", "u~two", gpu=2, vc="c", priority="crit", order=2))
    assert queue.decide().start == ("two",), "only what is shared may be used by those without a share"
    assert queue.why("one").text == (
        "it waits for 2 GPUs more for virtual cluster 'b' (it asks for 2, none is free); u~two holds what it needs; "
        "it is number 1 of 1 in line"
    )
    queue.add(Request("three", gpu=2, vc="a", order=3))
    assert queue.decide().start == ("three",)


def test_what_never_fits_says_so() -> None:
    queue = Queue(Capacity(4, 4_000, 4), {"a": Share(gpu=3)})
    queue.add(Request("one", gpu=5, order=1))
    queue.add(Request("two", gpu=2, vc="b", order=2))
    queue.add(Request("three", cpu=4.5, memory_mb=5_000, priority="oppo", order=3))
    assert queue.decide() == Decision()
    assert queue.never_fits() == ["one", "two", "three"]
    assert queue.why("one").text == (
        "it can never start: it asks for 5 GPUs, and virtual cluster 'default', with what is shared by all, has 1"
    )
    assert queue.why("two").text.endswith("as an opportunistic job (jobPriorityClass: oppo) it could use the whole machine")
    assert queue.why("three").text == (
        "it can never start: it asks for 4.5 CPUs, and this machine has 4; "
        "it asks for 5000 MB of memory, and this machine has 4000"
    )
    queue.resize(Capacity(8, 8_000, 8), {"a": Share(gpu=3)})
    assert queue.decide().start == ("one", "three")


def test_why_names_the_one_that_room_is_kept_for() -> None:
    queue = Queue(Capacity(4, 4_000, 4), patience=0)
    queue.add(Request("one", "u~one", gpu=2, order=1))
    queue.decide()
    queue.add(Request("big", "u~big", gpu=4, order=2))
    queue.add(Request("small", "u~small", gpu=1, order=3))
    assert queue.decide() == Decision()
    assert queue.why("small").text == ("the room for it is kept for u~big, which came before it; it is number 2 of 2 in line")
    assert queue.why("big").text == (
        "it waits for 2 GPUs more (it asks for 4, 2 are free); u~one holds what it needs; "
        "it was overtaken 0 times, so what becomes free is kept for it; it is number 1 of 2 in line"
    )


def test_classes_go_before_arrival() -> None:
    waiting = [Request(name, gpu=1, priority=name, order=-number) for number, name in enumerate(CLASSES)]
    assert decide(Capacity(gpu=4), {}, [], waiting).start == CLASSES


def test_a_server_that_starts_anew_tells_what_runs() -> None:
    queue = Queue(Capacity(gpu=2))
    queue.hold(Holding(Request("one", "u~one", gpu=2), started=1))
    queue.add(Request("two", gpu=1, order=1))
    assert queue.decide() == Decision()
    assert queue.used() == Capacity(0.0, 0, 2)
    assert queue.used_by("default").gpu == 2
    queue.remove("one")
    assert queue.decide().start == ("two",)
    with pytest.raises(ValueError, match="in the queue already"):
        queue.add(Request("two"))
    with pytest.raises(KeyError):
        queue.why("two")


def test_shares_beyond_the_machine_are_cut() -> None:
    queue = Queue(Capacity(gpu=4), {"a": Share(gpu=6), "b": Share(gpu=2)})
    queue.add(Request("one", gpu=4, vc="a"))
    assert queue.never_fits() == ["one"]
    queue.add(Request("two", gpu=3, vc="a"))
    assert queue.decide().start == ("two",)


def test_a_decision_with_many_waiting_looks_at_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: jobs of one shape are one line."""
    queue = Queue(Capacity(gpu=4))
    for number in range(10_000):
        queue.add(Request(str(number), gpu=1 + number % 4, order=number))
    queue.decide()
    looked = []
    lacking = Ledger.lacking

    def counting(ledger: Ledger, vc: str, demand: tuple[int, int, int]) -> tuple[int, int, int]:
        looked.append(demand)
        return lacking(ledger, vc, demand)

    monkeypatch.setattr(Ledger, "lacking", counting)
    queue.remove(queue.running()[0])
    assert queue.decide().start
    assert len(looked) < 50


def test_a_user_at_the_limit_waits_aside_and_keeps_the_place() -> None:
    queue = Queue(Capacity(gpu=4), limits={"default": UserLimits(jobs=1, gpus=2)}, patience=0)
    for number, (user, gpus) in enumerate([("ann", 1), ("ann", 1), ("bob", 1), ("ann", 3), ("bob", 2)]):
        queue.add(Request(str(number), f"{user}~{number}", gpu=gpus, order=number, user=user))
    assert queue.decide().start == ("0", "2"), "nobody waits for ann's second job but ann"
    assert queue.why("1").text == (
        "ann may run 1 job at once in virtual cluster 'default', and 1 runs; it waits for the end of ann~0; "
        "it is number 1 of 2 in line"
    )
    assert (queue.why("1").kind, queue.why("1").holders) == ("limit", ("ann~0",))
    assert queue.why("3").text == (
        "it can never start: it asks for 3 GPUs, and each user may use 2 GPUs at once in virtual cluster 'default'"
    )
    queue.resize(Capacity(gpu=4), {}, {"default": UserLimits(gpus=2)})
    assert queue.decide().start == ("1",)
    assert queue.why("4").text == (
        "bob may use 2 GPUs at once in virtual cluster 'default', and 1 is in use, and it asks for 2; "
        "it waits for the end of bob~2; it is number 1 of 1 in line"
    )
    queue.remove("2")
    assert queue.decide().start == ("4",)


def test_where_users_are_limited_many_waiting_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: the jobs of one shape of one user are one line."""
    queue = Queue(Capacity(gpu=4), limits={"default": UserLimits(jobs=1)})
    for number in range(10_000):
        queue.add(Request(str(number), gpu=1, order=number, user=f"u{number % 5}"))
    assert queue.decide().start == ("0", "1", "2", "3")
    looked = []
    permits = UserBooks.permits

    def counting(books: UserBooks, owner: tuple[str, str] | None, gpus: int) -> bool:
        looked.append(owner)
        return permits(books, owner, gpus)

    monkeypatch.setattr(UserBooks, "permits", counting)
    queue.remove("0")
    assert queue.decide().start == ("4",)
    assert len(looked) < 100
