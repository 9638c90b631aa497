"""How long it takes to match a pattern, counted in steps; what it matches is compared with git in test_pack."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pailot.client.ignore import match_steps, read_rules, walk
from pailot.runfolder.removing import remove_tree


class Counted:
    """A step of a pattern that counts how often it is asked."""

    asked = 0

    def __init__(self, word: str) -> None:
        self.word = word

    def fullmatch(self, string: str) -> bool:
        Counted.asked += 1
        return self.word in ("*", string)


def matches_slowly(pattern: list[str | None], steps: list[str]) -> bool:
    """The meaning, word by word; takes exponential time."""
    if not pattern:
        return not steps
    if pattern[0] is None:
        return any(matches_slowly(pattern[1:], steps[skipped:]) for skipped in range(len(steps) + 1))
    return bool(steps) and pattern[0] in ("*", steps[0]) and matches_slowly(pattern[1:], steps[1:])


words = st.sampled_from(["a", "b", "*"])


@given(st.lists(st.one_of(st.none(), words), max_size=8), st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=8))
def test_steps_are_matched_as_they_mean(pattern: list[str | None], steps: list[str]) -> None:
    assert match_steps([None if word is None else Counted(word) for word in pattern], steps) == matches_slowly(pattern, steps)


@given(
    st.lists(st.one_of(st.none(), st.none(), words), max_size=60),
    st.lists(st.sampled_from(["a", "a", "a", "b"]), min_size=1, max_size=200),
)
def test_matching_takes_no_more_steps_than_pattern_times_path(pattern: list[str | None], steps: list[str]) -> None:
    Counted.asked = 0
    match_steps([None if word is None else Counted(word) for word in pattern], steps)
    assert Counted.asked <= (len(pattern) + 1) * len(steps)


def test_a_pattern_of_many_wildcards_ends() -> None:
    """In a process that may take ten seconds of a processor; what is exponential takes years."""
    program = """
from pailot.client.ignore import read_rules
deep, long = "/".join("a" * 24), "a" * 250
hard = {"**/" * 12 + "b": deep, "**/a/" * 12 + "b": deep, "*a" * 40 + "b": long, "x/" + "*[a]?" * 40 + "b": "x/" + long}
for line, path in hard.items():
    (rule,) = read_rules(line)
    assert not rule.matches(path, path.rpartition("/")[2], is_folder=False), line
"""
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_CPU, (10, 10)){program}"
    done = subprocess.run([sys.executable, "-c", limited], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_folder_of_1200_levels_is_walked(tmp_path: Path) -> None:
    path = str(tmp_path / "top")
    try:
        for _ in range(1200):
            os.mkdir(path)
            path += "/a"
        assert max(name.count("/") for name, _ in walk(str(tmp_path / "top"))) == 1198
    finally:
        remove_tree(str(tmp_path / "top"))  # pytest's own way calls itself for each


def test_where_nothing_can_match() -> None:
    for line in ("", "#a", "/", "a[", "a\\"):
        assert read_rules(line) == []
