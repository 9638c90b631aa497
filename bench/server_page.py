"""What the web page asks of a server, over HTTP: rows of a million jobs, a search in 100 MB of logs; and what sampling costs."""

from __future__ import annotations

import asyncio
import glob
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

from running import Failed, Figure
from server_list import fill, queries
from server_throughput import JOB, Connection, Served

from pailot.store.server import JobQuery, ServerStore

LONGEST_LIST = 0.100
LONGEST_SEARCH = 1.5
MOST_OF_A_CORE = 0.002
LOG_BYTES = 100_000_000
LINE = "step 1200 loss=0.31 accuracy=0.87 and more text, so that a line has eighty letters"


def server_rows(*, quick: bool) -> list[Figure]:
    """50 rows of many jobs, by every filter, in every order, from an offset and from a cursor."""
    count, asked = (100_000, 200) if quick else (1_000_000, 1_000)
    with tempfile.TemporaryDirectory(prefix="pailot-bench-") as folder:
        home = Path(folder, "home")
        home.mkdir()
        url = f"sqlite:///{home}/server.db"
        fill(url, count)
        with ServerStore.open(url) as store, store.batch() as batch:  # a server would look for those that run
            batch.execute("UPDATE jobs SET state = 'FAILED', ended = submitted WHERE state = 'RUNNING'")
        served = Served(folder)
        try:
            taken = asyncio.run(_lists(served, asked, count))
        finally:
            served.close()
    worst = taken[int(len(taken) * 0.99)]
    return [
        Figure(
            f"server: 50 rows of {count:,} jobs, p99",
            f"{worst * 1e3:.0f} ms",
            f"100 ms; p50 {statistics.median(taken) * 1e3:.0f} ms",
            worst / LONGEST_LIST,
            1.0,
        )
    ]


async def _lists(served: Served, asked: int, total: int) -> list[float]:
    await served.login()
    line = await served.open()
    await asyncio.sleep(1 + total / 100_000)  # the columns are filled after the start
    taken = []
    for path in _paths(asked, total):
        began = time.perf_counter()
        data = json.loads(await line.ask("GET", path))
        taken.append(time.perf_counter() - began)
        if len(data["data"]) > 50:
            raise Failed(f"{path}: {len(data['data'])} rows")
    line.close()
    return sorted(taken)


def _paths(asked: int, total: int) -> Iterator[str]:
    for number, query in enumerate(queries(asked, total)):
        yield f"/api/v2/jobs?{_words(query, total - number * 7 if number % 4 == 0 else None)}"


def _words(query: JobQuery, cursor: int | None) -> str:
    told = {
        "format": "row",
        "withTotalCount": "true",
        "username": ",".join(query.users),
        "vc": ",".join(query.vcs),
        "state": ",".join(query.states),
        "keyword": query.keyword,
        "tagsContain": ",".join(query.tags_contain),
        "tagsNotContain": ",".join(query.tags_not_contain),
        "labels": json.dumps(dict(query.labels)) if query.labels else "",
        "order": f"{query.order},{'DESC' if query.descending else 'ASC'}",
        "offset": str(query.offset),
        "limit": "50",
        "before": str(cursor) if cursor is not None and query.order == "submissionTime" else "",
    }
    return urlencode({name: value for name, value in told.items() if value})


def log_search(*, quick: bool) -> list[Figure]:
    """A text that is in no line, and one at the end, in 100 MB; an expression in a tenth of that."""
    size = LOG_BYTES // 10 if quick else LOG_BYTES
    with tempfile.TemporaryDirectory(prefix="pailot-bench-") as folder:
        served = Served(folder)
        try:
            text, expression = asyncio.run(_searches(served, size))
        finally:
            served.close()
    return [
        Figure(
            f"server: search for a text in {size // 1_000_000} MB",
            f"{text * 1e3:.0f} ms",
            f"{LONGEST_SEARCH:g} s",
            text / LONGEST_SEARCH,
            1.0,
        ),
        Figure(
            f"server: search for an expression in {size // 10_000_000} MB",
            f"{expression * 1e3:.0f} ms",
            f"{LONGEST_SEARCH:g} s",
            expression / LONGEST_SEARCH,
            1.0,
        ),
    ]


async def _searches(served: Served, size: int) -> tuple[float, float]:
    await served.login()
    line = await served.open()
    for name, amount in (("large", size), ("small", size // 10)):
        script = f"(yes '{LINE}' || true) | head -c {amount}; echo; echo the end"
        await line.ask("POST", "/api/v2/jobs", JOB.format(name=name, command=json.dumps(script)).encode())
        state = ""
        while state not in ("SUCCEEDED", "FAILED", "STOPPED"):
            await asyncio.sleep(0.1)
            state = json.loads(await line.ask("GET", f"/api/v2/jobs/admin~{name}"))["jobStatus"]["state"]
        if state != "SUCCEEDED":
            raise Failed(f"the job that prints is {state}")
    line.close()
    text = await _best(served, f"large/search?q={quote('THE END')}")
    expression = await _best(served, f"small/search?regex=true&q={quote('^the (end|beginning)$')}")
    return text, expression


async def _best(served: Served, path: str) -> float:
    taken = []
    for _ in range(3):
        line = await served.open()
        began = time.perf_counter()
        await line.send("GET", f"/api/v2/jobs/admin~{path}")
        while b'"end":true' not in (told := await line.reader.readline()):
            if not told:
                raise Failed(f"{path}: the search broke off")
        taken.append(time.perf_counter() - began)
        if b'"hits":1,' not in told:
            raise Failed(f"{path}: {told.decode()}")
        line.close()
    return min(taken)


def usage_sampling(*, quick: bool) -> list[Figure]:
    """What the shims of tasks that do nothing use of a core while they measure: two samples, or six."""
    tasks, seconds = 10, 10 if quick else 30
    with tempfile.TemporaryDirectory(prefix="pailot-bench-") as folder:
        served = Served(folder)
        try:
            shims = asyncio.run(_sleepers(served, tasks))
            time.sleep(7)  # the first sample loads what samples need
            before = sum(map(_cpu_seconds, shims))
            time.sleep(seconds)
            used = (sum(map(_cpu_seconds, shims)) - before) / seconds / tasks
        finally:
            served.close()
    return [
        Figure(
            "sampling what a task uses: share of a core",
            f"{used * 100:.3f} %",
            f"{MOST_OF_A_CORE * 100:g} %, {tasks} tasks, {seconds} s",
            used / MOST_OF_A_CORE,
            1.0,
        )
    ]


async def _sleepers(served: Served, count: int) -> list[int]:
    """The processes of the shims of tasks that sleep."""
    await served.login()
    line: Connection = await served.open()
    text = JOB.format(name="asleep", command="sleep 600").replace("    dockerImage", f"    instances: {count}\n    dockerImage")
    await line.ask("POST", "/api/v2/jobs", text.encode())
    while True:
        claims = glob.glob(f"{served.home}/jobs/*/attempts/0/tasks/*/claim")
        pids = [int(text) for text in (Path(claim).read_text() for claim in claims) if text]
        if len(pids) == count:
            line.close()
            return pids
        await asyncio.sleep(0.1)


def _cpu_seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
