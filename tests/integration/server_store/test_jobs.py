"""Jobs as they are kept: what goes in comes out, names are unique, transactions are whole."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pailot.store.server import BadValue, JobQuery, JobRecord, NameTaken, NoSuchRecord, ServerStore, StoreError, new_id

FULL = JobRecord(
    "0000000000000001",
    "ann",
    "train-ß",
    submitted=1700000000.125,
    vc="research",
    state="RUNNING",
    execution_type="STOP",
    priority="oppo",
    started=1700000001.5,
    ended=1700000002.25,
    attempts=2,
    retries=3,
    user_retries=1,
    platform_retries=2,
    exit_code=-(1 << 40),
    reason="quoted ' and ? and %s",
    tasks=4,
    roles=2,
    gpus=8,
    cpus=0.5,
    memory_mb=1 << 33,
    folder="/jobs/x",
    engine="local",
    submit_from="10.0.0.1",
    code="ab" * 32,
    tags=("b", "a", "日本"),
    labels={"team": "vision", "a=b": "c"},
    more={"nested": {"list": [1, None, "\0"]}},
)


def job(name: str, user: str = "ann", **fields: Any) -> JobRecord:
    return JobRecord(new_id(), user, name, **{"submitted": 1.0, **fields})


def test_what_goes_in_comes_out(store: ServerStore, url: str) -> None:
    store.jobs.add(FULL, "text: ?\n", '{"plan": 1}', b"\0sealed\xff")
    small = job("small")
    store.jobs.add(small, "", "")
    for opened in (store, ServerStore.open(url)):
        assert opened.jobs.get(FULL.id) == FULL
        assert opened.jobs.by_name("ann", "train-ß") == FULL
        assert opened.jobs.get(small.id) == small
        assert opened.jobs.config(FULL.id) == "text: ?\n"
        assert opened.jobs.plan(FULL.id) == '{"plan": 1}'
        assert opened.jobs.secrets(FULL.id) == b"\0sealed\xff"
        assert opened.jobs.secrets(small.id) is None
        assert opened.jobs.count() == 2
        assert opened.jobs.get("none") is None
        assert opened.jobs.by_name("ann", "none") is None
        assert opened.jobs.config("none") is None
    opened.close()


def test_a_name_is_used_once_by_a_user(store: ServerStore) -> None:
    store.jobs.add(job("a"), "", "")
    with pytest.raises(NameTaken, match=r"^job ann~a is there already$"):
        store.jobs.add(job("a"), "", "")
    store.jobs.add(job("a", "bob"), "", "")
    assert store.jobs.count() == 2


def test_a_failure_inside_a_batch_leaves_the_rest(store: ServerStore) -> None:
    first, third = job("a"), job("c")
    with store.batch():
        store.jobs.add(first, "", "")
        with pytest.raises(NameTaken):
            store.jobs.add(job("a"), "", "")
        store.jobs.add(third, "", "")
        assert store.jobs.update(first.id, state="RUNNING")
        assert store.jobs.get(first.id) == first.replace(state="RUNNING"), "a batch sees what it wrote"
    assert [each.name for each in store.jobs.unfinished()] == ["a", "c"]
    assert store.jobs.list(JobQuery(want_total=True)).total == 2


def test_a_batch_that_fails_leaves_nothing(store: ServerStore) -> None:
    kept = job("kept")
    store.jobs.add(kept, "", "")

    def fail() -> None:
        with store.batch():
            store.jobs.add(job("a"), "", "")
            store.jobs.update(kept.id, state="FAILED")
            store.jobs.tag_add(kept.id, "tag")
            store.jobs.remove(kept.id)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.jobs.list(JobQuery(want_total=True)).rows == (kept,)
    assert store.jobs.list(JobQuery(tags_contain=("tag",))).rows == ()
    store.jobs.add(job("a"), "", "")


def test_changes(store: ServerStore) -> None:
    record = job("a")
    store.jobs.add(record, "", "")
    changes = {"state": "SUCCEEDED", "ended": 5.0, "exit_code": 0, "more": {"x": 1}, "priority": "prod", "vc": "other"}
    assert store.jobs.update_many([(record.id, changes), ("none", {"state": "FAILED"})]) == 1
    assert store.jobs.get(record.id) == record.replace(**changes)
    assert store.jobs.update(record.id)
    assert not store.jobs.update("none", state="FAILED")
    assert store.jobs.unfinished() == []
    for wrong in ({"state": "DONE"}, {"priority": "high"}, {"execution_type": "start"}):
        with pytest.raises(BadValue):
            store.jobs.update(record.id, **wrong)
    for fixed in ("user", "name", "submitted", "tags", "labels", "colour"):
        with pytest.raises(TypeError, match="can be changed"):
            store.jobs.update(record.id, **{fixed: "x"})


def test_tags(store: ServerStore) -> None:
    record = job("a", tags=("x", "x", "y"))
    store.jobs.add(record, "", "")
    assert store.jobs.tag_add(record.id, "z")
    assert not store.jobs.tag_add(record.id, "z")
    assert store.jobs.tag_remove(record.id, "x")
    assert not store.jobs.tag_remove(record.id, "x")
    found = store.jobs.get(record.id)
    assert found
    assert found.tags == ("y", "z")
    assert store.jobs.list(JobQuery(tags_contain=("z", "none"))).rows == (found,)
    assert store.jobs.list(JobQuery(tags_contain=("x",))).rows == ()
    with pytest.raises(NoSuchRecord):
        store.jobs.tag_add("none", "x")


def test_removing_takes_everything_along(store: ServerStore) -> None:
    store.jobs.add(FULL, "text", "", b"x")
    store.events.add(FULL.id, {"event": "x"})
    assert store.jobs.remove(FULL.id)
    assert not store.jobs.remove(FULL.id)
    assert store.jobs.config(FULL.id) is None
    for table in ("jobs", "job_texts", "job_marks", "job_events"):
        assert store.database.read(f"SELECT * FROM {table}") == []
    assert store.jobs.list(JobQuery(want_total=True)).total == 0
    store.jobs.add(FULL, "text", "")


def test_what_one_database_could_not_keep_is_refused_by_both(store: ServerStore) -> None:
    for wrong in ({"name": "a\0b"}, {"name": "\ud800"}, {"tasks": 1 << 63}, {"cpus": float("nan")}, {"ended": float("inf")}):
        with pytest.raises(BadValue):
            store.jobs.add(job("x").replace(**wrong), "", "")
    with pytest.raises(BadValue):
        store.jobs.add(job("x"), "a\0", "")
    with pytest.raises(BadValue):
        store.jobs.by_name("ann", "\0")
    assert store.jobs.count() == 0
    store.jobs.add(job("x", more={"half": "\ud800", "null": "\0"}), "", "")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")), st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_any_text(store: ServerStore, name: str, inner: str) -> None:
    record = job(name, user=new_id(), tags=(name,), labels={name: name}, more={"inner": inner})
    store.jobs.add(record, name, name)
    assert store.jobs.by_name(record.user, name) == record
    assert store.jobs.config(record.id) == store.jobs.plan(record.id) == name
    found = store.jobs.list(JobQuery(users=(record.user,), tags_contain=(name,), labels={name: name}, keyword=name))
    assert found.rows == (record,)


def test_threads_write_and_read_at_once(store: ServerStore) -> None:
    errors: list[BaseException] = []
    start = threading.Barrier(6)

    def write(number: int) -> None:
        try:
            start.wait()
            for each in range(15):
                record = job(f"job{number}-{each}")
                with store.batch():
                    store.jobs.add(record, "", "")
                    store.jobs.update(record.id, state="RUNNING")
                store.jobs.update(record.id, state="SUCCEEDED", ended=2.0)
        except BaseException as error:
            errors.append(error)

    def read() -> None:
        try:
            start.wait()
            for _ in range(30):
                page = store.jobs.list(JobQuery(states=("SUCCEEDED",), want_total=True, limit=1000))
                assert page.total == len(page.rows) or all(row.ended == 2.0 for row in page.rows)
                assert "WAITING" not in {row.state for row in store.jobs.unfinished()}, "never half a batch"
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert store.jobs.list(JobQuery(states=("SUCCEEDED",), want_total=True)).total == 60


def test_closed(store: ServerStore) -> None:
    store.close()
    store.close()
    for work in (store.jobs.count, lambda: store.jobs.add(job("a"), "", ""), lambda: store.meta.set("a", "b")):
        with pytest.raises(StoreError, match=r"the store is closed$"):
            work()
