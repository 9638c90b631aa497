"""The server's list of jobs: 50 of a million, by every filter and in every order, against 50 ms."""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from running import Figure

from pailot.store.server import ORDERS, JobQuery, JobRecord, ServerStore, new_id
from pailot.store.server.jobs import INSERT, _marks, _to_sql

LIMIT = 0.050
LONGEST_FIRST = 1.0
MEMORY_MB = 150
USERS = 400
STATES = ["SUCCEEDED"] * 70 + ["FAILED"] * 20 + ["STOPPED"] * 9 + ["RUNNING"]
MODELS = ["resnet50", "bert-large", "gpt2", "vit_base", "unet", "yolo", "lstm", "whisper"]


def server_list(*, quick: bool) -> list[Figure]:
    """Build the jobs, then ask in a process of its own, so that its memory is told apart."""
    count = 100_000 if quick else 1_000_000
    figures = []
    with tempfile.TemporaryDirectory(prefix="pailot-bench-") as folder:
        places = {"SQLite": f"sqlite:///{folder}/server.db"}
        server = postgres()
        if server is not None:
            places["PostgreSQL"] = server.new_url()
        try:
            for name, url in places.items():
                if name == "SQLite":
                    fill(url, count)
                else:
                    copy(places["SQLite"], url)
                command = [sys.executable, __file__, url, "300" if quick else "1500"]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                median, worst, cpu, load, memory, first = map(float, done.stdout.split())
                what = f"50 of {count:,} jobs, any filter and order, {name}"
                figures += [
                    Figure(
                        f"{what}: p99",
                        f"{worst * 1e3:.1f} ms (p50 {median * 1e3:.1f}, p99 of CPU {cpu * 1e3:.1f})",
                        "50 ms",
                        worst / LIMIT,
                        1.0,
                    ),
                    Figure(f"{what}: memory", f"{memory:.0f} MB, loaded in {load:.1f} s", "150 MB", memory / MEMORY_MB, 1.0),
                    Figure(
                        f"the newest 50 of {count:,} jobs while that is loaded", f"{first:.2f} s", "1 s", first, LONGEST_FIRST
                    ),
                ]
        finally:
            if server is not None:
                server.stop()
                server.remove()
    return figures


def postgres() -> Any:
    """A PostgreSQL of its own; None where there is none."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.support.postgres import ENABLE, Postgres, programs

    bin = programs()
    if bin is None:
        print(f"no figures of PostgreSQL: {ENABLE}", file=sys.stderr)
        return None
    server = Postgres(bin)
    server.start()
    return server


def jobs(count: int) -> Iterator[JobRecord]:
    chosen = random.Random(42)
    users = [f"user{number:03d}" for number in range(USERS)]
    weights = [1 / (number + 1) for number in range(USERS)]
    vcs = ["default", "research", "vision", "speech", "prod-a", "prod-b"]
    names = chosen.choices(users, weights, k=count)
    for number in range(count):
        submitted = 1.6e9 + number * 60
        state = chosen.choice(STATES)
        tags = ["baseline"] if number % 5 == 0 else []
        if number % 50 == 0:
            tags.append(f"sweep-{number // 5000}")
        yield JobRecord(
            new_id(),
            names[number],
            f"{chosen.choice(MODELS)}_lr{chosen.randrange(100):02d}_{number:07x}",
            submitted=submitted,
            vc=chosen.choice(vcs),
            state=state,
            priority=chosen.choice([None, None, None, "prod", "test", "oppo"]),
            execution_type="STOP" if state == "STOPPED" else "START",
            started=submitted + 5,
            ended=None if state == "RUNNING" else submitted + chosen.expovariate(1 / 7200),
            attempts=1,
            retries=min(chosen.randrange(40), 12) if number % 7 == 0 else 0,
            tasks=chosen.choice([1, 1, 1, 2, 4, 8, chosen.randrange(1, 500)]),
            gpus=chosen.choice([0, 1, 1, 2, 4, 8, 16, chosen.randrange(1, 200)]),
            tags=tuple(tags),
            labels={"team": f"team{number % 20}"} if number % 4 == 0 else {},
        )


def fill(url: str, count: int) -> None:
    """Rows straight into the tables: what a server would have written over years."""
    with ServerStore.open(url) as store:
        rows, marks = [], []
        for number, record in enumerate(jobs(count), 1):
            rows.append((number, *_to_sql(record)))
            marks += [(mark, number) for mark in _marks(record)]
            if len(rows) == 50_000 or number == count:
                with store.batch() as batch:
                    batch.execute_many(INSERT, rows)
                    batch.execute_many("INSERT INTO job_marks (mark, number) VALUES (?, ?)", marks)
                rows, marks = [], []


def copy(source: str, target: str) -> None:
    """The same rows into PostgreSQL."""
    import psycopg

    ServerStore.open(target).close()
    with ServerStore.open(source) as store, psycopg.connect(target) as connection:
        for table in ("jobs", "job_marks"):
            columns = [row[1] for row in store.database.read(f"PRAGMA table_info({table})")]
            with connection.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as writer:
                for rows in store.database.stream(f"SELECT {', '.join(columns)} FROM {table}"):
                    for row in rows:
                        writer.write_row(row)
        connection.execute("ANALYZE")


def queries(count: int, total: int) -> Iterator[JobQuery]:
    """Every filter alone and together with others, in every order, at the front, deep inside and at the end."""
    chosen = random.Random(7)

    def user() -> str:
        return f"user{int(USERS ** chosen.random()) - 1:03d}"

    def keyword() -> str:
        return chosen.choice(
            [*MODELS, "lr", "_", "a", "user0", "prod", f"lr{chosen.randrange(100):02d}", f"{chosen.randrange(total):07x}", "none"]
        )

    filters: dict[str, Any] = {
        "users": lambda: tuple(user() for _ in range(chosen.choice([1, 1, 2, 10]))),
        "vcs": lambda: tuple(chosen.sample(["default", "research", "vision", "speech"], chosen.randrange(1, 4))),
        "states": lambda: tuple(chosen.sample(["SUCCEEDED", "FAILED", "STOPPED", "RUNNING", "WAITING"], chosen.randrange(1, 4))),
        "priorities": lambda: tuple(chosen.sample([None, "prod", "test", "oppo"], 2)),
        "types": lambda: (chosen.choice(["START", "STOP"]),),
        "tags_contain": lambda: tuple(chosen.choice(["baseline", f"sweep-{chosen.randrange(total // 5000)}"]) for _ in range(2)),
        "tags_not_contain": lambda: ("baseline",),
        "labels": lambda: {"team": f"team{4 * chosen.randrange(5)}"},
        "keyword": keyword,
        "newer_than": lambda: 1.6e9 + chosen.random() * total * 60,
        "seen_by": lambda: (user(), ("vision",)),
    }
    for number in range(count):
        names = [] if number % 20 == 0 else chosen.sample(sorted(filters), chosen.choice([1, 1, 2, 3]))
        yield JobQuery(
            **{name: filters[name]() for name in names},
            order=ORDERS[number % len(ORDERS)],
            descending=chosen.random() < 0.5,
            offset=chosen.choice([0, 0, 0, 50, 1000, total // 10, total // 2]),
            want_total=True,
        )


def measure(url: str, count: int) -> None:
    """Print p50, p99, p99 of CPU time, the seconds to load, the memory that lists need, the slowest of lists meanwhile."""
    with ServerStore.open(url) as store:
        total = store.jobs.count()
        before = _resident_mb()
        began = time.perf_counter()
        loading = threading.Thread(target=store.jobs.warm)
        loading.start()
        first = 0.0
        while loading.is_alive():
            asked = time.perf_counter()
            assert len(store.jobs.list(JobQuery()).rows) == min(50, total)
            first = max(first, time.perf_counter() - asked)
            loading.join(0.5)
        load = time.perf_counter() - began
        taken, worked = [], []
        slowest: list[tuple[float, JobQuery]] = []
        for query in queries(count, total):
            began, busy = time.perf_counter(), time.process_time()
            page = store.jobs.list(query)
            seconds = time.perf_counter() - began
            worked.append(time.process_time() - busy)
            assert page.total is not None
            assert len(page.rows) == max(0, min(50, page.total - query.offset))
            taken.append(seconds)
            slowest.append((seconds, query))
        if os.environ.get("PAILOT_BENCH_SLOWEST"):
            for seconds, query in sorted(slowest, key=lambda pair: -pair[0])[:25]:
                shown = {name: value for name, value in query.__dict__.items() if value != getattr(JobQuery, name)}
                print(f"{seconds * 1e3:.1f} ms {shown}", file=sys.stderr)
        quantiles, cpu = statistics.quantiles(taken, n=100), statistics.quantiles(worked, n=100)
        print(quantiles[49], quantiles[98], cpu[98], load, _resident_mb() - before, first)


def _resident_mb() -> float:
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * resource.getpagesize() / 1e6


if __name__ == "__main__":
    measure(sys.argv[1], int(sys.argv[2]))
