"""`kill -9` of the server, and of its keeper, under load: nothing acknowledged is lost, and nothing is done twice."""

from __future__ import annotations

import asyncio
import collections
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.runs import PATIENCE, job, kill_all_with, no_process_left, role

REPETITIONS = int(os.environ.get("PAILOT_FAULT_REPETITIONS", "0")) or 6
SUBMITTERS = 20
ROOT = Path(__file__).parents[2]


class Servers:
    """One server after the other on the same home, and what was acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.socket = folder, folder / "home", str(folder / "s")
        self.ran = folder / "ran"
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("PAILOT_")} | {
            "PAILOT_HOME": str(self.home),
            "PAILOT_CPUS": "8",
            "PAILOT_MEMORY_MB": "8000",
            "PAILOT_GPUS": "none",
            "PAILOT_LOCKS": str(folder / "locks"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
        }
        self.acknowledged: set[str] = set()
        self.done = False
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """A new server; answers how long it took to be ready, with all jobs taken up."""
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        began = time.monotonic()
        command = [sys.executable, "-m", "tests.acceptance.team_process", self.socket]
        self.process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE)
        assert self.process.stdout
        assert self.process.stdout.readline() == b"ready\n"
        return time.monotonic() - began

    def kill(self) -> None:
        assert self.process
        assert self.process.stdout
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def kill_keeper(self) -> None:
        try:
            os.kill(int((self.home / "keeper.lock").read_text()), signal.SIGKILL)
        except (ProcessLookupError, ValueError):
            pass  # it was being replaced just then

    def text(self, name: str) -> str:
        return job(role(f"echo {name} >> {self.ran}; echo begin {name}; seq 1 200; echo end {name}"), name=name)

    def log(self, name: str) -> str:
        return f"begin {name}\n" + "".join(f"{number}\n" for number in range(1, 201)) + f"end {name}\n"

    async def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        reader, writer = await asyncio.open_unix_connection(self.socket)
        try:
            writer.write(json.dumps({"user": "ann", **question}).encode() + b"\n")
            line = await reader.readline()
            if not line:
                raise ConnectionError("the server has gone")
            return json.loads(line)  # type: ignore[no-any-return]  # JSON
        finally:
            writer.close()

    async def submitter(self, number: int) -> None:
        """One job after the other; without an answer the same again, which may find the name used."""
        count = 0
        while not self.done:
            name = f"j-{number}-{count}"
            try:
                said = await self.ask({"submit": self.text(name)})
            except OSError:
                await asyncio.sleep(0.02)
                continue
            assert "name" in said or "conflict" in said, said
            self.acknowledged.add(name)
            count += 1
            await asyncio.sleep(0.1)

    async def finished(self) -> None:
        end = time.monotonic() + PATIENCE + len(self.acknowledged)
        while (await self.ask({}))["unfinished"]:
            assert time.monotonic() < end, "not all jobs have ended"
            await asyncio.sleep(0.05)


@pytest.fixture
def servers(tmp_path: Path) -> Any:
    made = Servers(tmp_path)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()
    kill_all_with(str(tmp_path))
    no_process_left(str(tmp_path))


async def load(servers: Servers, chance: random.Random, *, keepers: bool) -> None:
    servers.start()
    submitters = [asyncio.create_task(servers.submitter(number)) for number in range(SUBMITTERS)]
    for count in range(REPETITIONS):
        await asyncio.sleep(chance.uniform(0.05, 0.8))
        if keepers and count % 2:
            servers.kill_keeper()
            if chance.random() < 0.5:
                continue  # the server goes on, and must notice
        await asyncio.to_thread(servers.kill)
        if chance.random() < 0.5:
            await asyncio.sleep(chance.uniform(0, 0.3))
        await asyncio.to_thread(servers.start)
    servers.done = True
    await asyncio.gather(*submitters)
    await servers.finished()


def check_all(servers: Servers) -> collections.Counter[str]:
    """Every acknowledged job is there once, succeeded, and its log is whole; answers how often each was run."""
    with sqlite3.connect(servers.home / "server.db") as database:
        rows = database.execute("SELECT name, state, folder, attempts, reason FROM jobs").fetchall()
    database.close()
    names = [row[0] for row in rows]
    assert len(names) == len(set(names))
    assert servers.acknowledged <= set(names)
    for name, state, folder, attempts, reason in rows:
        assert state == "SUCCEEDED", (name, state, reason)
        log = Path(folder, "attempts", str(attempts - 1), "tasks", "main-0", "attempts", "0", "stdout")
        assert log.read_text() == servers.log(name), name
    return collections.Counter(servers.ran.read_text().split())


def test_the_server_is_killed(servers: Servers) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    asyncio.run(load(servers, random.Random(seed), keepers=False))
    runs = check_all(servers)
    assert set(runs.values()) == {1}, runs.most_common(3)  # the keeper lived: nothing was run twice
    assert len(runs) >= len(servers.acknowledged)


def test_the_keeper_is_killed_too(servers: Servers) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    asyncio.run(load(servers, random.Random(seed), keepers=True))
    runs = check_all(servers)
    assert set(runs) >= servers.acknowledged
