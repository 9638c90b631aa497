"""Jobs that follow jobs: conditions, words and what is kept of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.lifecycle.following import (
    CONDITIONS,
    END,
    GONE,
    SUCCESS,
    Predecessor,
    all_to_json,
    failure_words,
    read_all,
    split,
    waiting_words,
)
from pailot.lifecycle.states import FINAL_JOB_STATES

PREDECESSORS = st.builds(
    Predecessor,
    id=st.text(min_size=1),
    name=st.text(min_size=1),
    on=st.sampled_from(CONDITIONS),
    state=st.sampled_from(["", GONE, *sorted(FINAL_JOB_STATES)]),
    reason=st.text(),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prepare", ("prepare", SUCCESS)),
        ("ann~prepare:success", ("ann~prepare", SUCCESS)),
        ("prepare:end", ("prepare", END)),
        ("", None),
        (":end", None),
        ("prepare:", None),
        ("prepare:fail", None),
        ("prepare:end:end", None),
    ],
)
def test_how_a_predecessor_is_written(text: str, expected: tuple[str, str] | None) -> None:
    assert split(text) == expected


@pytest.mark.parametrize(
    ("on", "state", "failed"),
    [
        (SUCCESS, "", False),
        (END, "", False),
        (SUCCESS, "SUCCEEDED", False),
        (SUCCESS, "FAILED", True),
        (SUCCESS, "STOPPED", True),
        (END, "FAILED", False),
        (END, "STOPPED", False),
        (END, "SUCCEEDED", False),
        (SUCCESS, GONE, True),
        (END, GONE, True),
    ],
)
def test_when_a_follower_can_never_start(on: str, state: str, failed: bool) -> None:
    assert Predecessor("1", "ann~prepare", on, state).failed is failed


def test_words() -> None:
    one, other, third = Predecessor("1", "a~one"), Predecessor("2", "a~two", END), Predecessor("3", "a~three")
    assert waiting_words([one]) == "it waits for a~one to succeed"
    assert waiting_words([one, other, third]) == "it waits for a~one to succeed, for a~two to end and for a~three to succeed"
    assert waiting_words([one.ended("SUCCEEDED"), other]) == "it waits for a~two to end"
    assert waiting_words([]) == ""
    failed = one.ended("FAILED", "main:0 exited with 3")
    assert failure_words(failed) == "it was to start after a~one succeeded, and a~one FAILED: main:0 exited with 3"
    assert failure_words(one.ended(GONE)) == "it was to start after a~one, which was removed before its end was seen"


@given(st.lists(PREDECESSORS, max_size=4))
def test_what_is_kept_is_read_again(predecessors: list[Predecessor]) -> None:
    for before, after in zip(predecessors, read_all(all_to_json(predecessors)), strict=True):
        assert after == (before if before.is_over else before.replace(reason=""))
        assert after.failed == before.failed
