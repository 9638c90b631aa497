"""Luigi tasks on this machine, without a server, and the names of the original."""

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
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import luigi
import luigi.contrib.pai as theirs
import pytest

import pailot
from pailot import luigi as ours
from pailot.luigi import OpenPai, PaiJob, PaiJobFailed, PaiTask, Port, ProcessorTask, ProtocolTask, TaskRole, slot_to_dict, tasks
from pailot.processor import Processor, Session

from ..support import luigi_tasks
from ..support.luigi_tasks import Failing, Hello, build, wait_for_file

ROOT = Path(__file__).parents[2]
here = luigi_tasks.here


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


def test_roles_without_ports_do_not_share_their_lists() -> None:
    first, second = TaskRole("a", "true"), TaskRole("b", "true")
    first.portList.append(Port("http"))
    assert second.portList == []
    assert TaskRole("c", "true").portList == []
    given = [Port("x")]
    assert TaskRole("d", "true", portList=given).portList is given


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
    monkeypatch.setattr(tasks, "STARTED", tasks.Memory())  # another luigi
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


def test_what_is_to_be_known_of_a_job_is_in_luigis_log(caplog: pytest.LogCaptureFixture) -> None:
    class Large(Hello):
        tasks = [TaskRole("worker", "true", cpuNumber=5000)]

    with caplog.at_level("WARNING", "luigi-interface"):
        Large("large").run()
    assert "job job-large: " in caplog.text
    assert "the image debian:12 is not used" in caplog.text
    assert "the job asks for 5000 CPUs, this machine has" in caplog.text


def test_what_is_doubtful_in_a_job_file_is_in_luigis_log(caplog: pytest.LogCaptureFixture) -> None:
    class Doubtful(ProtocolTask):
        job = pailot.loads(
            "protocolVersion: 2\nname: doubtful\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: debian}]\n"
            "parameters: {unused: 1}\n"
            "taskRoles: {w: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}, commands: ['true']}}\n"
        )

    with caplog.at_level("WARNING", "luigi-interface"):
        Doubtful().run()
    assert "unused" in caplog.text


def test_without_a_configuration_the_way_to_do_without_a_server_is_said(here: Path) -> None:
    (here / "pipeline.py").write_text(
        "import luigi\nfrom pailot.luigi import PaiTask, TaskRole\n"
        "class One(PaiTask):\n name='one'; image='debian'; tasks=[TaskRole('w','true')]\n"
        "One().run()\n"
    )
    said = subprocess.run([sys.executable, "-W", "ignore", "pipeline.py"], capture_output=True, text=True, check=False)
    assert said.returncode != 0
    assert "127.0.0.1:9186" in said.stderr.splitlines()[-1]
    assert "pai_url = local" in said.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("number", "workers", "setting", "state"),
    [
        (signal.SIGINT, 1, "on", "STOPPED"),
        (signal.SIGINT, 2, "on", "STOPPED"),
        (signal.SIGTERM, 1, "on", "STOPPED"),
        (signal.SIGINT, 1, "off", "SUCCEEDED"),
    ],
)
def test_an_end_of_luigi_is_an_end_of_the_job(here: Path, number: signal.Signals, workers: int, setting: str, state: str) -> None:
    code = (
        "import luigi\nfrom pailot.luigi import PaiTask, TaskRole\n"
        "class Long(PaiTask):\n name='long'; image='debian'; tasks=[TaskRole('w','touch up; read line <gate')]\n"
        "class Other(Long):\n name='other'; tasks=[TaskRole('w','touch other; sleep 1000')]\n"
        f"luigi.build([Long(), Other()][:{workers}], local_scheduler=True, no_lock=True, workers={workers})\n"
    )
    (here / "luigi.cfg").write_text("[OpenPai]\npai_url=local\n")
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PAILOT_LUIGI_STOP_ON_INTERRUPT": setting},
    )
    os.mkfifo("gate")
    names = ["long", "other"][:workers]
    for file in ("up", "other")[:workers]:
        wait_for_file(here / file)
    os.killpg(process.pid, number)
    assert process.wait(120) != 0
    for name in names:
        run = pailot.get(name)
        gate = os.open("gate", os.O_RDWR | os.O_NONBLOCK)
        if setting == "off":  # it goes on, to its own end
            os.write(gate, b"go\n")
        assert run.wait(120) == state
        os.close(gate)


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


@pytest.mark.parametrize(
    ("place", "kind", "path"),
    [
        ("$PAI_DEFAULT_FS_URI/x", "Folder", "{fs}/x"),
        ("${PAI_DEFAULT_FS_URI}/x", "Folder", "{fs}/x"),
        ("file:///data/x", "Folder", "/data/x"),
        ("relative/x", "Folder", "relative/x"),
        ("memory://bucket/x", "UriTarget", "memory://bucket/x"),
        ("hdfs://node:9000/x", "UriTarget", "hdfs://node:9000/x"),
    ],
)
def test_an_output_is_a_target_of_its_kind(tmp_path: Path, place: str, kind: str, path: str) -> None:
    class Kept(Hello):
        output_dir = place

    found = Kept("kept").output()
    assert (type(found).__name__, found.path) == (kind, path.format(fs=tmp_path / "home" / "fs"))


def test_hdfs_is_looked_at_by_luigis_own_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a program `hadoop` that knows one folder, as the real one would answer."""
    program = tmp_path / "bin" / "hadoop"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\ncase "$*" in *"hdfs://node:9000/there/output"*) exit 0;; esac\necho "No such file or directory" >&2; exit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PAILOT_DEFAULT_FS_URI", "hdfs://node:9000")

    class Named(Hello):
        name = property(lambda self: self.mark)

    assert type(Named("there").output()).__name__ == "HdfsTarget"
    assert Named("there").complete()  # no record is left, and the output is there
    assert not Named("elsewhere").complete()


def test_the_default_output_is_one_place_for_the_task_and_for_luigi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAILOT_DEFAULT_FS_URI", str(tmp_path / "elsewhere"))

    class Tells(Hello):
        command = 'echo "$PAI_OUTPUT_DIR"; echo "$PAI_DEFAULT_FS_URI"; echo x >"$PAI_OUTPUT_DIR/x"'

    task = Tells("tells")
    task.run()
    assert list(pailot.get("job-tells").logs()) == [task.output().path, str(tmp_path / "elsewhere")]
    assert task.output().exists()


def test_a_record_says_more_than_an_output(here: Path, tmp_path: Path) -> None:
    task = Failing("judged")
    output = Path(task.output().path)
    output.mkdir(parents=True)
    (output / "half").write_text("")
    assert task.complete()  # somebody has made it, and no record says otherwise
    with pytest.raises(PaiJobFailed):
        task.run()
    assert not task.complete()  # its job has failed, whatever it left behind
    pailot.get("job-judged").delete()
    assert task.complete()


def test_deleting_an_output_makes_a_task_run_again(here: Path) -> None:
    done = Hello("done")
    assert build(done)
    shutil.rmtree(done.output().path)
    assert not done.complete()
    assert build(done)
    assert len(list(pailot.runs())) == 2
    assert (Path(done.output().path) / "file").read_text() == "done\n"
    pailot.get("job-done").delete()
    assert done.complete()


def test_a_job_that_leaves_its_folder_empty_is_complete_all_the_same(here: Path) -> None:
    class Silent(Hello):
        command = "true"

    assert build(Silent("silent"))
    assert Silent("silent").complete()


def test_a_job_that_has_succeeded_meanwhile_is_the_result(here: Path) -> None:
    """As where another luigi was quicker: both have asked whether it is complete, and then both run it."""
    Hello("meanwhile").run()
    Hello("meanwhile").run()
    assert len(list(pailot.runs())) == 1


def test_retries_of_luigi_and_of_the_job_add_up(here: Path) -> None:
    """Each try of luigi is a process of its own; the job is retried in the first of them only."""
    task = Failing("adds")
    scheduler = luigi.scheduler.Scheduler(retry_delay=0, retry_count=3, prune_on_get_work=True)
    with luigi.worker.Worker(
        scheduler=scheduler, worker_processes=2, keep_alive=True, wait_interval=0.01, wait_jitter=0, force_multiprocessing=True
    ) as worker:
        worker.add(task)
        worker.run()
    runs = len(list(pailot.runs(states=["FAILED"])))
    assert runs > 1  # luigi has tried again
    assert (here / "tries").read_text().count("attempt") == runs + Failing.retry_count


def test_a_folder_that_another_machine_would_write_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    class Far(Hello):
        pai_url = "https://pai.example.com/rest-server"

    class Bucket(Far):
        output_dir = "s3://bucket/x"

    class Near(Far):
        pai_url = "http://127.0.0.1:9186"

    for task in (Bucket("b"), Near("n"), Hello("h")):
        task._make_places()
    assert caplog.text == ""
    Far("f")._make_places()
    assert "job-f writes to" in caplog.text
    assert "default_fs_uri" in caplog.text


class Process(ProcessorTask):
    """A processing job; its one output is what `command` writes."""

    command = luigi.Parameter()

    def processor(self) -> Processor:
        return Processor("debian", str(self.command), session=Session(engine="local"))

    def inputs(self) -> dict[str, str]:
        return {"a": "input"}

    def outputs(self) -> dict[str, str]:
        return {"model": "$PAI_DEFAULT_FS_URI/model"}


def test_a_processor_as_a_task(here: Path, caplog: pytest.LogCaptureFixture) -> None:
    (here / "input").write_text("a line of the input\n")
    bad = Process("echo the-cause >&2; exit 7")
    with pytest.raises(PaiJobFailed, match="exited with 7") as caught:
        bad.run()
    assert (caught.value.exit_code, caught.value.last_lines[-1]) == (7, "the-cause")
    assert not bad.complete()
    good = Process('cat "$PAI_INPUT_A"; cp "$PAI_INPUT_A" "$PAI_OUTPUT_MODEL/copy"')
    told: list[Any] = []
    good.set_status_message = told.append
    with caplog.at_level("INFO", "luigi-interface"):
        good.run()
    assert ": a line of the input" in caplog.text
    assert told[-1].startswith("SUCCEEDED, 1 of 1 tasks ended")
    assert good.complete()
    assert Path(good.output()["model"].path, "copy").read_text() == "a line of the input\n"


def test_a_bucket_without_a_driver_is_said_before_anything_is_done(tmp_path: Path) -> None:
    class Bucket(Hello):
        output_dir = "s4://bucket/x"

    class Processed(Process):
        def outputs(self) -> dict[str, str]:
            return {"model": "s4://bucket/x"}

    for task in (Bucket("x"), Processed("true")):
        with pytest.raises(pailot.DataError, match="there is no driver for s4://"):
            task.run()
    assert not (tmp_path / "home" / "jobs").exists()


# Jobs as they are published: one worker, several roles


class OneWorker(PaiTask):
    name = "sklearn-example"
    image = "openpai/pai.example.sklearn"
    tasks = [TaskRole("worker", "ls code; test -d $PAI_DATA_DIR && echo $PAI_CODE_DIR; python3 bench.py", memoryMB=4096)]
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
    (here / "code" / "bench.py").write_text("print('benched')")
    assert build(OneWorker(), Distributed(), workers=2)
    assert list(pailot.get("sklearn-example").logs()) == ["bench.py", "code", "benched"]
    lines = set(pailot.get("distributed-example").logs())
    assert {"[ps:0] ps at 8080", "[ps:1] ps at 8081"} <= lines
    assert "[worker:3] worker 3 of 4" in lines


class SklearnJob(PaiTask):
    """As luigi's own test has it: a name with the time in it, an attribute that nothing reads, a command with `cd`."""

    image = "openpai/pai.example.sklearn"
    name = f"test_job_sk_{time.time()}"
    command = "cd scikit-learn/benchmarks && python bench_mnist.py"
    virtual_cluster = "spark"
    tasks = [TaskRole("test", "cd scikit-learn/benchmarks && python bench_mnist.py", memoryMB=4096)]


class Trained(PaiTask):
    """As pages about luigi write a job with code: properties, an absolute folder, a file of the code by its bare name."""

    command = luigi.Parameter()

    @property
    def name(self) -> str:
        return f"sklearn-example-{self.task_id.rpartition('_')[2]}"

    @property
    def image(self) -> str:
        return "openpai/pai.example.sklearn"

    @property
    def tasks(self) -> list[TaskRole]:
        return [TaskRole(name="train", command=str(self.command), taskNumber=1, cpuNumber=4, memoryMB=8192, gpuNumber=0)]

    @property
    def code_dir(self) -> str:
        return "$PAI_DEFAULT_FS_URI/code/sklearn-example"


class ParameterServers(PaiTask):
    """As they write one of several roles: ports by label, the roles' sizes by keywords."""

    @property
    def name(self) -> str:
        return "distributed-training"

    @property
    def image(self) -> str:
        return "openpai/pai.example.tensorflow"

    @property
    def tasks(self) -> list[TaskRole]:
        port = Port(label="grpc", begin_at=0, port_number=1)
        ps = TaskRole(name="ps", command="python train.py --role ps", taskNumber=1, memoryMB=4096, portList=[port])
        worker = TaskRole(name="worker", command="python train.py --role worker", taskNumber=2, memoryMB=8192, portList=[port])
        return [ps, worker]

    @property
    def code_dir(self) -> str:
        return "$PAI_DEFAULT_FS_URI/code/sklearn-example"

    retry_count = 2


TRAIN = """\
import os, sys
print("trained", *sys.argv[1:], bool(os.environ.get("PAI_CONTAINER_HOST_grpc_PORT_LIST")))
with open(os.path.join(os.environ["PAI_OUTPUT_DIR"], f"model-{os.environ['PAI_TASK_INDEX']}"), "w") as stream:
    stream.write("a model")
"""


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program `python`, which the examples call and which not every machine has under that name."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


@pytest.mark.usefixtures("python")
def test_the_job_of_luigis_own_test_runs(here: Path) -> None:
    """What its image has in the working directory is here a folder beside the pipeline, or brought as code."""
    for place in (here, here.parent / "elsewhere"):
        (place / "scikit-learn" / "benchmarks").mkdir(parents=True)
        (place / "scikit-learn" / "benchmarks" / "bench_mnist.py").write_text(f"print('benched {place.name}')")

    class Brought(SklearnJob):
        name = f"{SklearnJob.name}.brought"
        code_dir = str(here.parent / "elsewhere" / "scikit-learn")

    assert build(SklearnJob())
    assert list(pailot.get(SklearnJob.name).logs()) == ["benched here"]
    shutil.rmtree(here / "scikit-learn")
    assert build(Brought())
    assert list(pailot.get(Brought.name).logs()) == ["benched elsewhere"]
    assert SklearnJob().complete()
    assert Brought().complete()


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize(
    "command",
    ["python train.py", "cd sklearn-example && python train.py", "python sklearn-example/train.py", "cd $PWD; python train.py"],
)
def test_code_is_found_as_pages_about_luigi_write_it(here: Path, tmp_path: Path, command: str) -> None:
    code = tmp_path / "home" / "fs" / "code" / "sklearn-example"
    code.mkdir(parents=True)
    (code / "train.py").write_text(TRAIN)
    task = Trained(command)
    assert build(task)
    assert list(pailot.get(task.name).logs()) == ["trained False"]
    assert (Path(task.output().path) / "model-0").read_text() == "a model"
    assert os.listdir(here) == []  # code is no business of the directory that luigi was started in
    assert os.listdir(code) == ["train.py"]


@pytest.mark.usefixtures("python")
def test_several_roles_run_as_pages_about_luigi_write_them(tmp_path: Path) -> None:
    code = tmp_path / "home" / "fs" / "code" / "sklearn-example"
    code.mkdir(parents=True)
    (code / "train.py").write_text(TRAIN)
    assert build(ParameterServers())
    said = sorted(pailot.get("distributed-training").logs())
    assert said == [
        "[ps:0] trained --role ps True",
        "[worker:0] trained --role worker True",
        "[worker:1] trained --role worker True",
    ]
    assert ParameterServers().complete()


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
