"""Files of one user do not hold up those of others, and none holds up the loop."""

from __future__ import annotations

import asyncio
import threading

from pailot.jobserver.reading_pool import THREADS, ReadingPool


def test_whoever_sends_many_files_waits_for_his_own_only() -> None:
    begun: list[str] = []
    running = threading.Semaphore(0)
    free = threading.Event()

    def hostile() -> str:
        begun.append("mallory")
        running.release()
        free.wait()
        return "mallory"

    async def scenario() -> None:
        pool = ReadingPool()
        crowd = [asyncio.create_task(pool.read("mallory", hostile)) for _ in range(10)]
        await asyncio.to_thread(running.acquire)
        # One of the ten is read, the others wait for it, and the loop goes on: others' files are read meanwhile.
        assert await pool.read("alice", lambda: "alice") == "alice"
        assert await pool.read("bob", lambda: "bob") == "bob"
        assert begun == ["mallory"]
        assert THREADS > 1
        free.set()
        assert await asyncio.gather(*crowd) == ["mallory"] * 10
        assert pool._turns == {}
        pool.close()

    asyncio.run(scenario())


def test_a_failure_and_a_caller_who_has_gone_leave_nothing_behind() -> None:
    free = threading.Event()

    def fails() -> None:
        raise ValueError("no job")

    async def scenario() -> None:
        pool = ReadingPool()
        first = asyncio.create_task(pool.read("mallory", free.wait))
        second = asyncio.create_task(pool.read("mallory", free.wait))
        await asyncio.sleep(0)
        second.cancel()
        free.set()
        assert await first
        results = await asyncio.gather(second, pool.read("mallory", fails), return_exceptions=True)
        assert [type(result) for result in results] == [asyncio.CancelledError, ValueError]
        assert pool._turns == {}
        pool.close()

    asyncio.run(scenario())
