"""Signals: everyone who waits is woken, many of them not for every single piece of news."""

from __future__ import annotations

import asyncio

from pailot.jobserver.signals import CROWD, Signal


def test_a_few_hear_at_once() -> None:
    signal = Signal()
    signal.ring_soon(CROWD)
    signal.ring_soon(1)
    assert signal.count == 2


def test_a_crowd_hears_once_of_all_that_happens_in_a_moment() -> None:
    async def crowd() -> None:
        signal = Signal()
        for _ in range(5):
            signal.ring_soon(1_000)
        assert signal.count == 1, "the first news after a silence does not wait"
        assert await signal.wait(1) == 2, "the rest is told once"
        signal.ring_soon(1_000)
        assert signal.count == 2
        assert await signal.wait(2) == 3, "and again after that"

    asyncio.run(crowd())


def test_what_matters_does_not_wait() -> None:
    async def crowd() -> None:
        signal = Signal()
        for _ in range(2):
            signal.ring_soon(1_000_000)
        assert signal.count == 1
        signal.ring()
        assert signal.count == 2
        signal.ring_soon(CROWD + 1)
        assert await signal.wait(2) == 3

    asyncio.run(crowd())
