"""Events, messages, code, storages, virtual clusters and the server's own words, on both databases."""

from __future__ import annotations

import pytest

from pailot.store.server import JobRecord, LibraryRow, NoSuchRecord, ServerStore, new_id


def job(store: ServerStore, name: str, **fields: object) -> JobRecord:
    record = JobRecord(new_id(), "ann", name, submitted=1.0).replace(**fields)
    store.jobs.add(record, "", "")
    return record


def test_events(store: ServerStore) -> None:
    first, second = job(store, "a"), job(store, "b")
    assert store.events.add(first.id, {"event": "preempted", "at": 1.5}) == 1
    assert store.events.add(second.id, {"event": "x"}) == 1
    assert store.events.add(first.id, {"event": "requeued", "text": "\0"}) == 2
    assert store.events.of(first.id) == [(1, {"event": "preempted", "at": 1.5}), (2, {"event": "requeued", "text": "\0"})]
    assert store.events.of(first.id, after=1) == [(2, {"event": "requeued", "text": "\0"})]
    assert store.events.of("none") == []
    with pytest.raises(NoSuchRecord):
        store.events.add("none", {})


def test_messages_are_delivered_or_tried_again(store: ServerStore, url: str) -> None:
    assert store.outbox.next_due() is None
    first = store.outbox.add("job1", "webhook", {"url": "http://x"}, now=10.0)
    second = store.outbox.add("job2", "mail", {"to": "a@b"}, now=10.0, due=20.0)
    assert [notice.number for notice in store.outbox.due(15.0)] == [first]
    assert [notice.number for notice in store.outbox.due(20.0)] == [first, second]
    assert store.outbox.next_due() == 10.0
    store.outbox.failed(first, "connection refused", due=30.0)
    (waiting,) = store.outbox.due(29.0)
    assert waiting.number == second
    store.outbox.done(second)
    with ServerStore.open(url) as again:
        (notice,) = again.outbox.due(100.0)
        assert (notice.number, notice.job, notice.attempts, notice.error) == (first, "job1", 1, "connection refused")
        assert notice.payload == {"url": "http://x"}
        assert again.outbox.add("job3", "mail", {}, now=50.0) > first
    assert store.outbox.give_up(40.0) == 1


def test_the_library(store: ServerStore, url: str) -> None:
    one = LibraryRow("mnist", "1", "data", "ann", {"size": 3, "uri": ["https://x/é"]}, "a" * 64, 1.0, 1.0)
    two = one.replace(version="2", owner="bob", digest="b" * 64)
    store.library.put(one, "one")
    store.library.put(two, "two")
    assert store.library.all() == [one.replace(owner="bob"), two], "all versions of a name have one owner"
    assert store.library.texts() == {"a" * 64: "one", "b" * 64: "two"}
    assert store.library.totals() == (2, 6)
    store.library.note_uses([("mnist", "2"), ("none", "1")], 5.0)
    with ServerStore.open(url) as again:
        assert [(row.uses, row.used) for row in again.library.all()] == [(0, None), (1, 5.0)]
    store.library.put(two.replace(digest="c" * 64), "three")
    assert [row.uses for row in store.library.all()] == [0, 1], "a new text is still the same entry"
    assert store.library.drop_texts(now=10.0, before=0.0) == 0
    assert store.library.text("b" * 64) == "two", "jobs that were submitted with it run again"
    assert store.library.drop_texts(now=20.0, before=11.0) == 1
    assert store.library.text("b" * 64) is None
    assert store.library.remove("mnist", "1") == 1
    assert store.library.remove("mnist") == 1
    assert store.library.all() == []


def test_code(store: ServerStore) -> None:
    used, unused = "a" * 64, "b" * 64
    store.code.add(used, 100, now=1.0)
    store.code.add(unused, 200, now=1.0)
    store.code.add(unused, 200, now=2.0)
    assert store.code.get("c" * 64) is None
    found = store.code.get(unused)
    assert found
    assert (found.size, found.created, found.used) == (200, 1.0, 2.0)
    record = job(store, "a", code=used)
    assert [blob.digest for blob in store.code.unused(before=3.0)] == [unused]
    assert store.code.used(unused, 5.0)
    assert store.code.unused(before=3.0) == []
    assert not store.code.remove_unused(used, before=9.0)
    assert not store.code.remove_unused(unused, before=5.0)
    store.jobs.remove(record.id)
    assert store.code.remove_unused(used, before=9.0)
    assert [blob.digest for blob in store.code.all()] == [unused]
    assert store.code.remove(unused)
    assert not store.code.used(unused, 5.0)


def test_storages_and_virtual_clusters(store: ServerStore) -> None:
    kept = store.accounts
    kept.put_storage("nfs", {"type": "nfs", "data": {"server": "x"}})
    kept.put_storage("a", {})
    kept.put_storage("nfs", {"type": "nfs", "data": {"server": "y"}})
    assert kept.storages() == {"a": {}, "nfs": {"type": "nfs", "data": {"server": "y"}}}
    assert kept.storage("a") == {}
    assert kept.storage("b") is None
    assert kept.remove_storage("a")
    assert not kept.remove_storage("a")
    kept.put_cluster("research", {"gpus": 2})
    assert kept.clusters() == {"research": {"gpus": 2}}
    assert kept.cluster("default") is None
    assert kept.remove_cluster("research")


def test_meta(store: ServerStore, url: str) -> None:
    assert store.meta.get("id") is None
    assert store.meta.first("id", "one") == "one"
    assert store.meta.first("id", "two") == "one"
    store.meta.set("id", "three")
    with ServerStore.open(url) as again:
        assert again.meta.get("id") == "three"


def test_the_newest_of_a_name(store: ServerStore) -> None:
    job(store, "a")
    later = job(store, "a", user="bob")
    assert store.jobs.newest("a") == later
    assert store.jobs.newest("b") is None


def test_what_may_go(store: ServerStore) -> None:
    names = {}
    for number in range(6):
        names[number] = job(store, f"old{number}", state="FAILED", ended=float(number))
    job(store, "running", state="RUNNING")
    assert [record.name for record in store.jobs.ended_before(3.0)] == ["old0", "old1", "old2"]
    assert [record.name for record in store.jobs.ended_before(9.0, limit=2)] == ["old0", "old1"]
    assert [record.name for record in store.jobs.ended_before(9.0, keep_last=3)] == ["old0", "old1", "old2", "old3"]
    assert store.jobs.ended_before(9.0, keep_last=7) == []
