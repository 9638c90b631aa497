"""When an attempt has started."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pailot.lifecycle.claims import Claims
from pailot.lifecycle.completion import RoleRule

RULES = [RoleRule("a", 2, 1, 1), RoleRule("b", 1, 1, 1)]


@given(st.permutations([("a", 0), ("a", 1), ("b", 0)]), st.lists(st.sampled_from([("a", 0), ("a", 1), ("b", 0)])))
def test_it_has_once_when_the_last_task_has_begun(order: list[tuple[str, int]], again: list[tuple[str, int]]) -> None:
    claims = Claims(RULES)
    assert [claims.add(*task) for task in (order[0], *order)] == [False, False, False, True]
    assert not any(claims.add(*task) for task in again)


def test_a_task_that_is_told_twice_is_one() -> None:
    claims = Claims(RULES)
    assert [claims.add(*task) for task in (("a", 0), ("a", 0), ("b", 0), ("a", 1), ("a", 1))] == [
        False,
        False,
        False,
        True,
        False,
    ]
