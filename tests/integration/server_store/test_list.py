"""The list of jobs through the store, on both databases, against the model that looks at every job."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from pailot.store.server import BadValue, JobQuery, JobRecord, ServerStore, listing, new_id
from tests.support.listing_model import QUERIES, STEPS, listed


@pytest.mark.parametrize("warm", [True, False], ids=["columns", "database"])
@given(STEPS, QUERIES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
def test_every_change_and_every_question(store: ServerStore, url: str, warm: bool, steps: list[Any], query: JobQuery) -> None:
    if warm:
        store.jobs.warm()
    for row in store.jobs.list(JobQuery(limit=1000)).rows:
        store.jobs.remove(row.id)
    jobs: list[JobRecord] = []
    for kind, place, what in steps:
        if kind == "ask":
            check(store, jobs, what)
        elif kind == "add":
            record = what.replace(id=new_id())
            if not any((job.user, job.name) == (record.user, record.name) for job in jobs):
                store.jobs.add(record, "", "")
                jobs.append(record)
        elif jobs:
            place %= len(jobs)
            record = jobs[place]
            if kind == "change":
                assert store.jobs.update(record.id, **what)
                jobs[place] = record.replace(**what)
            elif kind == "remove":
                assert store.jobs.remove(record.id)
                del jobs[place]
            else:
                (store.jobs.tag_add if kind == "tag" else store.jobs.tag_remove)(record.id, what)
                rest = record.tags if kind == "tag" and what in record.tags else tuple(tag for tag in record.tags if tag != what)
                jobs[place] = record.replace(tags=(*rest, what) if kind == "tag" and what not in rest else rest)
    check(store, jobs, query)
    with ServerStore.open(url) as again:
        if warm:
            again.jobs.warm()
        check(again, jobs, query)


def check(store: ServerStore, jobs: list[JobRecord], query: JobQuery) -> None:
    page, total = listed(jobs, query)
    found = store.jobs.list(query)
    assert list(found.rows) == page
    assert found.total == total
    assert store.jobs.list(query.replace(want_total=False)).total is None


def test_what_is_written_while_the_columns_are_filled_is_not_missed(store: ServerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        store.jobs.add(JobRecord(new_id(), "ann", f"old{number}", submitted=1.0), "", "")
    reading, written = threading.Event(), threading.Event()
    stream = store.database.stream

    def slow(sql: str, *rest: Any) -> Any:
        rows = list(stream(sql, *rest))
        if "FROM jobs" in sql:
            reading.set()
            assert written.wait(60)
        return rows

    monkeypatch.setattr(store.database, "stream", slow)
    thread = threading.Thread(target=store.jobs.warm)
    thread.start()
    assert reading.wait(60)
    late = JobRecord(new_id(), "bob", "late", submitted=2.0, tags=("new",))
    store.jobs.add(late, "", "")
    first = store.jobs.by_name("ann", "old0")
    second = store.jobs.by_name("ann", "old1")
    assert first
    assert second
    store.jobs.update(first.id, state="FAILED", ended=3.0)
    store.jobs.remove(second.id)
    written.set()
    thread.join()
    page = store.jobs.list(JobQuery(want_total=True))
    assert page.total == 50
    assert page.rows[0] == late
    assert [row.name for row in store.jobs.list(JobQuery(states=("FAILED",))).rows] == ["old0"]
    assert store.jobs.list(JobQuery(tags_contain=("new",))).rows == (late,)


def test_lists_do_not_wait_while_the_columns_are_filled(store: ServerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        store.jobs.add(JobRecord(new_id(), "ann", f"job{number:02d}", submitted=1.0, tags=("even",) * (number % 2 == 0)), "", "")
    reading, asked = threading.Event(), threading.Event()
    stream = store.database.stream

    def slow(sql: str, *rest: Any) -> Any:
        reading.set()
        assert asked.wait(60)
        return stream(sql, *rest)

    monkeypatch.setattr(store.database, "stream", slow)
    thread = threading.Thread(target=store.jobs.warm)
    thread.start()
    assert reading.wait(60)
    page = store.jobs.list(JobQuery(limit=2, want_total=True))
    other = store.jobs.list(JobQuery(tags_contain=("even",), order="jobName", descending=False, limit=2, want_total=True))
    asked.set()
    thread.join()
    assert ([row.name for row in page.rows], page.total) == (["job49", "job48"], 50)
    assert ([row.name for row in other.rows], other.total) == (["job00", "job02"], 25)
    assert store.jobs.list(JobQuery(limit=2, want_total=True)) == page


def test_jobs_that_are_gone_leave_the_columns(store: ServerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "DEAD_KEPT", 10)
    ids = [new_id() for _ in range(40)]
    for number, id in enumerate(ids):
        store.jobs.add(JobRecord(id, f"user{number}", f"job{number:02d}", submitted=1.0), "", "")
    store.jobs.warm()
    columns = store.jobs._listing._columns
    assert columns is not None
    for id in ids[:10]:
        store.jobs.remove(id)
    store.jobs.warm()
    assert store.jobs._listing._columns is columns  # so few are not worth it
    store.jobs.remove(ids[10])
    store.jobs.warm()
    columns = store.jobs._listing._columns
    assert columns is not None
    assert (len(columns.numbers), columns.dead) == (29, 0)
    assert not columns.category["user"].matching(lambda user: user in ("user0", "user10"))
    page = store.jobs.list(JobQuery(order="jobName", descending=False, want_total=True))
    assert ([row.id for row in page.rows], page.total) == (ids[11:], 29)


def test_a_tag_that_comes_while_the_tag_is_looked_for(store: ServerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "FEW", 0)
    first, second = new_id(), new_id()
    store.jobs.add(JobRecord(first, "ann", "first", submitted=1.0, tags=("red",)), "", "")
    store.jobs.add(JobRecord(second, "ann", "second", submitted=1.0), "", "")
    store.jobs.warm()
    columns = store.jobs._listing._columns
    assert columns is not None
    columns.marks.clear()
    read = store.database.read

    def late(sql: str, *rest: Any) -> Any:
        rows = read(sql, *rest)
        if sql == listing.NUMBERS:
            monkeypatch.setattr(store.database, "read", read)
            store.jobs.tag_add(second, "red")
        return rows

    monkeypatch.setattr(store.database, "read", late)
    store.jobs.list(JobQuery(tags_contain=("red",)))
    assert [row.id for row in store.jobs.list(JobQuery(tags_contain=("red",), descending=False)).rows] == [first, second]


def test_more_tags_than_are_kept(store: ServerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "FEW", 0)
    monkeypatch.setattr(listing, "MARKS_KEPT", 1)
    store.jobs.add(JobRecord(new_id(), "ann", "one", submitted=1.0, tags=("red", "green"), labels={"a": "b"}), "", "")
    store.jobs.warm()
    for tags in (("red",), ("green",)):
        assert len(store.jobs.list(JobQuery(tags_contain=tags)).rows) == 1
        assert len(store.jobs.list(JobQuery(tags_contain=tags, labels={"a": "b"})).rows) == 1


@pytest.mark.parametrize("warm", [True, False], ids=["columns", "database"])
def test_what_is_missing_comes_last_or_first(store: ServerStore, warm: bool) -> None:
    for number, (ended, priority) in enumerate([(None, None), (2.0, "prod"), (1.0, "oppo"), (None, None), (2.0, "prod")]):
        store.jobs.add(JobRecord(new_id(), "ann", str(number), submitted=1.0, ended=ended, priority=priority), "", "")
    if warm:
        store.jobs.warm()
    for order in ("completionTime", "jobPriority"):
        rising = [row.name for row in store.jobs.list(JobQuery(order=order, descending=False)).rows]
        assert rising == ["2", "1", "4", "0", "3"]
        assert [row.name for row in store.jobs.list(JobQuery(order=order)).rows] == rising[::-1]


def test_what_no_job_can_have(store: ServerStore) -> None:
    store.jobs.add(JobRecord(new_id(), "ann", "one", submitted=1.0), "", "")
    for _ in range(2):
        for bad in ("\0", "\ud800"):
            for query in (
                JobQuery(users=(bad,)),
                JobQuery(keyword=bad),
                JobQuery(tags_contain=(bad,)),
                JobQuery(labels={"a": bad, bad: "a"}),
                JobQuery(seen_by=(bad, ())),
                JobQuery(newer_than=float("inf")),
            ):
                assert not store.jobs.list(query).rows
            for query in (
                JobQuery(users=(bad, "ann")),
                JobQuery(tags_not_contain=(bad,)),
                JobQuery(seen_by=("ann", (bad,))),
                JobQuery(newer_than=float("-inf")),
            ):
                assert len(store.jobs.list(query).rows) == 1
        store.jobs.warm()


def test_a_large_page(store: ServerStore) -> None:
    with store.batch():
        for number in range(1200):
            store.jobs.add(JobRecord(new_id(), "ann", f"job{number:04d}", submitted=1.0), "", "")
    page = store.jobs.list(JobQuery(order="jobName", descending=False, limit=5000, want_total=True))
    assert [row.name for row in page.rows] == [f"job{number:04d}" for number in range(1200)]
    assert page.total == 1200


def test_no_such_order(store: ServerStore) -> None:
    with pytest.raises(BadValue, match="no order 'colour'"):
        store.jobs.list(JobQuery(order="colour"))


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("descending", [False, True])
def test_pages_from_a_cursor_do_not_shift_while_jobs_come_in(store: ServerStore, warm: bool, descending: bool) -> None:
    for number in range(10):
        store.jobs.add(JobRecord(new_id(), "ann", f"job{number}", 1.0, state="WAITING" if number % 3 else "FAILED"), "", "")
    if warm:
        store.jobs.warm()
    first = store.jobs.list(JobQuery(limit=4, descending=descending, want_total=True))
    assert first.total == 10
    store.jobs.add(JobRecord(new_id(), "ann", "late", 2.0), "", "")
    store.jobs.remove(first.rows[-1].id)
    rest = store.jobs.list(JobQuery(limit=50, descending=descending, before=first.cursors[-1], want_total=True))
    names = [f"job{number}" for number in range(10)]
    expected = names[::-1] if descending else names
    assert [row.name for row in first.rows] == expected[:4]
    assert [row.name for row in rest.rows] == expected[4:] + ([] if descending else ["late"])
    assert rest.total == 10
    failed = store.jobs.list(JobQuery(states=("FAILED",), descending=descending, before=first.cursors[-1], offset=1))
    assert [row.name for row in failed.rows] == [name for name in expected[4:] if int(name[3:]) % 3 == 0][1:]
    assert store.jobs.list(JobQuery(before=0 if descending else 10**9, descending=descending)).rows == ()
    with pytest.raises(BadValue):
        store.jobs.list(JobQuery(order="jobName", before=3))
