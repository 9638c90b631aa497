"""The list of jobs through the store, on both databases, against the model that looks at every job."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from pailot.store.server import BadValue, JobQuery, JobRecord, ServerStore, new_id
from tests.unit.store.listing_model import QUERIES, STEPS, listed


@given(STEPS, QUERIES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_every_change_and_every_question(store: ServerStore, url: str, steps: list[Any], query: JobQuery) -> None:
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
