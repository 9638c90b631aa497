"""The journal: typed events, and one reader that goes on from where it was."""

from __future__ import annotations

import doctest
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.runfolder import journal, layout, records
from pailot.runfolder.atomic_json import append_line
from pailot.runfolder.journal import Event, Tail

TEXTS = st.text(max_size=20)
KEYS = TEXTS | st.sampled_from(
    ["at", "event", "role", "index", "attempt", "of", "reason", "class", "lastLines", "until", "seconds"]
)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), TEXTS, st.lists(TEXTS), st.dictionaries(TEXTS, TEXTS))


@pytest.mark.parametrize("module", [journal, records], ids=lambda module: module.__name__)
def test_the_examples(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]  # a module


def test_an_event_keeps_what_it_does_not_know() -> None:
    entry = {"at": 2.5, "event": "from-the-future", "role": "worker", "index": 3, "more": {"deep": [1]}}
    event = Event.from_json(entry)
    assert event is not None
    assert (event.kind, event.task, event.named) == ("from-the-future", ("worker", 3), "worker:3")
    assert event.to_json() == entry


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"event": "started"},
        {"at": "soon", "event": "started"},
        {"at": float("inf"), "event": "started"},
        {"at": True, "event": "started"},
        {"at": 1.0, "event": 3},
        {"at": 1.0, "event": "waiting"},
        {"at": 1.0, "event": "waiting", "reason": 5},
        {"at": 1.0, "event": "task-ended", "role": "worker", "index": "0"},
        {"at": 1.0, "event": "task-held", "role": "worker", "index": 0, "reason": "failed", "until": "tomorrow"},
    ],
    ids=str,
)
def test_what_cannot_be_believed_is_no_event(entry: dict[str, object]) -> None:
    assert Event.from_json(entry) is None


def test_details_of_a_wrong_type_are_left_out() -> None:
    event = Event.from_json(
        {"at": 1, "event": "task-ended", "role": "w", "index": 0, "class": [], "lastLines": "no", "outcome": "failed"}
    )
    assert event is not None
    assert (event.exit_class, event.last_lines, event.outcome) == (None, [], "failed")


@given(st.dictionaries(KEYS, VALUES))
def test_any_object_is_read_without_an_error(entry: dict[str, object]) -> None:
    event = Event.from_json({"at": 1.0, "event": "task-retry", **entry})
    if event is not None:
        assert Event.from_json(event.to_json()) == event


def test_a_tail_goes_on_where_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / layout.JOURNAL)
    tail = Tail.of_run(str(tmp_path))
    assert tail.events() == []
    append_line(path, {"at": 1, "event": "submitted"})
    append_line(path, {"at": 2, "event": "started", "attempt": 0})
    assert [event.kind for event in tail.events()] == ["submitted", "started"]
    assert tail.events() == []
    with open(path, "ab") as stream:
        stream.write(b'{"at": 3, "event"')  # another process is about to write the rest
    assert tail.events() == []
    with open(path, "ab") as stream:
        stream.write(b': "ended"}\n')
    assert [event.kind for event in tail.events()] == ["ended"]
    assert tail.offset == os.path.getsize(path)


def test_an_offset_names_the_place_after_an_entry(tmp_path: Path) -> None:
    path = str(tmp_path / layout.JOURNAL)
    for number in range(5):
        append_line(path, {"at": number, "event": "state"})
    entries = Tail(path).entries()
    for position, (_, offset) in enumerate(entries):
        assert [entry["at"] for entry, _ in Tail(path, offset).entries()] == list(range(position + 1, 5))


def test_the_offset_of_another_run_is_not_used(tmp_path: Path) -> None:
    append_line(str(tmp_path / layout.JOURNAL), {"at": 1, "event": "submitted"})
    assert [event.kind for event in Tail.of_run(str(tmp_path), 10_000).events()] == ["submitted"]


def test_torn_lines_and_other_values_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / layout.JOURNAL
    path.write_bytes(b'{"at": 1, "ev\n[]\n"text"\n' + b"[" * 5000 + b'\n{"at": 2, "event": "ended"}\n')
    tail = Tail.of_run(str(tmp_path))
    assert [event.kind for event in tail.events()] == ["ended"]
    assert [event.kind for event in journal.read(str(tmp_path))] == ["ended"]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_what_is_no_regular_file_has_no_entries(kind: str, tmp_path: Path) -> None:
    path = tmp_path / layout.JOURNAL
    (tmp_path / "other").write_text('{"at": 1, "event": "ended"}\n', encoding="utf-8")
    if kind == "link":
        path.symlink_to("other")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert Tail.of_run(str(tmp_path)).entries() == []


@pytest.mark.parametrize(
    ("kind", "ended", "kept"), [("progress", True, True), ("progress", 1.5, False), ("task-ended", 1.5, True)]
)
def test_whether_progress_ended_is_a_flag_and_when_a_task_ended_a_moment(kind: str, ended: object, kept: bool) -> None:
    event = Event.from_json({"at": 1.0, "event": kind, "role": "worker", "index": 0, "ended": ended})
    assert event is not None
    assert ("ended" in event.details) is kept
