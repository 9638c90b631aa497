"""Layers of tests know `tests.support` and `tests.parts`, and never each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
LAYERS = ("acceptance", "browser", "conformance", "integration", "unit")


def imported(file: Path) -> Iterator[str]:
    """The modules of the tests that a file imports: `support.servers`."""
    package = file.relative_to(TESTS).parts[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            name = node.module or ""
            if node.level:
                above = package[: len(package) - node.level + 1]
                yield from (".".join([*above, *filter(None, [name]), alias.name]) for alias in node.names)
            elif name.startswith("tests."):
                yield name.removeprefix("tests.")


@pytest.mark.parametrize("layer", [*LAYERS, "parts", "support"])
def test_a_layer_imports_no_other(layer: str) -> None:
    others = {each for each in LAYERS if each != layer}
    wrong = [
        f"{file.relative_to(TESTS)}: {module}"
        for file in sorted((TESTS / layer).rglob("*.py"))
        for module in imported(file)
        if module.partition(".")[0] in others
    ]
    assert wrong == []
