"""The walks of CONTRIBUTING: their modules exist, each is loaded by one above it, and no step goes back up."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "pailot"
BY_CONTEXT = {
    "protocol.reader": "protocol",
    "cli.commands.run": "cli.main",
    "cli.commands.submit": "cli.main",
}
"""Loaded by a table of names, or by the word that the user typed."""


def walks() -> dict[str, list[str]]:
    """The modules of each leg."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, _, part = text.partition("## Two walks")
    part, _, _ = part.partition("\n## ")
    legs: dict[str, list[str]] = {}
    walk = leg = ""
    for line in part.splitlines():
        if line.startswith("### "):
            walk = line[4:].partition(":")[0]
        elif line.startswith("Leg "):
            leg = f"{walk}, {line.partition(',')[0]}"
            legs[leg] = []
        elif found := re.match(r"\| `([\w.]+)` \|", line):
            legs[leg].append(found[1])
    return legs


WALKS = walks()


def file_of(module: str) -> Path:
    path = PACKAGE / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def layers() -> dict[str, int]:
    """The depth of each room, by import-linter's list."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    found = next(each["layers"] for each in told if "layers" in each)
    return {room: depth for depth, layer in enumerate(found) for room in re.findall(r"\w+", layer)}


def loaded_by(module: str) -> Iterator[str]:
    """What a module imports, wherever in it, or names in a table."""
    file = file_of(module)
    text = file.read_text(encoding="utf-8")
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    tree = ast.parse(text)
    checks = (each for each in ast.walk(tree) if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING")
    types = {id(node) for each in checks for node in ast.walk(each)}
    for node in ast.walk(tree):
        if id(node) in types:
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*package[: len(package) - node.level + 1], *(node.module.split(".") if node.module else [])]
            yield ".".join(base)
            yield from (".".join([*base, alias.name]) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.partition(":")[0].removeprefix("pailot.")


def test_both_walks_are_there() -> None:
    assert len(WALKS) == 6
    assert all(len(leg) > 7 for leg in WALKS.values())


@pytest.mark.parametrize("leg", WALKS)
def test_the_modules_exist(leg: str) -> None:
    assert [module for module in WALKS[leg] if not file_of(module).exists()] == []


@pytest.mark.parametrize("leg", WALKS)
def test_no_step_goes_back_up(leg: str) -> None:
    depths = layers()
    depth = [depths[module.partition(".")[0]] for module in WALKS[leg]]
    assert depth == sorted(depth)


@pytest.mark.parametrize("leg", WALKS)
def test_each_step_is_loaded_by_one_above(leg: str) -> None:
    first, *steps = WALKS[leg]
    known = {first}
    for module in steps:
        assert any(module in loaded_by(above) for above in known) or BY_CONTEXT.get(module) in known, module
        known.add(module)
