"""The tree of exceptions that is drawn is the tree there is."""

from __future__ import annotations

import re

import pailot
from pailot.sdk import errors


def test_the_drawn_tree_is_the_exported_one() -> None:
    drawn: dict[str, str | None] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"(?P<indent>[│├└─ ]*)(?P<name>[A-Z]\w+)(?:  |$)", line)
        if found:
            level = len(found["indent"]) // 4
            above[level:] = [found["name"]]
            drawn[found["name"]] = above[level - 1] if level else None
    exported = {
        name: getattr(pailot, name)
        for name in pailot.__all__
        if isinstance(getattr(pailot, name), type) and issubclass(getattr(pailot, name), BaseException)
    }
    assert set(drawn) == set(exported)
    for name, parent in drawn.items():
        assert parent is None or exported[parent] in exported[name].__mro__[1:]
    assert issubclass(pailot.WaitTimeout, TimeoutError)
