"""Everything public has a docstring: what it is or returns, which of our errors it raises, and examples where users begin."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from types import FunctionType
from typing import NamedTuple

import pytest

import pailot
from pailot.errors import PailotError
from pailot.planning.plugins.plugin_api import PluginError
from tools.site import PUBLIC_MODULES

WHAT_IT_IS = ("A", "All", "An", "Each", "Every", "How", "The", "What", "Where", "Whether")
"""A docstring that begins with one of these words says what is returned."""
RAISED = {
    "pailot.load": ("InvalidJob",),
    "pailot.loads": ("InvalidJob",),
    "pailot.run": ("InvalidJob", "Conflict", "EngineError", "WireError"),
    "pailot.get": ("NoSuchRun",),
    "pailot.Job": ("InvalidJob",),
    "pailot.Job.changed": ("InvalidJob",),
    "pailot.Client": ("PailotError",),
    "pailot.Client.run": ("InvalidJob", "Conflict", "WireError"),
    "pailot.Client.get": ("NoSuchRun",),
    "pailot.Run.wait": ("WaitTimeout",),
    "pailot.Run.result": ("JobFailed", "JobStopped", "WaitTimeout"),
    "pailot.Run.wait_async": ("WaitTimeout",),
    "pailot.Run.result_async": ("JobFailed", "JobStopped", "WaitTimeout"),
    "pailot.processor.Processor.run": ("InvalidProcessor", "UnexpectedStatusException"),
    "pailot.processor.TrainingJob.get": ("NoSuchRun",),
    "pailot.luigi.ProcessorTask.run": ("PaiJobFailed",),
}
"""Errors that functions below the named ones raise."""
WITH_AN_EXAMPLE = (
    "pailot.load",
    "pailot.loads",
    "pailot.plan",
    "pailot.run",
    "pailot.run_async",
    "pailot.get",
    "pailot.runs",
    "pailot.Job",
    "pailot.TaskRole",
    "pailot.Client",
    "pailot.Run",
    "pailot.Run.result",
    "pailot.processor.Processor",
    "pailot.luigi.PaiTask",
    "pailot.luigi.ProtocolTask",
    "pailot.luigi.ProcessorTask",
    "pailot.testing.EngineConformance",
    "pailot.testing.EngineUnderTest",
    "pailot.engines.contract.Engine",
    "pailot.engines.fake.FakeEngine",
    "pailot.planning.plugins.plugin_api.Steps",
    "pailot.planning.plugins.plugin_api.on",
)
"""Where users of the public modules begin."""


class Member(NamedTuple):
    """A public class, function, method or property; `function` is None for a class."""

    name: str
    docstring: str
    function: FunctionType | None


def members() -> Iterator[Member]:
    """Everything that is public, in the order of the modules."""
    for name in PUBLIC_MODULES:
        module = importlib.import_module(name)
        for each in module.__all__:
            value = getattr(module, each)
            if isinstance(value, type):
                yield Member(f"{name}.{each}", inspect.cleandoc(vars(value).get("__doc__") or ""), None)
                yield from methods(f"{name}.{each}", value)
            elif isinstance(value, FunctionType):
                yield Member(f"{name}.{each}", inspect.getdoc(value) or "", value)


def methods(name: str, kind: type) -> Iterator[Member]:
    """The public methods and properties of a class. A method that stands for one of a base may have its docstring."""
    fields = getattr(kind, "_fields", ())
    for each, value in vars(kind).items():
        inner = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
        ours = isinstance(inner, FunctionType) and inner.__module__.startswith("pailot.")
        if ours and not each.startswith(("_", "test_")) and each not in fields:
            yield Member(f"{name}.{each}", inspect.getdoc(getattr(kind, each)) or "", inner)


MEMBERS = {each.name: each for each in members()}


def errors_raised(function: FunctionType) -> set[str]:
    """The names of our errors that the function itself raises."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    named: set[str] = set()
    for node in ast.walk(tree):
        raised = node.exc if isinstance(node, ast.Raise) else None
        while isinstance(raised, ast.Call | ast.Attribute):
            raised = raised.func if isinstance(raised, ast.Call) else raised.value
        kind = function.__globals__.get(raised.id) if isinstance(raised, ast.Name) else None
        if isinstance(kind, type) and issubclass(kind, PailotError | PluginError):
            named.add(kind.__name__)
    return named


def test_the_members_are_many() -> None:
    """A mistake in the search would let everything pass."""
    assert len(MEMBERS) > 200
    assert errors_raised(vars(pailot.Run)["_result"]) == {"JobFailed", "JobStopped"}


@pytest.mark.parametrize("name", MEMBERS)
def test_a_public_name_is_explained(name: str) -> None:
    _, docstring, function = MEMBERS[name]
    assert docstring, "there is no docstring"
    if function is None:
        return
    returned = str(function.__annotations__.get("return"))
    if returned not in ("None", "NoReturn"):
        says = re.search(r"\breturn(s|ed)?\b", docstring, re.IGNORECASE) or docstring.split()[0] in WHAT_IT_IS
        assert says, f"say what it returns ({returned}), or begin with one of {', '.join(WHAT_IT_IS)}"


@pytest.mark.parametrize("name", MEMBERS)
def test_the_errors_of_a_public_name_are_told(name: str) -> None:
    _, docstring, function = MEMBERS[name]
    expected = {*RAISED.get(name, ()), *(errors_raised(function) if function else ())}
    missing = {each for each in expected if not re.search(rf"\b{each}\b", docstring)}
    assert not missing, f"say that it raises {', '.join(sorted(missing))}"
    assert not expected or re.search(r"\braises?\b|\bEngineError where\b", docstring, re.IGNORECASE), "say when it raises"


def test_the_table_of_raised_errors_names_public_members() -> None:
    assert set(RAISED) <= set(MEMBERS)


@pytest.mark.parametrize("name", WITH_AN_EXAMPLE)
def test_a_name_where_users_begin_has_an_example(name: str) -> None:
    assert re.search(r"^(>>> |    \S)", MEMBERS[name].docstring, re.MULTILINE)
