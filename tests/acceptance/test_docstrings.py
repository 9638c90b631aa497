"""The examples in docstrings of the public modules run as shown, with real runs."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import pailot
from tools.site import PUBLIC_MODULES

JOB = """\
protocolVersion: 2
name: hello
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: debian}
taskRoles:
  main:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: [echo hello]
"""


def examples() -> dict[str, doctest.DocTest]:
    """The docstrings with examples, by the names of what they explain; each once, under its first name."""
    found: dict[str, doctest.DocTest] = {}
    seen: set[int] = set()
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name in PUBLIC_MODULES:
        module = importlib.import_module(name)
        for each in module.__all__:
            value = getattr(module, each)
            if callable(value) and id(value) not in seen:
                seen.add(id(value))
                names = {"pailot": pailot, **vars(module)}
                tests = finder.find(value, f"{name}.{each}", module=False, globs=names)
                found |= {test.name: test for test in tests if test.examples}
    return found


EXAMPLES = examples()


def test_the_examples_are_many() -> None:
    """A mistake in the search would let everything pass."""
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_docstring_runs_as_shown(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PAILOT_ENGINE", raising=False)
    printed: list[str] = []
    done = doctest.DocTestRunner().run(EXAMPLES[name], out=printed.append)
    assert done.failed == 0, "".join(printed)
