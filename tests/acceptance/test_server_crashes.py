"""`kill -9` of the server, and of its keeper, under load: nothing acknowledged is lost, and nothing is done twice.

`PAILOT_FAULT_REPETITIONS` is the number of kills in each test. How soon a new server had taken up all jobs is printed.
"""

from __future__ import annotations

import collections
import os
import random
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pailot.client.api import Client
from pailot.client.errors import Refused, WireError
from pailot.testing.runs import PATIENCE, job, kill_all_with, no_process_left, role
from tests.support.postgres import Postgres
from tests.support.servers import PASSWORD, Server

GIVEN = int(os.environ.get("PAILOT_FAULT_REPETITIONS", "0"))
SERVER_KILLS, BOTH_KILLS, POSTGRES_KILLS = GIVEN or 26, GIVEN or 12, GIVEN or 12
SUBMITTERS = 20


class Load:
    """Twenty who submit one job after the other to a server that is killed again and again, and what it acknowledged."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.ran = folder / "ran"
        own = {"PAILOT_CPUS": "8", "PAILOT_MEMORY_MB": "8000", "PAILOT_GPUS": "none", "PAILOT_LOCKS": str(folder / "locks")}
        self.server = Server(folder, **own, **settings)
        self.jobs = folder / "home" / "jobs"
        self.client = Client(self.server.url)
        self.client.login("admin", PASSWORD)
        self.acknowledged: set[str] = set()
        self.wrong: list[object] = []
        self.done = threading.Event()
        self.starts: list[float] = []

    def text(self, name: str) -> str:
        return job(role(f"echo {name} >> {self.ran}; echo begin {name}; seq 1 200; echo end {name}"), name=name)

    def log(self, name: str) -> str:
        return f"begin {name}\n" + "".join(f"{number}\n" for number in range(1, 201)) + f"end {name}\n"

    def submit(self, number: int) -> None:
        """Without an answer the same again, which may find the name used."""
        client = Client(self.server.url, self.client.token, "admin")
        client.http.retries = 0
        count = 0
        while not self.done.is_set():
            name = f"j-{number}-{count}"
            try:
                client.submit(self.text(name))
            except Refused as error:
                if error.status == 503:  # it is just ending, or beginning
                    continue
                if error.status != 409:
                    self.wrong.append(error)
                    return
            except WireError:
                self.done.wait(0.02)
                continue
            self.acknowledged.add(name)
            count += 1
            self.done.wait(0.1)
        client.close()

    def kill_server(self, pause: float) -> None:
        self.server.kill()
        self.done.wait(pause)
        began = time.monotonic()
        self.server.start()
        self.starts.append(time.monotonic() - began)

    def kill_keeper(self) -> None:
        try:
            os.kill(int((self.folder / "home" / "keeper.lock").read_text()), signal.SIGKILL)
        except (ProcessLookupError, ValueError):
            pass  # it was being replaced just then

    def run(self, kills: int, *, keepers: bool = False) -> None:
        """Kill so often, then wait for all jobs to end."""
        seed = random.randrange(1 << 30)
        print("seed", seed)
        chance = random.Random(seed)
        submitters = [threading.Thread(target=self.submit, args=(number,)) for number in range(SUBMITTERS)]
        for each in submitters:
            each.start()
        try:
            for count in range(kills):
                self.done.wait(chance.uniform(0.05, 0.5))
                if keepers and count % 2:
                    self.kill_keeper()
                    if chance.random() < 0.5:
                        continue  # the server goes on, and must notice
                self.kill_server(chance.choice((0.0, chance.uniform(0, 0.3))))
        finally:
            self.done.set()
            for each in submitters:
                each.join()
        assert not self.wrong
        print(
            f"{len(self.acknowledged)} jobs, {len(self.starts)} starts of a server; from its start to all jobs taken up again: "
            f"median {statistics.median(self.starts):.2f} s, longest {max(self.starts):.2f} s"
        )
        until = time.monotonic() + PATIENCE + len(self.acknowledged)
        while self.client.jobs(state="WAITING,RUNNING,STOPPING", limit=1):
            assert time.monotonic() < until, "not all jobs have ended"
            time.sleep(0.1)

    def check(self) -> collections.Counter[str]:
        """Every acknowledged job is there once, succeeded, and its log is whole; answers how often each was run."""
        rows = self.client.jobs(limit=50_000, format="ps")
        names = [row["name"] for row in rows]
        assert len(names) == len(set(names))
        assert self.acknowledged <= set(names)
        for row in rows:
            assert row["state"] == "SUCCEEDED", row
            attempts = self.jobs / row["id"] / "attempts"
            last = max(attempts.iterdir(), key=lambda path: int(path.name))
            assert (last / "tasks" / "main-0" / "attempts" / "0" / "stdout").read_text() == self.log(row["name"]), row
        assert "Traceback" not in (self.folder / "serve.log").read_text()
        return collections.Counter(self.ran.read_text().split())

    def close(self) -> None:
        self.done.set()
        self.client.close()
        self.server.close()
        kill_all_with(str(self.folder))
        no_process_left(str(self.folder))


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    made = Load(tmp_path)
    yield made
    made.close()


def test_the_server_is_killed(load: Load) -> None:
    load.run(SERVER_KILLS)
    runs = load.check()
    assert set(runs.values()) == {1}, runs.most_common(3)  # the keeper lived: nothing was run twice
    assert set(runs) >= load.acknowledged


def test_the_keeper_is_killed_too(load: Load) -> None:
    load.run(BOTH_KILLS, keepers=True)
    assert set(load.check()) >= load.acknowledged


def test_the_server_is_killed_that_keeps_its_jobs_in_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    load = Load(tmp_path, PAILOT_DATABASE=postgres.new_url())
    try:
        load.run(POSTGRES_KILLS)
        runs = load.check()
        assert set(runs.values()) == {1}, runs.most_common(3)
        assert set(runs) >= load.acknowledged
    finally:
        load.close()
