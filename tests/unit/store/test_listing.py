"""The columns of the list of jobs against a model that looks at every job, on all the ways they have to the answer."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pailot.store.server import ORDERS, JobQuery, JobRecord, columns, listing
from pailot.store.server.columns import Names, Order, nth
from pailot.store.server.listing import Columns, label_mark, tag_mark
from tests.unit.store.listing_model import QUERIES, RECORDS, STEPS, listed


@pytest.fixture(params=[(20_000, 255, 1024), (3, 255, 2), (0, 2, 2), (-1, 0, 3)], ids=["plain", "few", "wide", "walk"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds so small that a dozen jobs come to where else a million would."""
    few, narrow, block = request.param
    monkeypatch.setattr(columns, "FEW", few)
    monkeypatch.setattr(listing, "FEW", few)
    monkeypatch.setattr(columns, "NARROW", narrow)
    monkeypatch.setattr(columns, "BLOCK", block)
    monkeypatch.setattr(listing, "KEYWORDS_KEPT", 2)
    monkeypatch.setattr(listing, "MARKS_KEPT", 2)


class Pair:
    """Columns and model, given the same."""

    def __init__(self) -> None:
        self.columns = Columns()
        self.jobs: dict[int, JobRecord] = {}
        self.last = 0

    def add(self, record: JobRecord) -> None:
        self.last += 2
        self.jobs[self.last] = record
        marks = [*map(tag_mark, record.tags), *(label_mark(key, value) for key, value in record.labels.items())]
        self.columns.add(self.last, record, marks)

    def step(self, kind: str, place: int, what: Any) -> None:
        if kind == "add":
            self.add(what)
            return
        if kind == "ask":
            self.ask(what)
            return
        if not self.jobs:
            return
        number = list(self.jobs)[place % len(self.jobs)]
        record = self.jobs[number]
        if kind == "change":
            self.jobs[number] = record.replace(**what)
            self.columns.change(number, what)
        elif kind == "remove":
            del self.jobs[number]
            self.columns.remove(number)
        else:
            rest = tuple(tag for tag in record.tags if tag != what)
            self.jobs[number] = record.replace(tags=(*rest, what) if kind == "tag" else rest)
            self.columns.mark(number, tag_mark(what), wanted=kind == "tag")

    def ask(self, query: JobQuery) -> None:
        tags = {*query.tags_contain, *query.tags_not_contain}
        marked = {tag_mark(tag): [number for number, job in self.jobs.items() if tag in job.tags] for tag in tags}
        for key, value in query.labels.items():
            marked[label_mark(key, value)] = [number for number, job in self.jobs.items() if job.labels.get(key) == value]
        found = self.columns.find(query, marked)
        page, total = listed(list(self.jobs.values()), query)
        assert [self.jobs[number] for number in found.numbers] == page
        assert found.total == total


@given(STEPS, QUERIES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_change_and_every_question(sizes: None, steps: list[Any], query: JobQuery) -> None:
    pair = Pair()
    for step in steps:
        pair.step(*step)
    pair.ask(query)
    pair.columns = pair.columns.without_the_dead()
    pair.ask(query)


@given(st.lists(RECORDS, max_size=30), QUERIES, RECORDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_columns_filled_at_once(sizes: None, records: list[JobRecord], query: JobQuery, later: JobRecord) -> None:
    pair = Pair()
    pair.columns.load([rows for rows in (_rows(records[:7], 0), _rows(records[7:], 7)) if rows])
    pair.jobs = {2 * place + 2: record for place, record in enumerate(records)}
    pair.last = 2 * len(records)
    pair.ask(query)
    pair.add(later)
    pair.ask(query)


def _rows(records: list[JobRecord], start: int) -> list[tuple[Any, ...]]:
    names = listing.CATEGORIES
    return [
        (2 * place + 2, job.name, job.submitted, job.ended, *(getattr(job, name) for name in names))
        for place, job in enumerate(records, start)
    ]


def test_more_users_than_a_byte_has_codes() -> None:
    chosen = random.Random(7)
    pair = Pair()
    for number in range(900):
        user = f"user{chosen.randrange(400)}" if number % 3 else "heavy"
        pair.add(JobRecord("", user, f"job{number % 100}", submitted=float(number), tasks=number, ended=float(-number)))
    for number in list(pair.jobs)[::5]:
        pair.step("remove", list(pair.jobs).index(number), None)
    assert not pair.columns.category["user"].narrow
    for order in ORDERS:
        for descending in (True, False):
            for users in ((), ("heavy",), ("heavy", "user7", "user8"), tuple(f"user{number}" for number in range(390))):
                pair.ask(JobQuery(users=users, order=order, descending=descending, offset=30))
            pair.ask(JobQuery(keyword="user1", order=order, descending=descending))
            pair.ask(JobQuery(keyword="7", states=("WAITING",), order=order, descending=descending, offset=5))


@given(st.binary(max_size=50), st.integers(0, 5), st.integers(0, 60), st.integers(0, 10), st.booleans())
@example(b"\1" * 20_000, 1, 12_345, 3, True)
@example(b"\0\1" * 20_000, 1, 12_345, 3, False)
def test_nth(marked: bytes, byte: int, skip: int, limit: int, descending: bool) -> None:
    places = [place for place, found in enumerate(marked) if found == byte]
    if descending:
        places.reverse()
    assert nth(marked, byte, skip, limit, descending=descending) == places[skip : skip + limit]


@given(st.lists(st.text(max_size=6)), st.text(min_size=1, max_size=3))
@example(["aaaa", "a", "", "aa"], "aa")
@example(["ab", "ba"], "bb")
def test_parts_of_names(names: list[str], part: str) -> None:
    kept = Names()
    kept.extend(names := [name.encode(errors="replace").decode() for name in names])
    part = part.encode(errors="replace").decode()
    wanted = [part in name for name in names]
    for few in (0, 20_000):
        columns.FEW, before = few, columns.FEW
        try:
            assert list(map(bool, kept.containing(part.encode()))) == wanted
        finally:
            columns.FEW = before


def test_an_order_stays_sorted_through_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "BLOCK", 4)
    chosen = random.Random(1)
    keys = [chosen.randrange(20) for _ in range(300)]
    order = Order(keys.__getitem__, sorted(range(100), key=keys.__getitem__))
    there = set(range(100))
    for slot in range(100, 300):
        order.add(slot)
        there.add(slot)
        gone = chosen.choice(sorted(there))
        if chosen.random() < 0.7:
            order.remove(gone)
            there.remove(gone)
    wanted = sorted(there, key=lambda slot: (keys[slot], slot))
    assert list(order) == wanted
    assert len(order) == len(wanted)
    for key in range(20):
        alike = [slot for slot in wanted if keys[slot] == key]
        assert list(order.equal(key, len(alike))) == alike
