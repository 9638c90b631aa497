"""`pailot run -e slurm` on a real cluster of three nodes: what no other engine has, and every way such a job can end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import cryptography
import pytest

from pailot.testing.runs import PATIENCE, Home, Result, job, no_process_left, processes_with, role, wait_for

from ..parts.canaries import Canaries, found_below, found_in
from ..parts.slurm import Cluster, cluster
from ..support.servers import Server, submit
from . import test_examples_run

REPETITIONS = max(2, int(os.environ.get("PAILOT_FAULT_REPETITIONS", "2")) // 5)
# Slurm signals one process after the other: the end of the sleep alone must not end the commands before their trap has run.
SLEEP = "while :; do sleep 0.05 || :; done"
LONG = 3 * PATIENCE


class Login(Home):
    """A home on the login node."""

    def __init__(self, folder: Path, slurm: Cluster) -> None:
        super().__init__(folder)
        self.slurm = slurm
        self.environment |= {**slurm.environment, "PAILOT_SLURM_POLL_SECONDS": "1"}

    def start(self, text: str, *options: str, **environment: str) -> subprocess.Popen[str]:
        return super().start(text, "-e", "slurm", *options, **environment)

    def run(self, text: str, *options: str, timeout: float = LONG, **environment: str) -> Result:
        return super().run(text, *options, timeout=timeout, **environment)

    def slurm_job(self, attempt: int = 0) -> str:
        """The number of the job in Slurm, once it is known."""
        file = wait_for(lambda: list(self.folder.glob(f"home/jobs/*/attempts/{attempt}/slurm.json")), what="the submission")[0]
        return str(json.loads(file.read_text())["job"])

    def events(self, attempt: int = 0) -> list[dict[str, object]]:
        lines = (self.jobs()[0] / f"attempts/{attempt}/events").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        super().close()
        self.slurm.slurm("scancel", "--user=root")


@pytest.fixture
def slurm() -> Cluster:
    return cluster()


@pytest.fixture
def login(tmp_path: Path, slurm: Cluster) -> Iterator[Login]:
    made = Login(tmp_path, slurm)
    yield made
    made.close()


def first_line(process: subprocess.Popen[str]) -> str:
    """What the job says next; bash has words of its own for what was stopped."""
    assert process.stdout
    line = process.stdout.readline()
    while line.endswith("Terminated\n"):
        line = process.stdout.readline()
    return line


def ended(process: subprocess.Popen[str]) -> Result:
    out, err = process.communicate(timeout=LONG)
    return Result(process.returncode, out, err)


def environment_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return ""


# Where it runs


def test_equal_tasks_share_an_allocation_and_its_gpus(login: Login) -> None:
    commands = "echo $SLURMD_NODENAME ${CUDA_VISIBLE_DEVICES:-none} ${SLURM_PROCID:-} $PAI_TASK_INDEX"
    done = login.run(
        job(role(commands, "worker", instances=4, gpu=1), role(commands, "ps")), "--quiet", PAILOT_SLURM_SHAPE="flat"
    )
    assert done.status == 0, done
    lines = sorted(line.split() for line in done.lines)
    workers = {(node, gpu) for name, node, gpu, *_ in lines if name.startswith("[worker")}
    assert len(workers) == 4  # a device of its own each
    assert next(line[2] for line in lines if line[0].startswith("[ps")) == "none"
    assert [line[3] for line in lines if line[0].startswith("[worker")] == ["0", "1", "2", "3"]  # no rank of Slurm's
    shown = login.show()["taskRoles"]["worker"]["tasks"]
    assert {task["host"] for task in shown} == {node for node, _ in workers}


def test_different_roles_become_components_of_one_job(login: Login) -> None:
    commands = "echo $SLURMD_NODENAME $SLURM_JOB_ID ${CUDA_VISIBLE_DEVICES:-none}; env | grep -c PAI_HOST_IP_worker_"
    text = job(role(commands, "worker", instances=2, gpu=2), role(commands, "ps", memory=300))
    (login.cwd / "job.yaml").write_text(text)
    planned = login.pailot("plan", "-e", "slurm", "job.yaml")
    assert planned.out.count("#SBATCH hetjob") == 1, planned
    done = login.run(text, "--quiet")
    assert done.status == 0, done
    found = {line.split()[0]: line.split()[1:] for line in done.lines if len(line.split()) == 4}
    assert len({words[0] for words in found.values()}) == 3  # components never share a node
    assert len({words[1] for words in found.values()}) == 1
    assert [words[2] for _, words in sorted(found.items())] == ["none", "0,1", "0,1"]
    assert json.loads((login.jobs()[0] / "attempts/0/payload.json").read_text())["script"] == planned.out


def test_the_virtual_cluster_is_a_partition(login: Login) -> None:
    commands = "echo $SLURM_JOB_PARTITION"
    assert login.run(job(role(commands)), "--quiet", "--vc", "gpu").lines == ["gpu"]
    mapped = login.run(job(role(commands)), "--quiet", "--vc", "research", PAILOT_SLURM_PARTITIONS="research=urgent")
    assert mapped.lines == ["urgent"]
    unknown = login.run(job(role(commands)), "--quiet", "--vc", "gpus")
    assert (unknown.status, unknown.out) == (1, "")
    assert "Slurm has no partition 'gpus'; did you mean 'gpu'?" in unknown.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (job(role("true", gpu=3)), "a task of 'main' asks for 3 GPUs; the nodes of Slurm's partition 'main' have 2 at most"),
        (job(role("true", memory=90_000)), "asks for 90000 MB of memory"),
        (job(role("true"), options="maxRunSeconds: 100000"), "more than the 86400 seconds"),
        (job(role("true"), options="gpuType: h100").replace("gpu: 0", "gpu: 1"), "Slurm refused the job"),
    ],
)
def test_what_can_never_run_is_refused_in_one_line(login: Login, text: str, words: str) -> None:
    done = login.run(text, "--quiet")
    assert (done.status, done.out) == (1, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 1


def test_a_python_of_3_9_on_the_node_is_enough(login: Login) -> None:
    old = next(iter(sorted((Path.home() / ".pyenv/versions").glob("3.9.*/bin/python3.9"))), None)
    if old is None:
        pytest.skip("there is no Python 3.9")
    text = job(role("echo here; false", instances=2, retries=1, failed=2))
    plain = (
        "from pailot.engines.slurm import code_bundle; code_bundle.interpreter = lambda: {!r};"
        " from pailot.cli.main import main; main()"
    )
    (login.cwd / "job.yaml").write_text(text)
    command = [sys.executable, "-c", plain.format(str(old)), "run", "-e", "slurm", "--quiet", "job.yaml"]
    process = login.popen(command)
    done = ended(process)
    assert done.status == 1
    assert sorted(set(done.lines)) == ["[main:0] here", "[main:1] here"], done
    assert "(3.9" in str(login.events()[0]["python"])


@pytest.mark.parametrize("sealed", [False, True])
def test_no_credential_is_seen_by_slurm_or_left_in_a_file(login: Login, sealed: bool) -> None:
    """Where all that opens a sealed file lies in the user's home directory, it is sealed while the job waits."""
    made = Canaries(end="until [ -e go ]; do sleep 0.05; done")
    inherited = made.inherited()
    login.environment |= inherited | ({"HOME": "/"} if sealed else {}) | {"PAILOT_SLURM_OPTIONS": "--hold"}
    texts = [*made.texts.values(), *(value.rpartition(":")[2].partition("@")[0] for value in inherited.values())]
    process = login.start(made.job, "--workdir", "shared")
    number = login.slurm_job()
    waits = next(login.folder.glob("home/jobs/*/attempts/0/secrets.once"))
    assert waits.stat().st_mode & 0o777 == 0o600
    assert bool(found_in(waits.read_bytes(), texts)) != sealed
    assert found_below(login.folder, texts, without=[waits, login.cwd / "job.yaml"]) == {}
    login.slurm.slurm("scontrol", "release", number)
    assert wait_for(lambda: b"PRICE=12" in b"".join(path.read_bytes() for path in login.folder.rglob("stdout")))
    assert not waits.exists()  # read once, and gone
    script = login.slurm.slurm("scontrol", "write", "batch_script", number, "-")
    assert "#SBATCH" in script
    assert found_in((script + login.slurm.slurm("scontrol", "show", "job", number)).encode(), texts) == []
    for folder in (login.slurm.folder / "state", login.slurm.folder / "spool"):
        assert found_below(folder, texts) == {}
    (login.cwd / "go").touch()
    done = ended(process)
    assert done.status == 0, done  # a command of the job checks that it got what was taken out of the payload
    printed = [text for text in texts if "ANYNAME" not in text]  # no name, no shape: what it prints of that is seen
    assert found_in((done.out + done.err).encode(), printed) == []
    logs = [*login.folder.rglob("stdout"), *login.folder.rglob("all")]
    assert found_below(login.folder, printed, without=[login.cwd / "job.yaml"]) == {}
    assert "ANY_NAME_AT_ALL=" in logs[0].read_text()  # inherited all the same
    assert "ANY_NAME_AT_ALL" not in next(login.folder.rglob("attempts/*/environment")).read_text()


def test_a_node_that_cannot_open_what_is_sealed_is_given_it_plain(login: Login) -> None:
    """The next attempt is not sealed: the package that opens it is one that no Python can load."""
    package = login.folder / "packages" / "cryptography"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import os\n"
        "if 'SLURM_JOB_ID' in os.environ:\n"
        "    raise OSError('made for another machine')\n"
        f"__path__ = [{os.path.dirname(cryptography.__file__)!r}]\n"
    )
    login.environment |= {"HOME": "/", "PYTHONPATH": str(package.parent)}
    commands = "t='<% $secrets.token %>'; echo ${#t} attempt $FC_FRAMEWORK_ATTEMPT_ID"
    done = login.run(job(role(commands), more="secrets: {token: hunter2-hunter2}"), "--quiet")
    assert (done.status, done.out) == (0, "15 attempt 1\n"), done
    assert "cannot open the sealed secrets" in login.pailot("why", "demo").out + login.pailot("events", "demo").out


def test_a_job_that_is_cancelled_while_it_waits_leaves_no_secret(login: Login) -> None:
    login.environment["PAILOT_SLURM_OPTIONS"] = "--hold"
    process = login.start(job(role("true"), more="secrets: {token: hunter2-hunter2}"))
    login.slurm_job()
    assert login.pailot("stop", "demo", timeout=LONG).status == 0
    assert ended(process).status == 3
    assert found_below(login.folder, ["hunter2-hunter2"], without=[login.cwd / "job.yaml"]) == {}
    assert not list(login.folder.rglob("secrets.once"))


@pytest.mark.parametrize("instances", [1, 2])
def test_images_run_in_the_runtime_of_the_site(login: Login, instances: int) -> None:
    runtime = login.folder / "runtime"
    runtime.write_text('#!/bin/bash\nimage=$1; shift; cd /; exec env -u PWD IMAGE="$image" "$@" 3>&-\n')
    runtime.chmod(0o755)
    commands = "t='<% $secrets.token %>'; echo $IMAGE ${#t}; pwd; cat; echo end; false"
    text = job(role(commands, instances=instances, failed=instances, retries=1), more="secrets: {token: hunter2-hunter2}")
    done = login.run(text, "--quiet", "--workdir", "shared", PAILOT_SLURM_CONTAINER=f"{runtime} {{image}}")
    assert done.status == 1
    said = [line.rpartition("] ")[2] for line in done.lines if line.startswith("[main:0]") or instances == 1]
    assert said == ["debian 15", str(login.cwd), "end"] * 2, done


def test_the_step_of_a_held_task_is_entered(login: Login) -> None:
    text = job(role("exit 5", instances=2), options="holdOnFailureMinutes: 10, graceSeconds: 1")
    process = login.start(text)
    assert process.stderr
    assert any("pailot enter" in line for line in process.stderr)
    wait_for(lambda: login.show()["taskRoles"]["main"]["tasks"][1]["state"] == "HELD")
    entered = login.pailot("enter", "demo", "main", "1", "--command", "echo $(hostname) $PAI_TASK_INDEX $SLURM_JOB_ID; pwd")
    host = login.show()["taskRoles"]["main"]["tasks"][1]["host"]
    work = login.jobs()[0] / "attempts/0/tasks/main-1/work"
    assert entered.out.splitlines() == [f"{host} 1 {login.slurm_job()}", str(work)], entered
    process.send_signal(signal.SIGINT)
    assert ended(process).status in (1, 3)


EXAMPLES = [
    test_examples_run.test_hello,
    test_examples_run.test_a_parameter_server_and_its_workers,
    test_examples_run.test_training_goes_on_from_its_checkpoint_after_a_retry,
    test_examples_run.test_prerequisites_with_a_failing_clean_up_that_is_ignored,
    test_examples_run.test_deployments_and_secrets,
    test_examples_run.test_legacy_v1,
    test_examples_run.test_the_library,
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.__name__)
def test_the_examples_run_here_too(login: Login, example: Callable[[Home], None]) -> None:
    login.environment["PAILOT_ENGINE"] = "slurm"
    example(login)


# How it ends


def test_a_job_that_waits_says_why_and_can_be_stopped(login: Login) -> None:
    login.environment["PAILOT_SLURM_OPTIONS"] = "--hold"
    process = login.start(job(role("true")))
    assert process.stderr
    said = next(line for line in process.stderr if "waits:" in line)
    number = login.slurm_job()
    assert said.endswith(
        f"Slurm job {number} waits: it is held by its user; 'scontrol release {number}' lets it go (JobHeldUser)\n"
    )
    assert said.removeprefix("pailot: ").strip() in login.pailot("why", "demo").out
    assert login.show()["state"] == "WAITING"
    process.send_signal(signal.SIGINT)
    assert ended(process).status == 3
    assert login.slurm.jobs()[login.slurm_job()] == "CANCELLED"
    assert login.show()["state"] == "STOPPED"


def test_tasks_that_are_too_many_for_all_nodes_are_refused(login: Login) -> None:
    """Slurm itself takes such a job, and lets it wait for ever."""
    done = login.run(job(role("true", instances=30)))
    assert done.status == 1, done
    words = "30 tasks of 'main' with 1 CPU each can never start together: the 3 nodes of Slurm's partition 'main' hold 24"
    assert words in done.err


@pytest.mark.parametrize("instances", [1, 3])
def test_a_cancel_in_slurm_stops_the_job_with_its_grace(login: Login, instances: int) -> None:
    commands = f"trap 'echo saved; exit 1' TERM; echo ready; {SLEEP}"
    process = login.start(job(role(commands, instances=instances, retries=3), job_retries=3), "--quiet")
    for _ in range(instances):
        assert first_line(process).endswith("ready\n")
    login.slurm.slurm("scancel", login.slurm_job())
    done = ended(process)
    assert (done.status, len(login.jobs()), done.out.count("saved")) == (3, 1, instances), done
    shown = login.show()
    assert (shown["state"], shown["reason"], shown["attempt"]) == ("STOPPED", "it was cancelled in Slurm (scancel)", 0)


def test_a_cancel_of_a_waiting_job_stops_it(login: Login) -> None:
    login.slurm.slurm("sbatch", "--nodes=3", "--exclusive", "--output=/dev/null", "--wrap=sleep 1000")  # all there is
    process = login.start(job(role("true"), job_retries=2), "--quiet")
    login.slurm.slurm("scancel", login.slurm_job())
    assert ended(process).status == 3
    assert login.show()["reason"] == "it was cancelled in Slurm (scancel)"


def test_a_requeued_job_is_a_platform_failure_and_runs_anew(login: Login) -> None:
    commands = "echo attempt $FC_FRAMEWORK_ATTEMPT_ID; [ $FC_FRAMEWORK_ATTEMPT_ID != 0 ] || sleep 1000"
    process = login.start(job(role(commands)), "--quiet")
    assert first_line(process) == "attempt 0\n"
    login.slurm.slurm("scontrol", "update", f"jobid={login.slurm_job()}", "requeue=1")
    login.slurm.slurm("scontrol", "requeue", login.slurm_job())
    done = ended(process)
    assert (done.status, done.out) == (0, "attempt 1\n"), done
    assert "requeued" in login.pailot("why", "demo").out
    assert login.show()["retries"] == 1


def test_a_preempted_job_runs_again_without_using_up_a_retry(login: Login) -> None:
    commands = "echo attempt $FC_FRAMEWORK_ATTEMPT_ID; [ $FC_FRAMEWORK_ATTEMPT_ID != 0 ] || sleep 1000"
    text = job(role(commands, instances=3), options="graceSeconds: 1").replace("cpu: 1", "cpu: 5")
    process = login.start(text, "--quiet", "--vc", "low")
    for _ in range(3):
        assert first_line(process).endswith("attempt 0\n")
    login.slurm.slurm("srun", "-p", "urgent", "-N3", "-n3", "-c8", "true")
    done = ended(process)
    assert (done.status, sorted(done.lines)) == (0, [f"[main:{index}] attempt 1" for index in range(3)]), done
    assert "made room" in login.pailot("why", "demo").out


def test_a_driver_that_is_killed_is_a_platform_failure(login: Login) -> None:
    commands = "echo attempt $FC_FRAMEWORK_ATTEMPT_ID; [ $FC_FRAMEWORK_ATTEMPT_ID != 0 ] || sleep 1000"
    marker = f"marker-{login.folder.name}"
    process = login.start(job(role(f": {marker}; {commands}", instances=2)), "--quiet")
    for _ in range(2):
        assert first_line(process).endswith("attempt 0\n")
    login.slurm.slurm("scancel", "--signal=KILL", "--batch", login.slurm_job())
    done = ended(process)
    assert (done.status, sorted(done.lines)) == (0, ["[main:0] attempt 1", "[main:1] attempt 1"]), done
    assert "driver ended without a result" in login.pailot("why", "demo").out


def test_the_launcher_dies_and_whoever_waits_goes_on(login: Login) -> None:
    commands = "echo attempt $FC_FRAMEWORK_ATTEMPT_ID; until [ -e go ]; do sleep 0.05; done; [ $FC_FRAMEWORK_ATTEMPT_ID = 1 ]"
    process = login.start(job(role(commands), job_retries=1), "--quiet")
    assert first_line(process) == "attempt 0\n"
    process.kill()
    process.wait()
    assert login.show()["state"] == "RUNNING"
    (login.cwd / "go").touch()
    wait_for(lambda: any(each["event"] == "result" for each in login.events()))
    assert login.show()["state"] == "WAITING"  # for somebody who tries it again
    assert login.pailot("wait", "demo", timeout=LONG).status == 0
    shown = login.show()
    assert (shown["state"], shown["attempt"], shown["retries"]) == ("SUCCEEDED", 1, 1)
    assert login.pailot("logs", "demo").out == "attempt 1\n"
    names = [event["event"] for event in json.loads(login.pailot("events", "demo", "--json").out)]
    assert names.count("task-ended") == 2


def test_logs_are_followed_without_a_launcher(login: Login) -> None:
    started = login.run(job(role("echo one; until [ -e go ]; do sleep 0.05; done; echo two")), "--detach")
    assert started.status == 0, started
    wait_for(lambda: login.pailot("logs", "demo").out == "one\n")
    for pid in processes_with("pailot\0run\0job.yaml"):  # supervisors, ours among them; the job is Slurm's
        if str(login.folder) in environment_of(pid):
            os.kill(pid, signal.SIGKILL)
    follower = login.popen([sys.executable, "-m", "pailot", "logs", "-f", "demo"])
    assert first_line(follower) == "one\n"
    (login.cwd / "go").touch()
    assert ended(follower).out == "two\n"
    assert login.show()["state"] == "SUCCEEDED"


# Faults


def counting(instances: int, *, until: str = "go") -> str:
    """Tasks that say when they begin and when they end, in a file that outlives attempts; nothing may be missing or twice."""
    commands = (
        'echo "begin $FC_FRAMEWORK_ATTEMPT_ID" >>"$PAI_CHECKPOINT_DIR/course"; echo up; '
        f"until [ -e {until} ]; do sleep 0.05; done; "
        'echo "end $FC_FRAMEWORK_ATTEMPT_ID" >>"$PAI_CHECKPOINT_DIR/course"'
    )
    return job(role(commands, instances=instances), options="graceSeconds: 1")


def courses(login: Login) -> list[list[str]]:
    return [path.read_text().splitlines() for path in sorted(login.folder.glob("home/jobs/*/checkpoints/*/course"))]


@pytest.mark.parametrize("repetition", range(REPETITIONS))
@pytest.mark.parametrize("batch_node", [True, False])
def test_a_node_crashes(login: Login, batch_node: bool, repetition: int) -> None:
    text = counting(3).replace("cpu: 1", "cpu: 5")  # one a node
    process = login.start(text, "--quiet", "--workdir", "shared")
    for _ in range(3):
        assert first_line(process).endswith("up\n")
    driver = next(str(each["host"]) for each in login.events() if each["event"] == "began")
    node = driver if batch_node else next(name for name in login.slurm.names if name != driver)
    login.slurm.crash_node(node)
    try:
        login.slurm.declare_down(node)
        wait_for(lambda: login.slurm.jobs()[login.slurm_job()] in ("NODE_FAIL", "CANCELLED", "FAILED", "COMPLETED"), LONG)
    finally:
        login.slurm.revive_node(node)
    for _ in range(3):
        assert first_line(process).endswith("up\n")
    (login.cwd / "go").touch()
    done = ended(process)
    assert done.status == 0, done
    assert courses(login) == [["begin 0", "begin 1", "end 1"]] * 3
    assert login.show()["retries"] == 1
    login.slurm.wait_idle()


@pytest.mark.parametrize("repetition", range(REPETITIONS))
@pytest.mark.parametrize("moment", ["submitted", "running"])
def test_the_controller_is_killed(login: Login, moment: str, repetition: int) -> None:
    process = login.start(counting(2), "--quiet", "--workdir", "shared")
    login.slurm_job()
    if moment == "running":
        for _ in range(2):
            assert first_line(process).endswith("up\n")
    login.slurm.kill_controller()
    login.slurm.restart_controller()
    (login.cwd / "go").touch()
    done = ended(process)
    assert done.status == 0, done
    last = f"{login.show()['attempt']}"
    for course in courses(login):
        assert course[-2:] == [f"begin {last}", f"end {last}"]
        assert len(set(course)) == len(course)  # nothing twice in the same attempt
    no_process_left(str(login.jobs()[0]))
    wait_for(lambda: login.slurm.slurm("sinfo", "-h", "-o", "%T"), LONG)
    login.slurm.wait_idle()


def test_srun_is_tried_again_while_the_controller_is_away(login: Login) -> None:
    """A step that never began costs the job nothing but time."""
    text = counting(3)
    process = login.start(text, "--quiet", "--workdir", "shared")
    wait_for(lambda: list(login.folder.glob("home/jobs/*/attempts/0/events"))[0:1] and login.events()[0:1], LONG)
    login.slurm.kill_controller()
    login.slurm.restart_controller()
    (login.cwd / "go").touch()
    assert ended(process).status == 0
    login.slurm.wait_idle()


# Under a server


@pytest.fixture
def server(tmp_path: Path, slurm: Cluster) -> Iterator[Server]:
    settings = {**slurm.environment, "PAILOT_ENGINE": "slurm", "PAILOT_SLURM_POLL_SECONDS": "1"}
    made = Server(tmp_path / "server", **settings)
    yield made
    made.close()
    slurm.slurm("scancel", "--user=root")


def keeper_of(server: Server) -> int:
    return int(wait_for((server.home.folder / "home/keeper.lock").read_text, what="the keeper"))


def test_a_server_runs_jobs_on_slurm_and_takes_them_up_again(server: Server, slurm: Cluster, tmp_path: Path) -> None:
    client = server.client(tmp_path / "client")
    go = tmp_path / "go"
    commands = f"echo $SLURMD_NODENAME $FC_FRAMEWORK_ATTEMPT_ID; until [ -e {go} ]; do sleep 0.05; done; echo done"
    for name in ("one", "two", "three"):
        assert submit(client, job(role(commands, instances=2), name=name)).status == 0
    for name in ("one", "two", "three"):
        wait_for(lambda name=name: client.pailot("logs", name).out.count(" 0\n") == 2, LONG)
    jobs = {number for number, state in slurm.jobs().items() if state == "RUNNING"}
    assert len(jobs) == 3
    os.kill(keeper_of(server), signal.SIGKILL)  # then the server: whoever comes later finds the jobs where they are
    server.kill()
    server.start()
    assert submit(client, job(role("echo $SLURMD_NODENAME"), name="four")).status == 0
    assert client.pailot("wait", "four", timeout=LONG).status == 0
    go.touch()
    for name in ("one", "two", "three"):
        assert client.pailot("wait", name, timeout=LONG).status == 0
        shown = client.show(name)
        assert (shown["state"], shown["attempt"]) == ("SUCCEEDED", 0), shown
        assert client.pailot("logs", name).out.count("done\n") == 2
    assert jobs <= {number for number, state in slurm.jobs().items() if state == "COMPLETED"}


def test_a_server_stops_and_refuses_jobs_on_slurm(server: Server, tmp_path: Path) -> None:
    client = server.client(tmp_path / "client")
    assert submit(client, job(role(f"echo up; {SLEEP}"), options="graceSeconds: 1")).status == 0
    wait_for(lambda: client.pailot("logs", "demo").out == "up\n", LONG)
    assert client.pailot("stop", "demo", timeout=LONG).out == "demo STOPPED\n"
    assert submit(client, job(role("true", gpu=9), name="greedy")).status == 0
    assert client.pailot("wait", "greedy", timeout=LONG).status == 1
    assert "have 2 at most" in client.pailot("why", "greedy").out


def test_a_run_follows_another_by_slurms_own_means(login: Login) -> None:
    """`afterok`: the second job waits in Slurm's queue, and is cancelled there if the first one fails."""
    gate = login.folder / "gate"
    for name, code, state in (("good", 0, "SUCCEEDED"), ("bad", 3, "STOPPED")):
        gate.unlink(missing_ok=True)
        (login.cwd / "first.yaml").write_text(
            job(role(f"until [ -e {gate} ]; do sleep 0.1; done; exit {code}"), name=f"first-{name}")
        )
        (login.cwd / "second.yaml").write_text(job(role("true"), name=f"second-{name}"))
        assert login.pailot("run", "-e", "slurm", "first.yaml", "--detach").status == 0
        follower = login.pailot("run", "-e", "slurm", "second.yaml", "--detach", "--after", f"first-{name}")
        assert follower.status == 0, follower
        assert "the cluster's own line sees to that (afterok:" in login.pailot("why", f"second-{name}").out
        gate.touch()
        login.pailot("wait", f"second-{name}", timeout=LONG)
        shown = login.show(f"second-{name}")
        assert shown["state"] == state, shown
        if state == "STOPPED":
            assert "it was to start after first-bad succeeded" in shown["reason"] or "did not succeed" in shown["reason"]
