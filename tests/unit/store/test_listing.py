"""The columns of the list of jobs against a model that looks at every job, on all the ways they have to the answer."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pailot.store.server import ORDERS, JobQuery, JobRecord, bitmap_columns, listing
from pailot.store.server.bitmap_columns import Bits, Category, Names, SlotOrder, extended, nth, places
from pailot.store.server.listing import Columns
from pailot.store.server.models import label_mark, tag_mark
from tests.support.listing_model import QUERIES, RECORDS, STEPS, listed


@pytest.fixture(params=[(8_000, 128, 4096, 0), (3, 128, 2, 4), (0, 2, 2, 0), (-1, 0, 1, 1)], ids=["plain", "few", "wide", "walk"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds so small that a dozen jobs come to where else a million would."""
    few, narrow, bucket, tried = request.param
    monkeypatch.setattr(listing, "FEW", few)
    monkeypatch.setattr(bitmap_columns, "NARROW", narrow)
    monkeypatch.setattr(bitmap_columns, "SMALLEST_BUCKET", bucket)
    monkeypatch.setattr(bitmap_columns, "MOST_BUCKETS", 5)
    monkeypatch.setattr(bitmap_columns, "FIRST_TRIED", tried)
    monkeypatch.setattr(bitmap_columns, "SPARSE", few)
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


def test_numbers_find_wider_room() -> None:
    numbers = array("B", [1, 255])
    assert extended(numbers, (7,)) is numbers
    numbers = extended(numbers, (3, 256, 4))
    assert (numbers.typecode, list(numbers)) == ("H", [1, 255, 7, 3, 256, 4])
    numbers = extended(numbers, (1 << 40,))
    assert (numbers.typecode, numbers[-1], len(numbers)) == ("Q", 1 << 40, 7)


def test_a_value_that_all_jobs_have_takes_no_room() -> None:
    category = Category()
    for slot in range(1000):
        category[slot] = "default"
    assert len(category._flat) == 0
    assert [category[slot] for slot in (0, 999)] == ["default"] * 2
    category[500] = "other"
    assert [category[slot] for slot in (499, 500, 501, 999)] == ["default", "other", "default", "default"]
    assert [category.key(slot) for slot in (500, 999)] == [(False, "other"), (False, "default")]
    assert list(category.by_value((1 << 1000) - 1, 1000))[-2:] == [999, 500]
    category[500] = "default"
    assert category.mask(("default",), (1 << 1000) - 1) == (1 << 1000) - 1
    filled = Category()
    filled.fill(extended(array("B"), filled.encode(["default"] * 9)))
    assert (filled[8], len(filled._flat)) == ("default", 0)


def test_a_job_comes_to_a_value_that_needs_more_room() -> None:
    category = Category()
    for slot in range(300):
        category[slot] = slot % 256
    assert category._flat.typecode == "B"
    category[7] = "new"
    assert [category[slot] for slot in (6, 7, 8, 299)] == [6, "new", 8, 43]
    assert category.mask(("new",), (1 << 300) - 1) == 1 << 7


def test_more_users_than_a_byte_has_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(7)
    pair = Pair()
    for number in range(900):
        user = f"user{chosen.randrange(400)}" if number % 3 else "heavy"
        pair.add(JobRecord("", user, f"job{number % 100}", submitted=float(number), tasks=number, ended=float(-number)))
    for number in list(pair.jobs)[::5]:
        pair.step("remove", list(pair.jobs).index(number), None)
    assert not pair.columns.category["user"].narrow
    monkeypatch.setattr(listing, "FEW", 20)
    for order in ORDERS:
        for descending in (True, False):
            for users in ((), ("heavy",), ("heavy", "user7", "user8"), tuple(f"user{number}" for number in range(390))):
                pair.ask(JobQuery(users=users, order=order, descending=descending, offset=30))
            pair.ask(JobQuery(keyword="user1", order=order, descending=descending))
            pair.ask(JobQuery(keyword="7", states=("WAITING",), order=order, descending=descending, offset=5))


@given(st.integers(0, 1 << 70), st.integers(0, 60), st.integers(1, 10), st.booleans())
@example((1 << 20_000) - 1, 12_345, 3, True)
@example(int("10" * 20_000, 2), 12_345, 3, False)
def test_nth(mask: int, skip: int, limit: int, descending: bool) -> None:
    slots = [slot for slot in range(mask.bit_length()) if mask >> slot & 1]
    assert list(places(mask)) == slots
    if descending:
        slots.reverse()
    assert nth(mask, skip, limit, descending=descending) == slots[skip : skip + limit]


@given(st.lists(st.text(max_size=6)), st.text(min_size=1, max_size=3), st.sampled_from([0, 20_000]))
@example(["aaaa", "a", "", "aa"], "aa", 0)
@example(["ab", "ba"], "bb", 0)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_of_names(monkeypatch: pytest.MonkeyPatch, names: list[str], part: str, sparse: int) -> None:
    monkeypatch.setattr(bitmap_columns, "SPARSE", sparse)
    kept = Names()
    names = [name.encode(errors="replace").decode() for name in names]
    kept.extend(names)
    part = part.encode(errors="replace").decode()
    wanted = sum((part in name) << slot for slot, name in enumerate(names))
    assert kept.containing(part.encode()) == wanted
    assert [kept[slot].decode() for slot in range(len(kept))] == names


def test_an_order_stays_sorted_through_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bitmap_columns, "SMALLEST_BUCKET", 4)
    monkeypatch.setattr(bitmap_columns, "MOST_BUCKETS", 9)
    chosen = random.Random(1)
    keys = [chosen.randrange(20) for _ in range(400)]
    alive = Bits()
    alive.mask = (1 << 100) - 1
    order = SlotOrder(keys.__getitem__, alive)
    order.fill(sorted(range(100), key=keys.__getitem__))
    for slot in range(100, 400):
        alive[slot] = 1
        order.add(slot)
        gone = chosen.choice(list(places(alive.mask)))
        order.remove(gone)
        if chosen.random() < 0.7:
            alive[gone] = 0
        else:
            keys[gone] = chosen.randrange(20)
            order.add(gone)
    wanted = sorted(places(alive.mask), key=lambda slot: (keys[slot], slot))
    assert order.page(alive.mask, 0, 1000, descending=False) == wanted
    assert order.page(alive.mask, 7, 20, descending=True) == wanted[::-1][7:27]
