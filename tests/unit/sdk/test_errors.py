"""The tree of exceptions that is drawn is the tree there is."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

import pailot
from pailot.luigi import PaiJobFailed
from pailot.processor import UnexpectedStatusException
from pailot.processor.errors import InvalidProcessor
from pailot.sdk import errors

EXPORTED = {
    name: getattr(pailot, name)
    for name in pailot.__all__
    if isinstance(getattr(pailot, name), type) and issubclass(getattr(pailot, name), BaseException)
}


def tree(text: str) -> dict[str, str | None]:
    """Each exception of a drawing, and the one above it."""
    drawn: dict[str, str | None] = {}
    above: list[str] = []
    for line in text.splitlines():
        found = re.match(r"(?P<indent>[│├└─ ]*)(?P<name>[A-Z]\w+)(?:  |$)", line)
        if found:
            level = len(found["indent"]) // 4
            above[level:] = [found["name"]]
            drawn[found["name"]] = above[level - 1] if level else None
    return drawn


def test_the_drawn_tree_is_the_exported_one() -> None:
    drawn = tree(errors.__doc__ or "")
    assert set(drawn) == set(EXPORTED)
    for name, parent in drawn.items():
        assert parent is None or EXPORTED[parent] in EXPORTED[name].__mro__[1:]
    assert issubclass(pailot.WaitTimeout, TimeoutError)


def made(kind: type[BaseException]) -> BaseException:
    about = ("job", "main:0", 3, "exited with 3", ["one", "two"])
    if issubclass(kind, UnexpectedStatusException):
        return kind("it failed", "Failed", *about)
    if issubclass(kind, pailot.RunError):
        return kind("it failed", *about)
    if issubclass(kind, pailot.Refused):
        return kind("no", 403, "ForbiddenUserError")
    if issubclass(kind, pailot.InvalidJob):
        return kind([pailot.Problem("bad-name", "is no name", "job.yaml", 3, 7)])
    return kind("it is so")


@pytest.mark.parametrize("kind", [*EXPORTED.values(), PaiJobFailed, UnexpectedStatusException, InvalidProcessor])
def test_every_one_crosses_processes_whole(kind: type[BaseException]) -> None:
    error = made(kind)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (str(again), again.args) == (str(error), error.args)
    assert {name: str(value) for name, value in vars(again).items()} == {name: str(value) for name, value in vars(error).items()}
    assert isinstance(error, pailot.PailotError)


def test_a_run_error_says_all_in_its_words() -> None:
    error = made(pailot.JobFailed)
    assert isinstance(error, pailot.JobFailed)
    assert (error.job, error.task, error.exit_code, error.reason, error.last_lines) == (
        "job",
        "main:0",
        3,
        "exited with 3",
        ("one", "two"),
    )
    assert str(error) == "it failed\nlast lines of main:0:\n    one\n    two"


def test_the_reference_draws_the_same_tree() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "python-api.md").read_text()
    assert tree(page[page.index("## Exceptions") :]) == tree(errors.__doc__ or "")
