"""How fast jobs run in containers: `pailot run -e docker` beside plain `docker run`, and beside TorchX's local_docker.

A Docker Engine of our own is started for it, as the tests do; without Docker or root there is nothing to measure.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from running import TORCHX, Figure, Place

MOST_BEYOND = 0.060
EIGHT = 8


def containers(*, quick: bool) -> list[Figure]:
    """One container and eight, each way in turn."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import pytest

    from tests.parts import containers as parts

    try:
        engine = parts.docker()
    except pytest.skip.Exception as skipped:
        print(f"no comparison with docker run: {skipped}", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory(prefix="pailot-bench-") as folder:
        place = Place(folder)
        place.environment |= engine.environment
        return [*_one(place, parts.IMAGE, quick=quick), *_eight(place, parts.IMAGE, quick=quick)]


def _one(place: Place, image: str, *, quick: bool) -> list[Figure]:
    ours = _job(place, image, 1)
    cases = {"docker run": _docker_run(image), "local": [*ours, "-e", "local"], "ours": [*ours, "-e", "docker"]}
    if TORCHX.exists():
        cases["torchx"] = [
            str(TORCHX), "run", "--scheduler", "local_docker", "--wait", "utils.sh", "--image", image, "--memMB", "128", "true",
        ]  # fmt: skip
    taken = _interleaved(place, cases, 3 if quick else 15)
    mine, beside = taken["ours"], taken["docker run"] + taken["local"]
    figures = [
        Figure(
            "a container job beyond docker run + local",
            f"{(mine - beside) * 1e3:.0f} ms",
            f"60 ms ({mine * 1e3:.0f} - {taken['docker run'] * 1e3:.0f} - {taken['local'] * 1e3:.0f} ms)",
            (mine - beside) / MOST_BEYOND,
            1.0,
        )
    ]
    if "torchx" in taken:
        words = f"TorchX local_docker {taken['torchx'] * 1e3:.0f} ms"
        figures.append(Figure("a container job", f"{mine * 1e3:.0f} ms", words, mine / taken["torchx"], 1.0))
    return figures


def _eight(place: Place, image: str, *, quick: bool) -> list[Figure]:
    ours = [*_job(place, image, EIGHT), "-e", "docker"]
    mine, theirs = [], []
    for _ in range(2 if quick else 9):
        mine.append(place.time(ours))
        began = time.perf_counter()
        for process in [place.start(_docker_run(image)) for _ in range(EIGHT)]:
            place.wait(process)
        theirs.append(time.perf_counter() - began)
    a, b = statistics.median(mine), statistics.median(theirs)
    return [Figure("eight containers", f"{a * 1e3:.0f} ms", f"eight docker run at once {b * 1e3:.0f} ms", a / b, 1.0)]


def _interleaved(place: Place, cases: dict[str, list[str]], times: int) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for round_ in range(times + 1):
        for name, command in cases.items():
            seconds = place.time(command)
            if round_:  # the first one warms up
                taken[name].append(seconds)
    return {name: statistics.median(each) for name, each in taken.items()}


def _docker_run(image: str) -> list[str]:
    limits = ["--memory", "128m", "--memory-swap", "128m", "--cpus", "1", "--network", "host"]
    return ["docker", "run", "--rm", *limits, image, "bash", "-c", "true"]


def _job(place: Place, image: str, tasks: int) -> list[str]:
    command = place.job(tasks)
    path = Path(command[-1])
    path.write_text(path.read_text().replace("debian:12-slim", image))
    return command
