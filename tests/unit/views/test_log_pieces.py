"""Pieces of logs become whole lines, however they were cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.views.log_pieces import LineAssembler, Piece, as_lines


def piece(data: bytes, role: str = "main", index: int = 0, attempt: int = 0, task_attempt: int = 0, **more: object) -> Piece:
    return Piece(role, index, attempt, task_attempt, data).replace(**more)


def lines(*pieces: Piece) -> list[str]:
    return [f"{role}:{index} {text}" for role, index, text in as_lines(pieces)]


def test_a_line_that_comes_in_two_halves_is_one() -> None:
    assert lines(piece(b"on"), piece(b"e\ntw"), piece(b"o\n")) == ["main:0 one", "main:0 two"]


def test_the_halves_of_two_tasks_are_kept_apart() -> None:
    assert lines(piece(b"a"), piece(b"b", index=1), piece(b"A\n"), piece(b"B\n", index=1)) == ["main:0 aA", "main:1 bB"]


def test_another_attempt_ends_the_line_of_the_one_before() -> None:
    assert lines(piece(b"torn"), piece(b"new\n", task_attempt=1)) == ["main:0 torn", "main:0 new"]
    assert lines(piece(b"torn"), piece(b"new\n", attempt=1)) == ["main:0 torn", "main:0 new"]


def test_the_two_streams_of_a_task_are_not_glued() -> None:
    told = lines(piece(b"out", stream="stdout"), piece(b"err", stream="stderr"), piece(b"put\n", stream="stdout"))
    assert told == ["main:0 output", "main:0 err"]


def test_what_has_no_end_is_told_at_the_end() -> None:
    assert lines(piece(b"x"), piece(b"y", "other")) == ["main:0 x", "other:0 y"]


def test_a_gap_is_a_warning_that_names_the_task() -> None:
    with pytest.warns(RuntimeWarning, match="main:0: 7 bytes of its log were rotated away"):
        assert lines(piece(b"rest\n", missing=7)) == ["main:0 rest"]


@given(st.lists(st.binary(max_size=6).filter(lambda data: b"\n" not in data), max_size=8), st.data())
def test_any_cut_gives_the_same_lines(texts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(text + b"\n" for text in texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    assembler, found = LineAssembler(), []
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += [line for _, _, line in assembler.feed(piece(whole[begin:end]))]
    assert [*found, *(line for _, _, line in assembler.finish())] == texts
