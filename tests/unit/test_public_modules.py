"""Which modules of Pailot are public: those that `tools.site` lists, and what pages and examples import is nothing else."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.site import PUBLIC_MODULES

from ..support.documentation import ROOT, blocks_of

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("README*.md"), *(ROOT / "examples").rglob("*.md")])
PROGRAMS = sorted((ROOT / "examples").rglob("*.py"))
IMPORTED = re.compile(r"\b(?:from|import) (pailot(?:\.\w+)*)\b(?! login)")


def imports(text: str) -> Iterator[tuple[str, str]]:
    """Each module of Pailot that a program imports, with each name; the name is empty where the module itself is meant."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pailot":
            yield from ((str(node.module), each.name) for each in node.names)
        elif isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names if each.name.split(".")[0] == "pailot")


def programs_of(page: Path) -> Iterator[str]:
    """The blocks of a page that are whole Python programs."""
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.language == "python":
            yield block.text


def test_the_public_modules_are_few() -> None:
    assert {each for each in PUBLIC_MODULES if each.count(".") < 2} == {
        "pailot",
        "pailot.processor",
        "pailot.luigi",
        "pailot.testing",
    }
    contracts = {each.rpartition(".")[0] for each in PUBLIC_MODULES if each.count(".") > 1}
    assert contracts == {"pailot.engines", "pailot.planning.plugins"}


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_a_public_module_says_which_of_its_names_are_public(name: str) -> None:
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__) > 0
    assert [each for each in module.__all__ if not hasattr(module, each)] == []


def test_the_reference_lists_the_public_modules() -> None:
    page = (ROOT / "docs" / "reference" / "python-api.md").read_text(encoding="utf-8")
    section = page.partition("## Public modules")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE)) == PUBLIC_MODULES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_imports_only_what_is_public(page: Path) -> None:
    named = set(IMPORTED.findall(page.read_text(encoding="utf-8")))
    assert named <= set(PUBLIC_MODULES)
    for program in programs_of(page):
        check(program)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.relative_to(ROOT).as_posix())
def test_an_example_imports_only_what_is_public(program: Path) -> None:
    check(program.read_text(encoding="utf-8"))


def check(program: str) -> None:
    """Fail where a program imports what is not public."""
    for module, name in imports(program):
        assert module in PUBLIC_MODULES
        assert not name or name in importlib.import_module(module).__all__


def test_an_import_of_a_private_module_is_found() -> None:
    """A mistake in the reading of programs would let everything pass."""
    for program in ("import pailot.runtime.processes", "from pailot.runfolder import layout", "from pailot import sdk"):
        with pytest.raises(AssertionError):
            check(program)


def test_the_toolkit_has_what_the_guide_needs_and_nothing_else() -> None:
    page = ROOT / "docs" / "how-to" / "write-an-engine.md"
    used = {name for program in programs_of(page) for module, name in imports(program) if module == "pailot.engines.toolkit"}
    assert used == set(importlib.import_module("pailot.engines.toolkit").__all__)
