"""`make bench`: every performance figure beside a peer or a limit measured in the same run.

Times of processes are medians of interleaved runs; CPU times are of this process and of a Node process that
does what OpenPAI's REST server does with the same texts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

from containers import containers
from frontdoors import frontdoors
from jobs import largest_job, two_role_job
from page import page
from running import Figure, after_the_end, launcher_memory, log_throughput, many_tasks, small_jobs
from server_http import server_http
from server_list import server_list
from server_memory import server_memory
from server_page import log_search, server_rows, usage_sampling
from server_throughput import server_followers, server_latency, server_restart, server_throughput
from slurm import slurm

from pailot.planning import plan
from pailot.protocol import read

ROOT = Path(__file__).parents[1]
UPSTREAM = ROOT / "bench" / "upstream"
HELLO = ROOT / "examples" / "hello" / "job.yaml"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, for a first look")
    parser.add_argument("--only", action="append", choices=MEASURES, help="measure this; may be given several times")
    args = parser.parse_args()
    missed = False
    for name in args.only or MEASURES:
        measure = MEASURES[name]
        for figure in measure(quick=args.quick):
            print(figure, flush=True)
            missed = missed or not figure.kept
    return 1 if missed else 0


def start_up(*, quick: bool) -> list[Figure]:
    """Whole processes against the bare interpreter."""
    script = Path(sys.executable).with_name("pailot")
    cases = {
        "pass": [sys.executable, "-c", "pass"],
        "--version": [str(script), "--version"],
        "import pailot": [sys.executable, "-c", "import pailot"],
        "validate": [str(script), "validate", str(HELLO)],
        "plan": [str(script), "plan", str(HELLO)],
    }
    taken: dict[str, list[float]] = {name: [] for name in cases}
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    for _ in range(7 if quick else 25):
        for name, command in cases.items():
            began = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)
            taken[name].append(time.perf_counter() - began)
    bare = statistics.median(taken["pass"])
    limits = {"--version": 2.0, "import pailot": 2.0, "validate": 6.0, "plan": 6.0}
    return [
        Figure(
            f"pailot {name}" if name != "import pailot" else name,
            f"{statistics.median(taken[name]) * 1e3:.1f} ms",
            f"python -c pass {bare * 1e3:.1f} ms",
            statistics.median(taken[name]) / bare,
            limit,
        )
        for name, limit in limits.items()
    ]


def cpu_per_job(*, quick: bool) -> list[Figure]:
    """Read, check and plan distinct 5 KB jobs, against OpenPAI's middleware on the same texts."""
    if not shutil.which("node") or not (UPSTREAM / "node_modules").is_dir():
        print("no comparison with OpenPAI's middleware: install Node.js and run make node", file=sys.stderr)
        return []
    texts = [two_role_job(number) for number in range(600 if quick else 2000)]
    ours, theirs = [], []
    for _ in range(3 if quick else 7):
        theirs.append(_upstream_cpu(texts))
        ours.append(_cpu(texts, lambda text: plan(read(text))))
    mine, peer = statistics.median(ours), statistics.median(theirs)
    return [
        Figure(
            "CPU per 5 KB job: read + check + plan", f"{mine:.0f} us", f"js-yaml + ajv + mustache {peer:.0f} us", mine / peer, 1.0
        )
    ]


def memory_over_many_jobs(*, quick: bool) -> list[Figure]:
    """Memory after many distinct jobs, against the memory after the first thousand."""
    for number in range(1000):
        plan(read(two_role_job(number)))
    before = _resident_kb()
    count = 5_000 if quick else 100_000
    for number in range(count):
        plan(read(two_role_job(1000 + number)))
    after = _resident_kb()
    return [
        Figure(
            f"memory after {count:,} distinct jobs",
            f"{after / 1024:.1f} MB",
            f"after 1,000: {before / 1024:.1f} MB",
            after / before,
            1.05,
        )
    ]


def largest(*, quick: bool) -> list[Figure]:
    """The largest job a file can hold, against one second."""
    text = largest_job()
    taken = []
    for _ in range(2 if quick else 5):
        began = time.perf_counter()
        made = plan(read(text))
        taken.append(time.perf_counter() - began)
    seconds = statistics.median(taken)
    name = f"{made.task_count:,} instances, {len(made.roles)} roles, {len(text) / 1024:.0f} KiB"
    return [Figure(name, f"{seconds * 1e3:.0f} ms", "one second", seconds, 1.0)]


def hostile_input(*, quick: bool) -> list[Figure]:
    """Texts and logs made to be dear, each against half a second of CPU."""
    from pailot.lifecycle.exit_classes import TAIL_CHARACTERS, End, classify
    from pailot.protocol import InvalidJob
    from tests.support.hostile_texts import HOSTILE

    def check(text: str) -> None:
        try:
            read(text)
        except InvalidJob:
            pass  # as it should

    def explain(log: str) -> None:
        classify(End(1), log)

    logs = ["mpirun exited on signal 11x ", "signal SIGSEGVx ", "[x]: a.b.", "[Errno 2] can't open file "]
    cases: list[tuple[str, str, Callable[[str], None]]] = [(name, text, check) for name, (text, _) in HOSTILE.items()]
    for each in logs:
        log = each * (TAIL_CHARACTERS // len(each))
        cases += [(f"a log of {each!r}", log, explain), (f"a log of lines of {each!r}", log.replace(" ", "\n"), explain)]
    worst, where = 0.0, ""
    for name, text, work in cases:
        taken = []
        for _ in range(2 if quick else 5):
            began = time.process_time()
            work(text)
            taken.append(time.process_time() - began)
        if min(taken) > worst:
            worst, where = min(taken), name
    return [Figure(f"hostile input, the worst of {len(cases)}", f"{worst * 1e3:.0f} ms", f"500 ms ({where})", worst / 0.5, 1.0)]


def placing(*, quick: bool) -> list[Figure]:
    """What each of 4,000 tasks is told of the others, against a fifth of a second of CPU."""
    from pailot.planning.placement import Placement, peers, shared_variables, task_variables

    made = plan(read(largest_job()))
    tasks = [(role.name, index) for role in made.roles.values() for index in range(role.instances)]
    ports = {
        (name, index): {label: (20000,) * count for label, count in made.roles[name].resources.ports.items()}
        for name, index in tasks
    }
    placement = Placement(dict.fromkeys(tasks, "10.0.0.1"), ports)
    taken = []
    for _ in range(2 if quick else 5):
        began = time.process_time()
        shared_variables(made, placement)
        for role, index in tasks:
            task_variables(made, placement, role, index)
        peers(made, placement)
        taken.append(time.process_time() - began)
    seconds = statistics.median(taken)
    return [Figure(f"placing {len(tasks):,} tasks", f"{seconds * 1e3:.0f} ms", "200 ms", seconds / 0.2, 1.0)]


MEASURES: dict[str, Callable[..., list[Figure]]] = {
    "start-up": start_up,
    "small-jobs": small_jobs,
    "after-the-end": after_the_end,
    "many-tasks": many_tasks,
    "launcher-memory": launcher_memory,
    "log-throughput": log_throughput,
    "cpu-per-job": cpu_per_job,
    "memory-over-many-jobs": memory_over_many_jobs,
    "largest-job": largest,
    "hostile-input": hostile_input,
    "placing": placing,
    "containers": containers,
    "slurm": slurm,
    "server-list": server_list,
    "frontdoors": frontdoors,
    "server-http": server_http,
    "server-throughput": server_throughput,
    "server-latency": server_latency,
    "server-restart": server_restart,
    "server-followers": server_followers,
    "server-memory": server_memory,
    "server-rows": server_rows,
    "log-search": log_search,
    "usage-sampling": usage_sampling,
    "page": page,
}


def _cpu(texts: list[str], work: Callable[[str], object]) -> float:
    warm_up = max(100, len(texts) // 5)
    for text in texts[:warm_up]:
        work(text)
    began = time.process_time()
    for text in texts[warm_up:]:
        work(text)
    return (time.process_time() - began) / (len(texts) - warm_up) * 1e6


def _upstream_cpu(texts: list[str]) -> float:
    request = json.dumps({"op": "bench", "texts": texts, "rounds": 1})
    done = subprocess.run(["node", str(UPSTREAM / "oracle.js")], input=request + "\n", capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    if answer["accepted"] != answer["count"]:
        raise SystemExit(f"the baseline refused jobs: {answer}")
    return float(answer["cpu_us_each"])


def _resident_kb() -> int:
    import gc

    gc.collect()
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


if __name__ == "__main__":
    sys.exit(main())
