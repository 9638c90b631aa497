"""`make metrics`: figures about the source itself, for comparing one state of the house with another.

python bench/metrics.py [FOLDER_OF_THE_PACKAGE]
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ENGINES = "local docker slurm openpai kubernetes".split()
REGISTRY = "engines/registry.py"


def main(package: Path) -> None:
    files = {path.relative_to(package).as_posix(): path for path in sorted(package.rglob("*.py"))}
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in files.items()}
    figures = {
        "modules": len(files),
        "lines of code (no blank lines, comments, docstrings)": sum(map(code_lines, files.values())),
        "imports inside functions": sum(function_imports(tree) for tree in trees.values()),
        "lines with dict[str, Any]": sum(lines_with("dict[str, Any]", path) for path in files.values()),
        "lines with JsonObject, its name where HTTP is spoken": sum(lines_with("JsonObject", path) for path in files.values()),
        "import cycles between siblings": len(list(sibling_cycles(trees))),
        "getattr on an engine": sum(engine_getattrs(tree) for name, tree in trees.items() if name != REGISTRY),
        "comparisons with an engine's name outside the registry": sum(
            engine_comparisons(tree) for name, tree in trees.items() if name != REGISTRY
        ),
        "class names in two rooms": len(shared_classes(trees)),
    }
    for what, count in figures.items():
        print(f"{count:8,}  {what}")
    for cycle in sibling_cycles(trees):
        print(f"          cycle: {' '.join(cycle)}")


def lines_with(text: str, path: Path) -> int:
    return sum(text in line for line in path.read_text(encoding="utf-8").splitlines())


def code_lines(path: Path) -> int:
    """Lines that hold a token other than a comment or a docstring."""
    held: set[int] = set()
    fresh = True
    with path.open("rb") as stream:
        for token in tokenize.tokenize(stream.readline):
            if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER):
                continue
            if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                fresh = True
                continue
            if not (fresh and token.type == tokenize.STRING):
                held.update(range(token.start[0], token.end[0] + 1))
            fresh = False
    return len(held)


def function_imports(tree: ast.AST) -> int:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return len({id(node) for each in functions for node in ast.walk(each) if isinstance(node, ast.Import | ast.ImportFrom)})


def sibling_cycles(trees: dict[str, ast.Module]) -> Iterator[list[str]]:
    """Modules and packages of one folder that import each other at run time, at whatever depth."""
    names = {name.removesuffix(".py").removesuffix("/__init__"): tree for name, tree in trees.items()}
    edges: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, tree in names.items():
        is_package = f"{name}/__init__.py" in trees
        for target in _imports(name, tree, names, is_package=is_package):
            ours, theirs = name.split("/"), target.split("/")
            shared = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
            if shared is not None:
                edges["/".join(ours[:shared])][ours[shared]].add(theirs[shared])
    for folder, graph in sorted(edges.items()):
        for group in _strongly_connected(graph):
            if len(group) > 1:
                yield [f"{folder or '.'}:", *sorted(group)]


def _imports(name: str, tree: ast.Module, known: dict[str, ast.Module], *, is_package: bool) -> Iterator[str]:
    types = {id(node) for each in ast.walk(tree) if _is_for_types(each) for node in ast.walk(each)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level or id(node) in types:
            continue
        base = name.split("/") if is_package else name.split("/")[:-1]
        base = base[: len(base) - node.level + 1] + (node.module.split(".") if node.module else [])
        for alias in node.names:
            full = "/".join([*base, alias.name])
            target = full if full in known else "/".join(base)
            if target in known:
                yield target


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _strongly_connected(graph: dict[str, set[str]]) -> list[set[str]]:
    def reach(start: str) -> set[str]:
        found: set[str] = set()
        todo = [start]
        while todo:
            for each in graph.get(todo.pop(), ()):
                if each not in found:
                    found.add(each)
                    todo.append(each)
        return found

    reached = {each: reach(each) for each in graph}
    groups: list[set[str]] = []
    for each in graph:
        if not any(each in group for group in groups):
            groups.append({each} | {other for other in reached[each] if each in reached.get(other, ())})
    return groups


def engine_getattrs(tree: ast.AST) -> int:
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            found += bool(node.args) and "engine" in ast.unparse(node.args[0])
    return found


def engine_comparisons(tree: ast.AST) -> int:
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            parts = [each for part in (node.left, *node.comparators) for each in ast.walk(part)]
            names = any(isinstance(each, ast.Constant) and each.value in ENGINES for each in parts)
            found += names and "engine" in ast.unparse(node)
    return found


def shared_classes(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    rooms: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms[node.name].add(name.partition("/")[0])
    return {name: found for name, found in rooms.items() if len(found) > 1}


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "src" / "pailot")
