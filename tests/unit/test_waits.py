"""No wait of ours can be longer than the kernel takes: found in the source, so that a new one is looked at, too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "pailot"
CAPS = {"capped", "milliseconds"}
"""The functions of `lifecycle.waits`."""
TIMEOUT_AT = {"poll": 0, "select": 3, "wait_for": 1, "call_later": 0, "settimeout": 0, "sleep": 0, "setitimer": 1, "timeout": 0}
"""Calls that end in one of the kernel, and which of their arguments is the time."""
EVENTS = ("poke", "asked", "over", "condition", "event", "asyncio", "stopping", "done")
"""What a receiver of `.wait` is called where it is an event or a condition; our own waits cap themselves."""


def _time_of(call: ast.Call) -> ast.expr | None:
    """What a call that waits is given as its time; None if it is no such call, or waits for as long as it takes."""
    if isinstance(call.func, ast.Attribute):
        name, receiver = call.func.attr, ast.unparse(call.func.value)
    elif isinstance(call.func, ast.Name):
        name, receiver = call.func.id, ""
    else:
        return None
    named = next((each.value for each in call.keywords if each.arg == "timeout"), None)
    if name == "wait":
        if not any(word in receiver.lower() for word in EVENTS):
            return None
        return named or (call.args[0] if call.args and receiver != "asyncio" else None)
    if name not in TIMEOUT_AT or (name == "timeout" and receiver != "asyncio"):
        return None
    return named or (call.args[TIMEOUT_AT[name]] if len(call.args) > TIMEOUT_AT[name] else None)


def _is_bounded(value: ast.expr, where: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Name | ast.Attribute):
        name = value.id if isinstance(value, ast.Name) else value.attr
        if name.isupper() or name.lstrip("_").isupper() or name in seen:
            return True
        given = [
            each.value
            for each in ast.walk(where)
            if isinstance(each, ast.Assign) and any(ast.unparse(target) == ast.unparse(value) for target in each.targets)
        ]
        given += [
            default
            for each in ast.walk(where)
            if isinstance(each, ast.For) and ast.unparse(each.target) == name and isinstance(each.iter, ast.Call)
            for default in each.iter.args
        ]
        return bool(given) and all(_is_bounded(each, where, seen | {name}) for each in given)
    if isinstance(value, ast.IfExp):
        return _is_bounded(value.body, where, seen) and _is_bounded(value.orelse, where, seen)
    if isinstance(value, ast.Subscript):
        return _is_bounded(value.value, where, seen)
    if isinstance(value, ast.Call):
        called = ast.unparse(value.func).rsplit(".", 1)[-1]
        if called == "min":
            return any(_is_bounded(each, where, seen) for each in value.args)
        if called == "max":
            return all(_is_bounded(each, where, seen) for each in value.args)
        return called in CAPS
    return False


def _unbounded(tree: ast.Module) -> list[str]:
    """Calls whose time no function or class around them bounds."""
    bounded: dict[ast.Call, bool] = {}
    for outer in ast.walk(tree):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for call in (each for each in ast.walk(outer) if isinstance(each, ast.Call)):
                value = _time_of(call)
                if value is not None:
                    bounded[call] = bounded.get(call, False) or _is_bounded(value, outer)
    return [f"{call.lineno}: {ast.unparse(call)}" for call, is_so in bounded.items() if not is_so]


def test_every_wait_is_bounded() -> None:
    found = {
        str(path.relative_to(SOURCE)): calls
        for path in sorted(SOURCE.rglob("*.py"))
        if "testing" not in path.parts[:-1]  # its `wait_for` looks again and again, and hands no time to the system
        if (calls := _unbounded(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert not found, f"use pailot.lifecycle.waits: {found}"


@pytest.mark.parametrize(
    ("wait", "bounded"),
    [
        ("poller.poll(timeout)", False),
        ("poller.poll(seconds * 1000)", False),
        ("poller.poll(min(seconds, 0.25) * 1000)", False),
        ("poller.poll()", True),
        ("poller.poll(milliseconds(seconds))", True),
        ("select.select([a], [], [], min(left, 1.0))", True),
        ("select.select([a], [], [], left)", False),
        ("asyncio.wait_for(x, None if due is None else due - now)", False),
        ("time.sleep(max(0.0, left))", False),
        ("self.poke.wait(self.interval)", False),
        ("signal.setitimer(signal.ITIMER_REAL, seconds)", False),
    ],
)
def test_the_test_itself(wait: str, bounded: bool) -> None:
    assert (not _unbounded(ast.parse(f"def f():\n    {wait}"))) == bounded
