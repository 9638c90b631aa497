"""How fast jobs run on Slurm: `pailot run -e slurm` beside sbatch and TorchX, on a real cluster of three nodes.

The cluster is started for it, as the tests do; without Slurm or root there is nothing to measure.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from running import JOB, PAILOT, TORCHX, Figure, Place

SUBMITTED = 200
LONGEST_RETRY = 0.5
BATCH = "#!/bin/sh\n#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=1 --mem=128M --output={output}\nbash -c 'echo first'\n"
# 200 runs as a server's keeper takes them: one process, one loop; the server has them in its database already.
SUBMIT = """
import json, os, sys, time
from pailot import loads, plan
from pailot.engines.preparation.child_registry import CHILDREN
from pailot.engines.slurm.engine import SlurmEngine
from pailot.engines.contract import EngineContext, LaunchContext
from pailot.userruns.driver import Driver
from pailot.runfolder.records import RunRecord
from pailot.userruns.run_folder import JobFolder
from pailot.settings import Settings
text, home = open(sys.argv[1]).read(), Settings().home
plans = [plan(loads(text, name=f"bench-{number}")) for number in range(int(sys.argv[2]))]
texts = [json.dumps(each.to_json()) for each in plans]

def go_on():
    CHILDREN.reap()
    while CHILDREN.touched:
        engine = next(iter(CHILDREN.touched))
        del CHILDREN.touched[engine]
        if engine in drivers:
            next(drivers[engine])
            if engine.submitted:
                submitted.append(drivers.pop(engine))

submitted = []
began = time.perf_counter()
drivers = {}
for number, each in enumerate(plans):
    path = os.path.join(home, "jobs", f"{number}-{os.getpid()}")
    folder = JobFolder(path, durable=False, reserve=home)
    record = RunRecord(id=str(number), name=each.name, user=each.user, submitted=time.time(), engine="slurm")
    folder.fill(record, text, texts[number])
    context = LaunchContext(os.getcwd(), "", {"PATH": os.environ["PATH"]}, {}, (), Settings().cache, home)
    engine = SlurmEngine(EngineContext(many_runs=True))
    drivers[engine] = Driver(folder, each, engine, context).steps()
    next(drivers[engine])
    go_on()
while drivers:
    go_on()
    time.sleep(0.001)
print(time.perf_counter() - began, flush=True)
os._exit(0)
"""
PLAIN = """
import subprocess, sys
for _ in range(int(sys.argv[2])):
    subprocess.run(["sbatch", "--quiet", sys.argv[1]], check=True, stdout=subprocess.DEVNULL)
"""


def slurm(*, quick: bool) -> list[Figure]:
    """First line, retry, many submissions."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.parts.slurm import Cluster

    problem = Cluster.missing()
    if problem:
        print(f"no comparison with sbatch: {problem}", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory(prefix="pailot-bench-") as folder:
        place = Place(folder)
        cluster = Cluster(Path(folder) / "cluster")
        cluster.start()
        place.environment |= cluster.environment
        try:
            return [*_first_line(place, quick=quick), *_retry(place), *_submissions(place, cluster, quick=quick)]
        finally:
            cluster.stop()


def _first_line(place: Place, *, quick: bool) -> list[Figure]:
    job = _job(place, "first", "echo first")
    output = place.folder / "batch.out"
    batch = place.folder / "batch.sh"
    batch.write_text(BATCH.format(output=output))
    ours, theirs, torchx = [], [], []
    for number in range(3 if quick else 9):
        began = time.perf_counter()
        process = place.start([str(PAILOT), "run", "-e", "slurm", "--quiet", str(job)], stdout=subprocess.PIPE)
        assert process.stdout
        assert process.stdout.readline() == b"first\n"
        if number:
            ours.append(time.perf_counter() - began)
        process.wait()
        process.stdout.close()
        took = place.time(["sbatch", "--wait", str(batch)])
        if number:
            theirs.append(took)
        if TORCHX.exists():
            torchx.append(_torchx(place, number))
    mine, peer = statistics.median(ours), statistics.median(theirs)
    figures = [Figure("a Slurm job to its first line", f"{mine:.2f} s", f"sbatch --wait {peer:.2f} s", mine / peer, 1.3)]
    if torchx:
        other = statistics.median(torchx)
        # Both wait for the scheduler, which looks at its queue once a second: what is left is chance.
        figures.append(
            Figure("a Slurm job to its first line", f"{mine:.2f} s", f"TorchX slurm {other:.2f} s", mine / other, None)
        )
    return figures


def _torchx(place: Place, number: int) -> float:
    """From the command to the line in its log; it ends with a traceback where there is no accounting."""
    folder = place.folder / f"torchx-{number}"
    folder.mkdir()
    options = f"partition=main,job_dir={folder}/job"
    command = [str(TORCHX), "run", "--scheduler", "slurm", "-cfg", options, "utils.sh", "--image", str(folder), "echo", "first"]
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env=place.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = began + 120
    while time.perf_counter() < until:
        if any(path.stat().st_size for path in folder.glob("job/slurm-*-sh-0.out")):
            break
        time.sleep(0.005)
    took = time.perf_counter() - began
    process.wait()
    return took


def _retry(place: Place) -> list[Figure]:
    """From the end of an attempt to the beginning of the next, of one task of three, inside the allocation."""
    job = _job(place, "retry", "'false'")
    text = job.read_text().replace("instances: 1", "instances: 3")
    text = text.replace("    dockerImage", "    taskRetryCount: 8\n    dockerImage")
    job.write_text(text + "extras: {pailot: {retryDelaySeconds: 0}}\n")
    process = place.start([str(PAILOT), "run", "-e", "slurm", "--quiet", str(job)], stdout=subprocess.DEVNULL)
    process.wait()
    gaps = []
    for task in place.folder.glob("**/attempts/0/tasks/worker-*/attempts"):
        records = [json.loads((task / str(number) / "exit.json").read_text()) for number in range(len(list(task.iterdir())))]
        gaps += [after["started"] - before["ended"] for before, after in pairwise(records)]
    seconds = statistics.median(gaps)
    ratio = seconds / LONGEST_RETRY
    return [Figure("a task retry inside an allocation", f"{seconds * 1e3:.0f} ms", "half a second", ratio, 1.0)]


def _submissions(place: Place, cluster: object, *, quick: bool) -> list[Figure]:
    from tests.parts.slurm import Cluster

    assert isinstance(cluster, Cluster)
    job = _job(place, "many", "'true'")
    batch = place.folder / "trivial.sh"
    batch.write_text("#!/bin/sh\n#SBATCH --ntasks=1 --mem=128M --output=/dev/null\ntrue\n")
    # The nodes take no jobs meanwhile: what is measured is to submit them, not to run them on the same two cores.
    cluster.slurm("scontrol", "update", "nodename=ALL", "state=drain", "reason=bench")
    ours, theirs = [], []
    for number in range(3 if quick else 5):
        process = place.start([sys.executable, "-c", SUBMIT, str(job), str(SUBMITTED)], stdout=subprocess.PIPE)
        assert process.stdout
        printed = process.stdout.readline()
        process.stdout.close()
        place.wait(process)
        took = float(printed)
        _drain(cluster)
        began = time.perf_counter()
        place.wait(place.start([sys.executable, "-c", PLAIN, str(batch), str(SUBMITTED)]))
        if number:  # the first one warms up
            ours.append(took)
            theirs.append(time.perf_counter() - began)
        _drain(cluster)
        shutil.rmtree(place.folder / "home")  # names are used again
    mine, peer = statistics.median(ours), statistics.median(theirs)
    return [Figure(f"{SUBMITTED} jobs submitted", f"{mine:.2f} s", f"{SUBMITTED} sbatch {peer:.2f} s", mine / peer, 1.5)]


def _drain(cluster: object) -> None:
    from tests.parts.slurm import Cluster

    assert isinstance(cluster, Cluster)
    cluster.slurm("scancel", "--user=root")
    while cluster.slurm("squeue", "-h"):
        time.sleep(0.1)


def _job(place: Place, name: str, command: str) -> Path:
    path = place.project / f"{name}.yaml"
    path.write_text(JOB.format(secrets="", tasks=1, command=command).replace("name: bench", f"name: {name}", 1))
    return path
