"""The names of a run's files are in one module, and on one page."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pailot.runfolder import layout

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "pailot"
NAMES = {value for name, value in vars(layout).items() if name.isupper() and isinstance(value, str)}
TELLING = {name for name in NAMES if not name.isalpha() and name != layout.JOB_FILE}
"""Names that mean a file of a run wherever they stand. `job.yaml` is also what users call their own job files."""
SPELLED = re.compile(rf"(?<![\w.-])({'|'.join(map(re.escape, sorted(TELLING, key=len, reverse=True)))})(?![\w-])")
MAKES_PATHS = {"join", "file", "record", "read_text", "sound", "exists"}
OTHERS = {
    "lifecycle/states.py": "the code of an alert is called disk-full, too",
    "engines/preparation/sandbox.py": "/ml is where a task sees its channels",
}


def spelled(text: str) -> Iterator[tuple[int, str]]:
    """Yield the file names of a run that a module spells, with their lines: in paths every name, elsewhere the telling ones."""
    tree = ast.parse(text)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield from ((node.lineno, name) for name in SPELLED.findall(node.value))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in MAKES_PATHS:
            for given in node.args:
                if isinstance(given, ast.Constant) and given.value in NAMES - TELLING:
                    yield given.lineno, str(given.value)


def test_no_other_module_spells_the_name_of_a_file() -> None:
    modules = [each for each in sorted(SOURCE.rglob("*.py")) if each != SOURCE / "runfolder" / "layout.py"]
    found = [
        f"{module.relative_to(SOURCE)}:{line}: {name}"
        for module in modules
        if str(module.relative_to(SOURCE)) not in OTHERS
        for line, name in spelled(module.read_text(encoding="utf-8"))
    ]
    assert not found


@pytest.mark.parametrize(
    "text",
    ['open(folder + "/verdict.json")', 'os.path.join(task, "claim")', 'f"{folder}/final.json"', 'x = f"its job.json is damaged"'],
)
def test_a_spelled_name_is_found(text: str) -> None:
    assert list(spelled(text))


def test_every_file_is_on_the_page_about_the_folder() -> None:
    page = (ROOT / "docs" / "reference" / "job-folder.md").read_text(encoding="utf-8")
    told = {part for path in re.findall(r"`([^` ]+)`", page) for part in path.strip("/").split("/")}
    assert NAMES - told == set()


def test_the_examples() -> None:
    assert doctest.testmod(layout).failed == 0
