"""Orders to the keeper: JSON, whatever they hold; and those that an earlier keeper can read."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import pytest

from pailot.jobserver.keeper import earlier_orders, messages

SOURCE = Path(__file__).parents[3] / "src" / "pailot"


def received(data: bytes, size: int) -> list[bytes]:
    inbox = messages.Inbox()
    return [each for start in range(0, len(data), size) for each in inbox.feed(data[start : start + size])]


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_an_order_comes_with_its_documents(size: int) -> None:
    start = {"do": "start", "id": "one", "source": "a\nb\ud800", "began": None}
    data = messages.pack_order(start, '{"plan":1}', "[1]") + messages.pack_order({"do": "retire"})
    first, second = map(messages.Order, received(data, size))
    assert (first.job, *first.read()) == ("one", start, ['{"plan":1}', "[1]"])
    assert (second.job, *second.read()) == ("", {"do": "retire"}, [])


def test_the_job_of_a_damaged_order_is_known() -> None:
    order = messages.Order(b'"one"\n{')
    assert order.job == "one"
    with pytest.raises(ValueError, match="property name"):
        order.read()


@pytest.mark.parametrize(
    "message",
    [
        {"do": "retire"},
        {"do": "stop", "id": "one", "grace": 2.5, "now": False},
        {"do": "stop", "id": "one", "grace": None, "now": True},
        {"do": "abort", "id": "zwölf", "reason": "it's\nover"},
    ],
)
def test_a_keeper_from_before_an_update_reads_its_orders(message: dict[str, Any]) -> None:
    [content] = received(earlier_orders.pack_order(message), 1 << 20)
    stream = io.BytesIO(content)
    assert pickle.load(stream) == message.get("id", "")
    assert pickle.load(stream) == message
    assert not stream.read()


BYTECODE = SOURCE / "cli" / "quick_import.py"
"""Loads our own compiled modules, which are code, from where Python itself would."""


def test_nothing_of_ours_reads_what_could_be_code() -> None:
    """Python's own serialisation runs whatever it is told to; what goes between our processes, or lies in files, is JSON."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        for name in ("pickle", "marshal", "shelve", "dill"):
            assert f"import {name}" not in text or (path, name) == (BYTECODE, "marshal"), path
            assert f"from {name}" not in text, path
