"""The Python front doors: what it costs to import Processor, to run a trivial one, and to run a trivial Luigi task."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from running import Figure

ROOT = Path(__file__).parents[1]
ALIPAI = ROOT / ".venv-alipai" / "bin" / "python"
PASSWORD = "bench-password"

OURS = "from pailot.processor import Processor, Channel, TrainingJob, Session"
THEIRS = "import warnings; warnings.simplefilter('ignore'); from pai.processor import Processor; from pai.job import TrainingJob"

PROCESS = """
import json, os, time
from pailot.processor import Processor, Session
taken = []
for _ in range({times}):
    began = time.perf_counter()
    Processor("python:3.12", "true", session=Session(engine="local")).run(show_logs=False)
    taken.append(time.perf_counter() - began)
print(json.dumps(taken))
"""

TASK = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import luigi
from {module} import PaiTask, TaskRole

class Trivial(PaiTask):
    image = "debian"
    number = luigi.IntParameter()
    name = property(lambda self: "{prefix}-%d" % self.number)
    tasks = [TaskRole("main", "true", memoryMB=100)]

taken = []
for number in range({times}):
    began = time.perf_counter()
    done = luigi.build([Trivial(number=number)], local_scheduler=True, no_lock=True, log_level="CRITICAL")
    taken.append(time.perf_counter() - began)
    assert done, "the task failed"
print(json.dumps(taken))
"""


def frontdoors(*, quick: bool) -> list[Figure]:
    """Imports by CPU time; a trivial Processor against half a second; a trivial PaiTask against luigi's own, same server."""
    figures = [*_imports(quick=quick), _processor(quick=quick)]
    return [*figures, *_luigi(quick=quick)]


def _imports(*, quick: bool) -> list[Figure]:
    if not ALIPAI.exists():
        print("no comparison with Alibaba's SDK: it could not be installed", file=sys.stderr)
        return []
    taken: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(5 if quick else 15):
        for name, python, code in (("ours", sys.executable, OURS), ("theirs", str(ALIPAI), THEIRS)):
            before = _children_cpu()
            subprocess.run([python, "-c", code], check=True, stderr=subprocess.DEVNULL, cwd="/")
            taken[name].append(_children_cpu() - before)
    ours, theirs = (statistics.median(taken[name]) for name in ("ours", "theirs"))
    figure = Figure(
        "import pailot.processor, CPU", f"{ours * 1e3:.0f} ms", f"import pai.processor {theirs * 1e3:.0f} ms", ours / theirs, 0.15
    )
    return [figure]


def _processor(*, quick: bool) -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PAILOT_HOME": f"{folder}/home"}
        code = PROCESS.format(times=5 if quick else 20)
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True, check=True
        )
    median = statistics.median(json.loads(done.stdout.splitlines()[-1]))
    return Figure("a trivial local Processor.run", f"{median * 1e3:.0f} ms", "half a second", median / 0.5, 1.0)


def _luigi(*, quick: bool) -> list[Figure]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # what outlives the server ends soon after it
        environment = {
            **os.environ,
            "PAILOT_HOME": f"{folder}/home",
            "PAILOT_ADMIN_PASSWORD": PASSWORD,
            "PAILOT_V1_SUCCEEDED_STATE": "SUCCEED",  # which is what luigi's own waits for
            "PAILOT_RATE_LIMITS": "off",
        }
        command = [sys.executable, "-m", "pailot", "serve", "--json", "--port", "0"]
        server = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert server.stdout
        try:
            url = json.loads(server.stdout.readline())["url"]
            Path(folder, "luigi.cfg").write_text(
                f"[OpenPai]\npai_url={url}\nusername=admin\npassword={PASSWORD}\n[core]\nautoload_range=false\n"
            )
            ours = _tasks(environment, folder, "pailot.luigi", 3 if quick else 10)
            theirs = _tasks(environment, folder, "luigi.contrib.pai", 1 if quick else 3)
        finally:
            server.terminate()
            server.wait(60)
            server.stdout.close()
    return [Figure("a trivial PaiTask, end to end", f"{ours * 1e3:.0f} ms", f"luigi's own {theirs:.2f} s", ours / theirs, 0.1)]


def _tasks(environment: dict[str, str], folder: str, module: str, times: int) -> float:
    code = TASK.format(module=module, prefix=module.replace(".", "-"), times=times)
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{module}: {done.stderr[-2000:]}")
    return statistics.median(json.loads(done.stdout.splitlines()[-1]))


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
