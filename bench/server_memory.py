"""What server and keeper hold in memory after 100,000 jobs, beside what they held once their caches were filled.

Alone it tells more: `python bench/server_memory.py [--jobs 100000] [--postgresql]` prints both every few thousand jobs.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from running import Figure
from server_list import postgres
from server_throughput import Served, submit_all

FILLED = 10_000
"""Jobs after which the rows of events, the pages of the database and the like are as large as they get."""
JOBS = 100_000
MOST_GROWTH = 1.15
"""Most of it is what lists need of each job."""
AT_ONCE, STEP = 500, 5_000


def server_memory(*, quick: bool) -> list[Figure]:
    """Memory that is theirs alone and cannot be had from a file, server and keeper together."""
    filled, jobs = (2_000, 4_000) if quick else (FILLED, JOBS)
    with tempfile.TemporaryDirectory(prefix="pailot-bench-", ignore_cleanup_errors=True) as folder:
        found = measure(folder, [filled, jobs])
    (before, keeper_before), (after, keeper_after) = found[filled], found[jobs]
    return [
        Figure(
            f"server: memory after {jobs:,} jobs",
            f"{after + keeper_after:.1f} MB (server {after:.1f}, keeper {keeper_after:.1f})",
            f"after the first {filled:,}: {before + keeper_before:.1f} MB (server {before:.1f}, keeper {keeper_before:.1f})",
            (after + keeper_after) / (before + keeper_before),
            MOST_GROWTH,
        )
    ]


def measure(folder: str, moments: list[int], *, show: bool = False, **settings: str) -> dict[int, tuple[float, float]]:
    """MB of the server and of the keeper after so many jobs each. The folders of jobs that ended are removed meanwhile."""
    served = Served(folder, **settings)
    found: dict[int, tuple[float, float]] = {}

    async def run() -> None:
        await served.login()
        done = 0
        for moment in moments:
            while done < moment:
                last = min(moment, done + AT_ONCE)
                await submit_all(served, [f"job-{number}" for number in range(done, last)], command="'true'")
                done = last
                for each in (served.home / "jobs").iterdir():
                    shutil.rmtree(each, ignore_errors=True)
            keeper = int((served.home / "keeper.lock").read_text())
            found[moment] = private_mb(served.process.pid), private_mb(keeper)
            if show:
                print(f"{moment:>7,} jobs: server {found[moment][0]:.1f} MB, keeper {found[moment][1]:.1f} MB", flush=True)

    try:
        asyncio.run(run())
    finally:
        served.close()
    return found


def private_mb(pid: int) -> float:
    """What would be free if the process ended; pages of files are not counted, which the system may drop and read again."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty"):
            return int(line.split()[1]) / 1e3
    raise SystemExit(f"the memory of process {pid} is not told")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--postgresql", action="store_true", help="with a PostgreSQL of its own instead of SQLite")
    args = parser.parse_args()
    moments = [*range(min(STEP, args.jobs), args.jobs, STEP), args.jobs]
    database = postgres() if args.postgresql else None
    settings = {"PAILOT_DATABASE": database.new_url()} if database is not None else {}
    try:
        with tempfile.TemporaryDirectory(prefix="pailot-bench-", ignore_cleanup_errors=True) as folder:
            measure(folder, moments, show=True, **settings)
    finally:
        if database is not None:
            database.stop()
            database.remove()


if __name__ == "__main__":
    main()
