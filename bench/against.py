"""`python bench/against.py OTHER_CHECKOUT`: the CPU time of this checkout beside that of another one, say of an earlier commit.

Each checkout has its own `.venv` (`make venv`). Runs of the two take turns, each of them first in every other round. CPU time
(user and system, of all processes) is more stable on a busy machine than the clock. The ratio that counts is the median of those
of all rounds; the least CPU times are shown beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from running import Place
from server_throughput import Served, submit_all

HERE = Path(__file__).parents[1]
MOST_WORSE = 1.05
JOBS = 300


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the other checkout, with its .venv")
    parser.add_argument("--rounds", type=int, default=15, help="how often each is run; large jobs and the server less often")
    parser.add_argument("--only", action="append", choices=CASES, help="measure this; may be given several times")
    args = parser.parse_args()
    checkouts = {"other": args.other.resolve(), "this": HERE}
    bare = least(lambda: _process([sys.executable, "-c", "pass"], _clean(), "/"), args.rounds)
    print(f"python -c pass: {bare * 1e3:.1f} ms")
    worse = False
    for name in args.only or CASES:
        share, measure = CASES[name]
        taken: dict[str, list[float]] = {each: [] for each in checkouts}
        with tempfile.TemporaryDirectory(prefix="pailot-against-") as folder:
            places = {}
            for each, checkout in checkouts.items():
                os.mkdir(f"{folder}/{each}")
                places[each] = Place(f"{folder}/{each}")
                measure(places[each], checkout)
            for number in range(max(2, round(args.rounds * share))):
                for each in sorted(checkouts, reverse=bool(number % 2)):
                    taken[each].append(measure(places[each], checkouts[each]))
        before, after = min(taken["other"]), min(taken["this"])
        paired = statistics.median(mine / theirs for mine, theirs in zip(taken["this"], taken["other"], strict=True))
        worse = worse or paired > MOST_WORSE
        print(
            f"{name:<12} {before * 1e3:8.1f} ms -> {after * 1e3:8.1f} ms  {after / before:5.2f}x  rounds {paired:5.2f}x  "
            f"{after / bare:6.1f} bare",
            flush=True,
        )
    return 1 if worse else 0


def least(measure: Callable[[], float], rounds: int) -> float:
    """The least of some runs."""
    return min(measure() for _ in range(rounds))


def command(*words: str) -> Callable[[Place, Path], float]:
    """Measure one command on a job of one task."""
    return lambda place, checkout: _run(place, checkout, 1, *words)


def tasks(count: int) -> Callable[[Place, Path], float]:
    """Measure `pailot run` of a job with this many tasks."""

    def measure(place: Place, checkout: Path) -> float:
        taken = _run(place, checkout, count, "run", "--quiet")
        place.check_all_ran(count)
        return taken

    return measure


def server(place: Place, checkout: Path) -> float:
    """Measure server, keeper and tasks for jobs that are submitted over HTTP, one after the other is warm."""
    with tempfile.TemporaryDirectory(dir=place.folder) as folder:
        served = Served(folder, program=checkout / ".venv" / "bin" / "pailot")

        async def measure() -> float:
            await served.login()
            await submit_all(served, [f"warm-{number}" for number in range(40)])
            before = _family_seconds(served.process.pid)
            await submit_all(served, [f"job-{number}" for number in range(JOBS)])
            return _family_seconds(served.process.pid) - before

        try:
            return asyncio.run(measure())
        finally:
            served.close()


def _run(place: Place, checkout: Path, count: int, *words: str) -> float:
    path = place.project / f"{count}.yaml"
    if not path.exists():
        os.rename(place.job(count)[-1], path)
    return _process([str(checkout / ".venv" / "bin" / "pailot"), *words, str(path)], place.environment, str(place.project))


def _process(words: list[str], environment: dict[str, str], directory: str) -> float:
    """CPU seconds of a process and of all that it waited for."""
    pid = os.fork()
    if pid == 0:
        os.chdir(directory)
        nothing = os.open("/dev/null", os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        os.execve(words[0], words, environment)
    _, status, used = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"{words} failed: {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime


def _family_seconds(server: int) -> float:
    """CPU seconds of a server, of its keeper, and of all children that either has waited for."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid = int(path.parent.name)
            home = f"PAILOT_HOME={_home_of(server)}\0".encode()
            if pid != server and home not in (path.parent / "environ").read_bytes():
                continue
            ticks += sum(map(int, path.read_text().rpartition(")")[2].split()[11:15]))
        except OSError:
            continue  # it has ended
    return ticks / os.sysconf("SC_CLK_TCK")


def _home_of(pid: int) -> str:
    words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return next(word.partition("=")[2] for word in words if word.startswith("PAILOT_HOME="))


def _clean() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PAILOT_"))}


CASES: dict[str, tuple[float, Callable[[Place, Path], float]]] = {
    "validate": (1, command("validate")),
    "plan": (1, command("plan")),
    "one task": (1, tasks(1)),
    "eight tasks": (1, tasks(8)),
    "200 tasks": (0.2, tasks(200)),
    "1,000 tasks": (0.1, tasks(1_000)),
    "server": (0.15, server),
}


if __name__ == "__main__":
    sys.exit(main())
