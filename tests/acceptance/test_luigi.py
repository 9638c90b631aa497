"""Luigi tasks, for real: on this machine, against a Pailot server, and against what OpenPAI 0.7 answered."""

from __future__ import annotations

import inspect
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import luigi
import luigi.contrib.pai as theirs
import pytest
from luigi.configuration import get_config

import pailot
from pailot import luigi as ours
from pailot.luigi import OpenPai, PaiJob, PaiJobFailed, PaiTask, Port, ProtocolTask, TaskRole, places, slot_to_dict, tasks
from pailot.wire.client import Client as Wire

from .servers import PASSWORD, Server

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    config = get_config()
    configure(pai_url="local")
    places._TOKENS.clear()
    yield tmp_path / "here"
    for option in ("pai_url", "username", "password", "token", "expiration"):
        if config.has_option("OpenPai", option):
            config.remove_option("OpenPai", option)
    luigi.task_register.Register.clear_instance_cache()


def configure(**options: str) -> None:
    luigi.task_register.Register.clear_instance_cache()
    for name, value in options.items():
        get_config().set("OpenPai", name, value)


class Hello(PaiTask):
    """As in a pipeline of today."""

    mark = luigi.Parameter(default="hello")
    command = 'echo "$PAI_JOB_NAME"; echo done >"$PAI_OUTPUT_DIR/file"'

    @property
    def name(self) -> str:
        return f"job-{self.mark}"

    @property
    def image(self) -> str:
        return "debian:12"

    @property
    def tasks(self) -> list[TaskRole]:
        return [TaskRole("worker", self.command)]


def build(*wanted: luigi.Task, workers: int = 1) -> bool:
    return bool(luigi.build(list(wanted), local_scheduler=True, workers=workers, log_level="WARNING", no_lock=True))


# Names


@pytest.mark.parametrize("name", ["PaiJob", "Port", "TaskRole"])
def test_records_take_what_theirs_take(name: str) -> None:
    mine, other = (getattr(module, name) for module in (ours, theirs))
    assert mine.__slots__ == other.__slots__
    for (my_name, my), (their_name, their) in zip(
        inspect.signature(mine).parameters.items(), inspect.signature(other).parameters.items(), strict=True
    ):
        assert (my_name, my.default) == (their_name, their.default)


def test_the_configuration_has_their_section_and_defaults() -> None:
    mine = dict(OpenPai.get_params())
    for name, param in theirs.OpenPai.get_params():
        assert mine.pop(name)._default == param._default
    assert list(mine) == ["token"]
    assert OpenPai.get_task_family() == theirs.OpenPai.get_task_family() == "OpenPai"


def test_a_task_has_their_properties_with_their_defaults() -> None:
    names = [name for name, value in vars(theirs.PaiTask).items() if isinstance(value, property)]
    assert set(names) == set(
        "name image tasks auth_file_path data_dir code_dir output_dir virtual_cluster gpu_type retry_count".split()
    )
    made = Hello()
    for name in names:
        if name in ("name", "image", "tasks"):
            assert getattr(getattr(PaiTask, name).fget, "__isabstractmethod__", False)
        else:
            mine, other = getattr(PaiTask, name).fget, getattr(theirs.PaiTask, name).fget
            assert mine(made) == other(made), name
    for method in ("run", "output", "complete"):
        assert inspect.signature(getattr(PaiTask, method)) is not None


def test_the_json_is_theirs() -> None:
    def written(module: Any) -> str:
        job = module.PaiJob("n", "i", [module.TaskRole("r", "c", taskNumber=2, portList=[module.Port("http", 80, 2)])])
        job.virtualCluster, job.retryCount, job.gpuType = "vc", 3, None
        return json.dumps(job, default=module.slot_to_dict)

    assert written(ours) == written(theirs)
    assert slot_to_dict(Port("x")) == theirs.slot_to_dict(theirs.Port("x"))


def test_no_tasks_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    class Nothing(Hello):
        tasks: list[TaskRole] = []

    bad: list[Any] = [[], None, "x"]
    for nothing in bad:
        with pytest.raises(TypeError, match="you must specify one task at least"):
            PaiJob("n", "i", nothing)
    with pytest.raises(TypeError, match="one task at least"):
        Nothing().run()
    assert not (tmp_path / "home" / "jobs").exists()


# On this machine


def test_a_task_runs_once(here: Path, tmp_path: Path) -> None:
    task = Hello()
    assert not task.complete()
    assert build(task)
    assert task.complete()
    assert Path(task.output().path) == tmp_path / "home" / "fs" / "job-hello" / "output"
    assert (Path(task.output().path) / "file").read_text() == "done\n"
    before = len(list(pailot.runs()))
    assert build(task)
    assert len(list(pailot.runs())) == before == 1
    pailot.get("job-hello").delete()
    assert task.complete()  # its output is there


class Failing(Hello):
    retry_count = 2
    command = 'echo "attempt" >>tries; echo the-cause >&2; exit 5'


def test_a_failed_job_says_why_and_is_run_again_by_the_next_pipeline(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Failing("again")
    with pytest.raises(RuntimeError) as caught:
        task.run()
    error = caught.value
    assert isinstance(error, PaiJobFailed)
    assert (error.exit_code, error.task, error.last_lines) == (5, "worker:0", ("the-cause",))
    assert not task.complete()
    assert (here / "tries").read_text().count("attempt") == 3
    with pytest.raises(PaiJobFailed):
        task.run()  # luigi itself tries again: the job does not
    assert (here / "tries").read_text().count("attempt") == 4
    monkeypatch.setattr(tasks, "SESSION", "another luigi")
    monkeypatch.setattr(Failing, "command", "true")
    task.run()
    assert task.complete()


def test_luigi_is_told_what_happens(caplog: pytest.LogCaptureFixture) -> None:
    class Loud(Hello):
        command = "echo a-line-of-the-job"

    task = Loud("told")
    told: dict[str, list[Any]] = {"url": [], "message": [], "percentage": []}
    task.set_tracking_url, task.set_status_message = told["url"].append, told["message"].append
    task.set_progress_percentage = told["percentage"].append
    with caplog.at_level("INFO", "luigi-interface"):
        task.run()
    assert "job-told: a-line-of-the-job" in caplog.text
    assert told["url"][0].startswith("file:///")
    assert told["message"][-1].startswith("SUCCEEDED, 1 of 1 tasks ended")
    assert told["percentage"][-1] == 100


def test_interrupting_luigi_stops_the_job(here: Path) -> None:
    code = (
        "import luigi\nfrom pailot.luigi import PaiTask, TaskRole\n"
        "class Long(PaiTask):\n name='long'; image='debian'; tasks=[TaskRole('w','touch up; sleep 1000')]\n"
        "luigi.build([Long()], local_scheduler=True, no_lock=True)\n"
    )
    (here / "luigi.cfg").write_text("[OpenPai]\npai_url=local\n")
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL, start_new_session=True)
    wait_for_file(here / "up")
    os.killpg(process.pid, signal.SIGINT)
    process.wait(120)
    run = pailot.get("long")
    run.wait(120)
    assert run.state == "STOPPED"


def wait_for_file(path: Path) -> None:
    end = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < end, path
        time.sleep(0.02)


def test_a_job_that_is_running_already_is_joined(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo("gate")

    class Gated(Hello):
        command = 'touch up; read line <gate; echo x >"$PAI_OUTPUT_DIR/x"'

    first = threading.Thread(target=Gated("joined").run)
    first.start()
    wait_for_file(here / "up")
    joined = threading.Event()

    class Hears(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "is running already" in record.getMessage():
                joined.set()

    ear = Hears()
    monkeypatch.setattr(logging.getLogger("luigi-interface"), "handlers", [ear])
    logging.getLogger("luigi-interface").setLevel(logging.INFO)
    second = threading.Thread(target=Gated("joined").run)
    second.start()
    assert joined.wait(300)
    Path("gate").write_text("go\n")
    first.join()
    second.join()
    assert len(list(pailot.runs())) == 1


# The two examples of the module's documentation


class OneWorker(PaiTask):
    name = "sklearn-example"
    image = "openpai/pai.example.sklearn"
    tasks = [TaskRole("worker", "ls code; test -d $PAI_DATA_DIR && echo $PAI_CODE_DIR", memoryMB=4096)]
    data_dir = "data"
    code_dir = "code"
    virtual_cluster = "gpu-cluster"
    gpu_type = "K80"


class Distributed(PaiTask):
    name = "distributed-example"
    image = "openpai/pai.example.tensorflow"
    retry_count = 3
    tasks = [
        TaskRole("ps", "echo ps at $PAI_CURRENT_CONTAINER_PORT", taskNumber=2, portList=[Port(label="http", begin_at=8080)]),
        TaskRole("worker", "echo worker $PAI_TASK_INDEX of $PAI_TASK_ROLE_TASK_COUNT_worker", taskNumber=4),
    ]


def test_the_documented_examples_run_as_written(here: Path) -> None:
    (here / "data").mkdir()
    (here / "code").mkdir()
    (here / "code" / "bench.py").write_text("")
    assert build(OneWorker(), Distributed(), workers=2)
    assert list(pailot.get("sklearn-example").logs()) == ["bench.py", "code"]
    lines = set(pailot.get("distributed-example").logs())
    assert {"[ps:0] ps at 8080", "[ps:1] ps at 8081"} <= lines
    assert "[worker:3] worker 3 of 4" in lines


# Beyond the original


class Greeting(ProtocolTask):
    who = luigi.Parameter()
    times = luigi.IntParameter(default=2)
    unused = luigi.Parameter(default="x")

    @property
    def job(self) -> pailot.Job:
        role = pailot.TaskRole(commands="echo <% $parameters.who %> <% $parameters.times %>", image="debian")
        return pailot.Job("greeting", {"main": role}, parameters={"who": "nobody", "times": 1})


def test_a_protocol_job_as_a_task() -> None:
    both = [Greeting("Ann"), Greeting("Ben", times=3)]
    assert build(*both, workers=2)
    said = [list(pailot.get(task.job_name).logs()) for task in both]
    assert said == [["Ann 2"], ["Ben 3"]]
    assert all(task.complete() for task in both)
    assert not Greeting("Cid").complete()


def test_the_example_pipeline_with_a_central_scheduler(here: Path) -> None:
    shutil.copytree(ROOT / "examples" / "luigi-pipeline", here / "pipeline")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    scheduler = subprocess.Popen(
        [Path(sys.executable).with_name("luigid"), "--port", "0", "--address", "127.0.0.1", "--state-path", str(here / "state")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=here,
    )
    try:
        port = listening_port(scheduler.pid)
        command = [sys.executable, "pipeline.py", "--scheduler-port", str(port)]
        done = subprocess.run(command, cwd=here / "pipeline", env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        with urlopen(f"http://127.0.0.1:{port}/static/visualiser/index.html") as page:
            assert b"Luigi Task Visualiser" in page.read()
        with urlopen(f"http://127.0.0.1:{port}/api/task_list?data=%7B%22status%22%3A%22DONE%22%7D") as answer:
            finished = json.load(answer)["response"]
        assert len(finished) == 5
        assert any(task.get("tracking_url") for task in finished.values())
    finally:
        scheduler.terminate()
        scheduler.wait(60)
    report = (here / "pipeline" / "results" / "report" / "report.txt").read_text()
    assert "best:" in report


def listening_port(pid: int) -> int:
    """The port that a process listens on, which the kernel has chosen."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        sockets = set()
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                sockets.add(os.readlink(link))
            except OSError:
                continue
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                return int(fields[1].rpartition(":")[2], 16)
        time.sleep(0.05)
    raise AssertionError("nobody listens")


# Servers


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("server"))
    yield started
    started.close()


def test_against_a_server(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(pai_url=server.url, username="admin", password=PASSWORD)
    monkeypatch.setattr(Hello, "command", 'echo "$PAI_JOB_NAME"; mkdir -p "$PAI_OUTPUT_DIR"; echo done >"$PAI_OUTPUT_DIR/file"')
    task = Hello("remote")  # contacts nobody
    assert not places._TOKENS
    assert not task.complete()
    task.run()
    assert task.complete()
    assert (Path(task.output().path) / "file").read_text() == "done\n"
    failing = Failing("remote-fails")
    with pytest.raises(PaiJobFailed, match="exited with 5") as caught:
        failing.run()
    assert caught.value.last_lines == ("the-cause",)
    monkeypatch.setattr(tasks, "SESSION", "another luigi")
    monkeypatch.setattr(Failing, "command", "true")
    failing.run()  # the name is taken on the server, and that is no obstacle
    assert failing.complete()
    places._TOKENS[next(iter(places._TOKENS))] = ("expired", time.time() + 1000)
    assert task.complete()  # a new token was fetched


def test_a_token_instead_of_a_password(server: Server) -> None:
    configure(pai_url=server.url, username="admin", token="not-a-token")
    with pytest.raises(pailot.Denied, match="does not accept the token; it may have expired"):
        Hello("denied").complete()
    get_config().remove_option("OpenPai", "token")
    luigi.task_register.Register.clear_instance_cache()
    with pytest.raises(pailot.Denied, match="set password or token"):
        Hello("denied").run()
    client = Wire(server.url)
    client.login("admin", PASSWORD)
    client.close()

    class Own(Hello):
        pai_url = server.url
        token = client.token
        command = "true"

    configure(pai_url="http://127.0.0.1:9")
    Own("own").run()
    assert Own("own").complete()


def test_an_unreachable_server_is_said_plainly(tmp_path: Path) -> None:
    configure(pai_url="http://127.0.0.1:9", password="x")
    with pytest.raises(pailot.Unreachable, match=r"127\.0\.0\.1:9"):
        Hello("nowhere").run()


class OldOpenPai(BaseHTTPRequestHandler):
    """What OpenPAI 0.7 answered to the requests that luigi makes."""

    jobs: dict[str, dict[str, Any]] = {}
    asked: list[str] = []

    def log_message(self, *_: Any) -> None: ...

    def answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.asked.append(self.path)
        if not self.path.startswith("/api/v1/jobs/"):
            self.answer(404, {"code": "NoApiError", "message": "no such route"})
        elif name not in self.jobs:
            self.answer(404, {"code": "NoJobError", "message": f"Job {name} is not found."})
        else:
            job = self.jobs[name]
            state = job["states"].pop(0) if len(job["states"]) > 1 else job["states"][0]
            self.answer(200, {"name": name, "jobStatus": {"state": state, "appExitCode": 0 if state == "SUCCEEDED" else 1}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/api/v1/token":
            self.answer(200, {"token": "t", "user": body["username"]})
        elif self.headers["Authorization"] != "Bearer t":
            self.answer(401, {"code": "UnauthorizedUserError", "message": "no"})
        elif body["jobName"] in self.jobs:
            self.answer(409, {"code": "ConflictJobError", "message": "taken"})
        else:
            ends = "FAILED" if body["taskRoles"][0]["command"] == "exit 5" else "SUCCEEDED"
            self.jobs[body["jobName"]] = {"body": body, "states": ["WAITING", "RUNNING", ends]}
            self.answer(202, {"message": "ok"})


def test_against_an_old_openpai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "POLL_SECONDS", 0.01)
    old = ThreadingHTTPServer(("127.0.0.1", 0), OldOpenPai)
    threading.Thread(target=old.serve_forever, daemon=True).start()
    try:
        configure(pai_url=f"http://127.0.0.1:{old.server_address[1]}", password="x")
        task = Hello("old")
        assert not task.complete()
        task.run()
        assert task.complete()
        sent = OldOpenPai.jobs["job-old"]["body"]
        assert sent == json.loads(json.dumps(task.pai_job(), default=slot_to_dict))
        assert sent["outputDir"] == "$PAI_DEFAULT_FS_URI/job-old/output"
        failing = Failing("old-fails")
        monkeypatch.setattr(Failing, "command", "exit 5")
        for _ in range(2):
            with pytest.raises(PaiJobFailed):
                failing.run()
        assert {"job-old-fails", "job-old-fails-r2"} <= set(OldOpenPai.jobs)
    finally:
        old.shutdown()
        old.server_close()


class OpenPai2(OldOpenPai):
    """What an OpenPAI of 2022 answers, below /rest-server; it knows nothing of records and live events."""

    jobs: dict[str, dict[str, Any]] = {}

    def do_GET(self) -> None:
        path = self.path.removeprefix("/rest-server/api/v2")
        name = path.rpartition("/")[2]
        if path == "/info":
            self.answer(200, {"name": "PAI RESTful API", "version": "v1.8.1"})
        elif path == "/tokens/check":
            self.answer(200, {"username": "admin"})
        elif path.startswith("/jobs/") and path.count("/") == 2 and name in self.jobs:
            job = self.jobs[name]
            state = job["states"].pop(0) if len(job["states"]) > 1 else job["states"][0]
            status = {"state": state, "username": "admin", "appExitCode": 5 if state == "FAILED" else None}
            status["appExitDiagnostics"] = "it went wrong" if state == "FAILED" else ""
            role = {"taskStatuses": [{"taskIndex": 0, "taskState": state}]}
            self.answer(200, {"name": name, "jobStatus": status, "taskRoles": {"worker": role}})
        elif path.endswith("/config"):
            self.answer(404, {"code": "NoJobConfigError", "message": "none"})
        elif path.startswith("/jobs/") and path.count("/") == 2:
            self.answer(404, {"code": "NoJobError", "message": f"Job {name} is not found."})
        else:
            self.answer(404, {"code": "NoApiError", "message": "no such route"})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/rest-server/api/v2/authn/basic/login":
            self.answer(200, {"token": "t2", "user": "admin"})
        elif self.path == "/rest-server/api/v2/jobs" and self.headers["Authorization"] == "Bearer t2":
            job = pailot.loads(data.decode())
            name = f"admin~{job.name}"
            if name in self.jobs:
                self.answer(409, {"code": "ConflictJobError", "message": "taken"})
                return
            ends = "FAILED" if "exit 5" in job.task_roles["worker"].entrypoint else "SUCCEEDED"
            self.jobs[name] = {"job": job, "states": ["WAITING", "RUNNING", ends]}
            self.answer(202, {"status": 202, "message": "ok"})
        else:
            self.answer(404, {"code": "NoApiError", "message": "no such route"})


def test_against_an_openpai_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pailot.sdk.client.POLL_SECONDS", 0.01)
    cluster = ThreadingHTTPServer(("127.0.0.1", 0), OpenPai2)
    threading.Thread(target=cluster.serve_forever, daemon=True).start()
    try:
        configure(pai_url=f"http://127.0.0.1:{cluster.server_address[1]}", password="x")
        task = Hello("cluster")
        assert not task.complete()
        task.run()
        assert task.complete()
        sent = OpenPai2.jobs["admin~job-cluster"]["job"]
        assert sent.extras.options.output_dir.endswith("/job-cluster/output")
        monkeypatch.setattr(Failing, "command", "exit 5")
        failing = Failing("cluster-fails")
        for _ in range(2):
            with pytest.raises(PaiJobFailed, match="it went wrong") as caught:
                failing.run()
            assert caught.value.exit_code == 5
        assert "admin~job-cluster-fails-r2" in OpenPai2.jobs
    finally:
        cluster.shutdown()
        cluster.server_close()
