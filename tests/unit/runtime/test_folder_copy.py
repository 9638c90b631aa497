"""A copy of a folder that is brought piece after piece, by somebody who may be interrupted at any of them."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pailot.runfolder import layout
from pailot.runfolder.atomic_json import append_line
from pailot.runtime.folder_copy.receiver import Receiver
from pailot.runtime.folder_copy.sender import Sender
from pailot.runtime.folder_copy.tree import EVENTS, PIECE, Tree, put

STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["tasks/a/all", EVENTS, "driver.log"]), st.binary(max_size=20)),
        st.tuples(st.just("tasks/a/final.json"), st.binary(min_size=1, max_size=20)),
        st.integers(0, 5),  # so many pieces arrive, then the connection breaks
    ),
    max_size=20,
)


def sizes(folder: Path) -> dict[str, int]:
    return {path: (folder / path).stat().st_size for path in Tree(str(folder)).files()}


def contents(folder: Path) -> dict[str, bytes]:
    return {path: (folder / path).read_bytes() for path in Tree(str(folder)).files()}


@settings(deadline=None, max_examples=30)
@given(STEPS)
def test_the_copy_is_whole_whenever_it_is_interrupted(steps: list[tuple[str, bytes] | int]) -> None:
    with tempfile.TemporaryDirectory() as name:
        there, here = Path(name, "there"), Path(name, "here")
        for folder in (there, here):
            (folder / "tasks/a").mkdir(parents=True)
        for each in steps:
            if isinstance(each, int):
                for piece, _ in zip(Tree(str(there), sizes(here)).news(), range(each), strict=False):
                    put(str(here), *piece)
            else:
                path, data = each
                with open(there / path, "wb" if path.endswith(".json") else "ab") as stream:
                    stream.write(data)
        for piece in Tree(str(there), sizes(here)).news():
            put(str(here), *piece)
        assert contents(here) == contents(there)


def test_what_the_journal_tells_of_is_brought_before_it(tmp_path: Path) -> None:
    (tmp_path / EVENTS).write_bytes(b"one\n")
    (tmp_path / "zz").write_bytes(b"x" * (PIECE + 1))
    news = Tree(str(tmp_path)).news()
    first = next(news)
    (tmp_path / EVENTS).write_bytes(b"one\ntwo of something that comes later\n")
    found = [first, *news]
    assert [(path, offset, len(data)) for path, offset, data in found if data] == [
        ("zz", 0, PIECE),
        ("zz", PIECE, 1),
        (EVENTS, 0, 4),
    ]


def test_what_is_one_sides_own_stays_there(tmp_path: Path) -> None:
    (tmp_path / "tasks/a/work").mkdir(parents=True)
    for name in ("orders", "secrets.once", "payload.json", ".part", "tasks/a/work/mine"):
        (tmp_path / name).write_bytes(b"x")
    assert list(Tree(str(tmp_path)).news()) == []
    with pytest.raises(ValueError, match="not below"):
        put(str(tmp_path), "../outside", 0, b"x")


def test_two_file_systems_are_joined_by_any_two_streams(tmp_path: Path) -> None:
    """As a step of Slurm, `kubectl exec` or ssh would join them: orders go there, logs and records come here."""
    there, here = tmp_path / "there", tmp_path / "here"
    for folder in (there, here):
        (folder / "tasks/a").mkdir(parents=True)
    append_line(str(here / layout.DRIVER_ORDERS), {"order": "stop"})
    (there / "tasks/a/all").write_bytes(b"one\n")
    ordered: list[object] = []

    def take_order(order: object) -> None:
        """The driver does what it is told, writes its last words, and ends."""
        ordered.append(order)
        (there / "tasks/a/all").write_bytes(b"one\ntwo\n")
        (there / "tasks/a/final.json").write_bytes(b"{}")
        (there / EVENTS).write_bytes(b"result\n")

    (to_there, from_here), (to_here, from_there) = os.pipe(), os.pipe()
    os.write(from_there, b"a prolog of the site talks\n")
    sender = Sender(str(there), (there / EVENTS).exists, take_order, to_there, from_there)
    arrived: list[bool] = []

    def show() -> None:
        arrived.append(sender.run())
        os.close(from_there)

    thread = threading.Thread(target=show)
    thread.start()
    receiver = Receiver(str(here))
    receiver.talk(from_here, to_here)
    thread.join()
    for descriptor in (to_there, from_here, to_here):
        os.close(descriptor)
    assert (arrived, receiver.arrived, ordered) == ([True], True, [{"order": "stop"}])
    assert contents(here) == contents(there)
