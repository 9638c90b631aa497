"""The figures of `make metrics` that have a limit, and the names that may stand for two things."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "pailot"
BUILDER = "the public API builds it, `protocol` reads it: users and job files have one word for it"
ENGINE_ERROR = "below `engines` it is an error of the machine, above it the engine's, with its exit status"
OWN_WORD = "the word of the standard or program that the room speaks with"
TWICE = {
    "Accounts": "the rules of accounts, and the tables that hold them: `store.accounts`",
    "Auth": BUILDER,
    "Callback": BUILDER,
    "Caller": "who sent a request, as HTTP says it and as the service checks it",
    "Channel": "Alibaba's word for an input; the pipe of shims is not public",
    "Client": "the public API wraps the requests of one server",
    "Conflict": "a name in use: of one user's runs, and of a server's jobs",
    "Deployment": BUILDER,
    "Driver": "each applies the completion policy of one run, on Slurm's node or here: the word of the glossary",
    "Entry": "an entry of the table of engines, and of the queue: both stay in their module",
    "Event": "an event of the journal, and what each boundary makes of it: the stream, the service, the public API",
    "Job": BUILDER,
    "Limits": "what an archive may hold, what a control group allows: both are bounds",
    "LogPiece": "the server's and the client's end of one request",
    "Login": "how one proves who one is: to a cluster, to a server",
    "Mirror": "a copy of a folder elsewhere: on Slurm's login node, and beside a cluster",
    "NameInUse": "a name in use: of an account, and of a run",
    "Names": "of a cluster's objects, and of jobs in a list",
    "NoPorts": ENGINE_ERROR,
    "NotAllowed": "a place that a job may not use, and a sign-on that is not let in",
    "Output": BUILDER,
    "Placement": "where tasks are, while it is planned and as it is written down",
    "Place": "a place of a test, and of a log",
    "PortTaken": ENGINE_ERROR,
    "Ports": ENGINE_ERROR,
    "Prerequisite": BUILDER,
    "Proxy": "a proxy before a cluster, and before a server",
    "Record": OWN_WORD,
    "Request": "a request over HTTP, and one to the queue",
    "Result": "of a command in a test, and of a run in the public API",
    "Run": "the public API wraps a run that is driven",
    "Sample": OWN_WORD,
    "Standing": "how a job stands: for the table of settling, and for the pages of a server",
    "TaskRole": BUILDER,
    "Text": OWN_WORD,
    "Unreachable": "what cannot be reached: an engine, a place, a server; each has its exit status",
    "User": OWN_WORD,
    "Watcher": "what hears of a run, and of a cluster's objects",
    "Wanted": "what a client wants: a shell, or lines of a log",
}
"""Names of classes in two rooms, and why both keep it."""


@pytest.fixture(scope="module")
def metrics() -> ModuleType:
    """The script of `make metrics`."""
    found = importlib.util.spec_from_file_location("metrics", ROOT / "bench" / "metrics.py")
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}


def test_a_class_in_two_rooms_has_a_reason(metrics: ModuleType, trees: dict[str, ast.Module]) -> None:
    found = metrics.shared_classes(trees)
    assert {name: sorted(rooms) for name, rooms in found.items() if name not in TWICE} == {}
    assert [name for name in TWICE if name not in found] == []


def test_siblings_do_not_import_each_other(metrics: ModuleType, trees: dict[str, ast.Module]) -> None:
    assert list(metrics.sibling_cycles(trees)) == []


def test_no_room_asks_for_the_name_of_an_engine(metrics: ModuleType, trees: dict[str, ast.Module]) -> None:
    others = {name: tree for name, tree in trees.items() if name != metrics.REGISTRY}
    assert [name for name, tree in others.items() if metrics.engine_getattrs(tree) or metrics.engine_comparisons(tree)] == []


def test_imports_inside_functions_are_few(metrics: ModuleType, trees: dict[str, ast.Module]) -> None:
    assert sum(metrics.function_imports(tree) for tree in trees.values()) <= 300


def test_documents_without_a_type_stay_at_the_edge(metrics: ModuleType) -> None:
    assert sum(metrics.lines_with("dict[str, Any]", path) for path in PACKAGE.rglob("*.py")) <= 150
    named = {path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py") if metrics.lines_with("JsonObject", path)}
    assert named == {"client"}
