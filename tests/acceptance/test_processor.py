"""Processing jobs, for real, on this machine."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import pailot
from pailot.engines.preparation import sandbox
from pailot.processor import (
    Channel,
    DatasetConfig,
    ExperimentConfig,
    FileSystemInput,
    MetricDefinition,
    Processor,
    ResourceType,
    Session,
    SpotSpec,
    SpotStrategy,
    TrainingJob,
    TrainingJobStatus,
    UnexpectedStatusException,
    UserVpcConfig,
    get_default_session,
    setup_default_session,
)

from ..parts import meeting
from ..parts.git_server import git_server
from ..parts.wheels import wheel

ROOT = Path(__file__).parents[2]
LOCAL = Session(engine="local")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PAILOT_SERVER", "PAILOT_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def without(folder: Path, *programs: str) -> str:
    """A folder with all programs of the PATH but these."""
    folder = folder / "bin"
    folder.mkdir()
    for place in os.environ["PATH"].split(":"):
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if name not in programs and not (folder / name).is_symlink():
                (folder / name).symlink_to(Path(place, name))
    return str(folder)


def processor(command: str | list[str], **more: Any) -> Processor:
    return Processor("python:3.12", command, **{"session": LOCAL, "instance_type": "local", **more})


def printed(job: TrainingJob) -> dict[str, str]:
    """What `env` printed."""
    return dict(line.split("=", 1) for line in job.logs(0) if "=" in line)


def test_the_contract(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "code" / "data").mkdir(parents=True)
    (here / "code" / "main.sh").write_text('pwd; cat "$1"; ls -A; cat "$PAI_CONFIG_DIR/hyperparameters.json"; env\n')
    (here / "code" / ".gitignore").write_text("data/\n*.log\n")
    (here / "code" / "data" / "large").write_text("x")
    (here / "code" / "run.log").write_text("x")
    (here / "set").mkdir()
    (here / "set" / "one").write_text("1\n")
    made = processor(
        'sh main.sh "$PAI_INPUT_A_SET/one"; echo result >"$PAI_OUTPUT_MODEL/file"',
        source_dir="code",
        parameters={"learning-rate": 0.1, "flag": True, "list": [1, 2]},
        environments={"MINE": "with space"},
        labels={"team": "vision"},
    )
    job = made.run(inputs={"a-set": "set", "file": here / "set" / "one"}, outputs={"model": "out/model"})
    assert job.status == TrainingJobStatus.Succeed
    assert (here / "out" / "model" / "file").read_text() == "result\n"
    out = capsys.readouterr().out
    base = "/ml" if sandbox.works() else str(Path(job.console_uri) / "attempts/0/ml")
    assert out.startswith(f"{base}/usercode\n1\n.gitignore\nmain.sh\n")
    assert json.dumps({"learning-rate": "0.1", "flag": "True", "list": "[1, 2]"}) in out
    found = printed(job)
    assert found["PAI_WORKING_DIR"] == f"{base}/usercode/"
    assert found["PAI_INPUT_A_SET"] == f"{base}/input/data/a-set/"
    assert found["PAI_INPUT_FILE"] == f"{base}/input/data/file/one"
    assert found["PAI_OUTPUT_MODEL"] == f"{base}/output/model/"
    assert found["PAI_HPS_LEARNING_RATE"] == "0.1"
    assert found["PAI_USER_ARGS"] == "--learning-rate 0.1 --flag True --list [1, 2]"
    assert json.loads(found["PAI_HPS"])["flag"] == "True"
    assert found["PAI_TRAINING_JOB_ID"] == job.training_job_id
    assert (found["MINE"], found["RANK"], found["WORLD_SIZE"], found["NPROC_PER_NODE"]) == ("with space", "0", "1", "1")
    assert made.latest_job is job
    assert made.get_outputs_data() == {"model": "out/model/"}
    assert TrainingJob.get(job.id, LOCAL) == job
    assert TrainingJob.list(session=LOCAL, labels={"team": "vision"}) == [job]
    assert TrainingJob.list(session=LOCAL, labels={"team": "other"}) == []
    assert TrainingJob.list("Failed", LOCAL) == []
    assert job.describe()["HyperParameters"][0] == {"Name": "learning-rate", "Value": "0.1"}
    assert pickle.loads(pickle.dumps(job)).status == "Succeed"
    assert job.training_job_name in job._repr_html_()
    job.delete()
    with pytest.raises(pailot.NoSuchRun):
        TrainingJob.get(job.id, LOCAL)


def test_a_command_is_run_exactly_as_it_is(here: Path) -> None:
    job = processor(["printf", "%s|", "a b", "$HOME", "<% $parameters.x %>", "'", "", "é\n*", "-n"]).run(show_logs=False)
    assert list(job.logs()) == ["a b|$HOME|<% $parameters.x %>|'||é", "*|-n|"]
    relaxed = processor("false; echo $unset; cat /nowhere | cat; true").run(show_logs=False)
    assert relaxed.is_succeeded()


@pytest.mark.parametrize(
    ("job_type", "names"),
    [
        ("PyTorchJob", ["MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "NPROC_PER_NODE"]),
        ("TFJob", ["TF_CONFIG"]),
        ("XGBoostJob", ["DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"]),
        ("MPIJob", ["PAI_HOSTFILE"]),
    ],
)
def test_instances_find_each_other(job_type: str, names: list[str]) -> None:
    job = processor('env; cat "${PAI_HOSTFILE:-/dev/null}"', job_type=job_type, instance_count=2).run(show_logs=False)
    found = printed(job)
    assert set(names) <= set(found)
    ranks = {line for index in (0, 1) for line in job.logs(index) if line.startswith("RANK=")}
    assert ranks == {"RANK=0", "RANK=1"}
    if job_type == "TFJob":
        told = json.loads(found["TF_CONFIG"])
        assert len(told["cluster"]["worker"]) == 2
        assert told["task"] == {"type": "worker", "index": 0}
    if job_type == "MPIJob":
        assert [line for line in job.logs(0) if line.endswith("slots=1")] == ["127.0.0.1 slots=1"] * 2


@pytest.mark.parametrize("mounted", [True, False])
def test_each_instance_has_a_place_of_its_own(here: Path, mounted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if mounted and not sandbox.works():
        pytest.skip("bubblewrap does not work here: sudo apt-get install bubblewrap")
    if not mounted:
        monkeypatch.setenv("PATH", without(here, "bwrap"))
    (here / "code").mkdir()
    (here / "code" / "meet.py").write_text(meeting.PROGRAM)
    (here / "code" / "given").write_text("code")
    with pytest.warns(UserWarning, match="not kept: /ml/output/mine; what is kept: /ml/output/model"):
        job = processor("python3 meet.py", source_dir="code", instance_count=3).run(outputs={"model": "model"}, show_logs=False)
    assert {index: list(job.logs(index)) for index in range(3)} == meeting.expected(3)
    assert sorted(path.name for path in (here / "model").iterdir()) == ["0", "1", "2"]


def test_what_did_not_succeed_is_never_taken_for_success() -> None:
    failing = processor("echo the-cause >&2; exit 4")
    with pytest.raises(UnexpectedStatusException) as caught:
        failing.run(show_logs=False)
    error = caught.value
    assert (error.status, error.exit_code, error.last_lines) == ("Failed", 4, ("the-cause",))
    assert "exited with 4" in error.reason_message
    assert failing.latest_job is not None
    assert failing.latest_job.reason_code == "ExitCode4"
    assert pickle.loads(pickle.dumps(error)).status == "Failed"
    slow = processor("sleep 1000").run(wait=False)
    with pytest.raises(TimeoutError):
        slow.wait(timeout=0.05)
    with pytest.raises(TimeoutError):
        slow.wait(timeout=0.05, show_logs=False)
    slow.stop()
    with pytest.raises(UnexpectedStatusException, match="Terminated"):
        slow.wait()
    limited = processor("sleep 1000", max_run_time=1)
    with pytest.raises(UnexpectedStatusException, match="longer than its limit"):
        limited.run()
    with pytest.raises(UnexpectedStatusException, match="Failed"):
        limited.wait(all_jobs=True)


def test_all_jobs_are_waited_for_before_one_is_complained_about() -> None:
    made = processor('[ "$PAI_HPS_N" = 2 ] || exit "$PAI_HPS_N"')
    for number in (1, 2, 3):
        made.parameters = {"n": number}
        made.run(wait=False)
    with pytest.raises(UnexpectedStatusException, match="exited with 1") as caught:
        made.wait(all_jobs=True, show_logs=False)
    assert [line.partition(" ")[2] for line in caught.value.__notes__] == [
        "is Failed: worker:0 exited with 3, and 1 failed task of 'worker' fails the job (minFailedInstances: 1)"
    ]
    assert [job.status for job in made._jobs] == ["Failed", "Succeed", "Failed"]


STARTER = """
import os, sys
from pailot.processor import Processor, Session
job = Processor("image", sys.argv[1], session=Session(engine="local")).run(wait=False)
print(job.id, flush=True)
sys.stdout.reconfigure(line_buffering=True)
job.wait()
"""


def started(command: str) -> tuple[subprocess.Popen[str], str]:
    """A program that has started a job and waits for it."""
    words = [sys.executable, "-c", STARTER, command]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    program = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert program.stdout
    name = program.stdout.readline().strip()
    assert program.stdout.readline() == "begun\n"
    return program, name


def test_a_wait_that_is_interrupted_leaves_the_job_running(here: Path) -> None:
    os.mkfifo(here / "gate")
    program, name = started(f"echo begun; read line <{here}/gate; echo $line")
    program.send_signal(signal.SIGINT)
    _, err = program.communicate()
    assert f"{name} goes on" in err
    assert "KeyboardInterrupt" in err
    job = TrainingJob.get(name, LOCAL)
    assert not job.is_completed()
    (here / "gate").write_text("went on\n")
    job.wait(show_logs=False)
    assert list(job.logs()) == ["begun", "went on"]


def test_a_job_whose_starter_was_killed_is_found_again(here: Path) -> None:
    os.mkfifo(here / "gate")
    program, name = started(f"echo begun; read line <{here}/gate; echo $line; exit 5")
    program.kill()
    program.communicate()
    job = TrainingJob.get(name, LOCAL)
    assert job.status == TrainingJobStatus.Running
    (here / "gate").write_text("went on\n")
    with pytest.raises(UnexpectedStatusException) as caught:
        job.wait(show_logs=False)
    assert (caught.value.exit_code, caught.value.last_lines) == (5, ("begun", "went on"))
    assert [each["Status"] for each in job.describe()["StatusTransitions"]] == ["Submitted", "Running", "Failed"]


def test_a_job_whose_input_is_on_its_way_is_being_initialised(here: Path) -> None:
    asked, answer = Event(), Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.set()
            answer.wait()
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"data")

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        made = processor('cat "$PAI_INPUT_A"')
        inputs = {"a": f"http://127.0.0.1:{server.server_port}/file"}
        starting = Thread(target=lambda: made.run(inputs, show_logs=False))  # it answers when the job has started
        starting.start()
        asked.wait()
        (job,) = TrainingJob.list(session=LOCAL)
        assert job.status == TrainingJobStatus.Initializing
        assert TrainingJob.list(TrainingJobStatus.Initializing, LOCAL) == [job]
        answer.set()
        starting.join()
        server.shutdown()
    job.wait(show_logs=False)
    assert "".join(job.logs()) == "data"


def test_runs_in_threads_and_processes(here: Path) -> None:
    made = processor('echo "$PAI_TRAINING_JOB_ID" >"$PAI_OUTPUT_O/name"', output_path=str(here / "out"))
    made.set_output_channels([Channel("o")])
    with ThreadPoolExecutor(8) as threads:
        names = list(threads.map(lambda _: made.run(show_logs=False).id, range(12)))
    with get_context("spawn").Pool(2) as pool:
        names += pool.map(in_another_process, [made] * 4)
    assert len(set(names)) == 16
    assert sorted(path.read_text().strip() for path in (here / "out").glob("*/o/name")) == sorted(names)


def in_another_process(made: Processor) -> str:
    return made.run(show_logs=False).id


def test_an_output_is_there_only_when_it_is_whole(here: Path) -> None:
    with pytest.raises(UnexpectedStatusException):
        processor("echo half >$PAI_OUTPUT_MODEL/half; exit 1").run(outputs={"model": "model"})
    assert not (here / "model").exists()
    (here / "model").mkdir()
    (here / "model" / "kept").write_text("mine")
    processor("echo new >$PAI_OUTPUT_MODEL/new").run(outputs={"model": f"file://{here}/model"})
    assert {path.name for path in (here / "model").iterdir()} == {"kept", "new"}


def test_where_outputs_go(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = "echo x >$PAI_OUTPUT_M/x"
    places = {}
    monkeypatch.setenv("PAILOT_EXPERIMENTS", json.dumps({"exp-1": str(here / "experiment")}))
    cases: dict[str, dict[str, Any]] = {
        "path": {"output_path": str(here / "path"), "experiment_config": ExperimentConfig("exp-1")},
        "experiment": {"experiment_config": ExperimentConfig("exp-1")},
        "storage/pai/processing_job": {"session": Session(engine="local", storage=here / "storage")},
    }
    for base, more in cases.items():
        made = processor(command, base_job_name="my job", **more)
        made.set_output_channels([Channel("m")])
        made.run(show_logs=False)
        places[base] = made.get_outputs_data()["m"]
        name = made.latest_job.training_job_name if made.latest_job else ""
        assert places[base] == f"{here}/{base}/{name}/m/"
        assert name.startswith("my_job_2")
        assert Path(places[base], "x").exists()


def test_remote_channels_and_mounts(here: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "nas" / "deep").mkdir(parents=True)
    (tmp_path / "nas" / "deep" / "file").write_text("from nas")
    monkeypatch.setenv("PAILOT_MOUNTS", json.dumps({"0a1b": str(tmp_path / "nas"), "d-12345678": str(tmp_path / "set")}))
    (tmp_path / "set").mkdir()
    with zipfile.ZipFile(here / "archive.zip", "w") as archive:
        archive.writestr("inner.txt", "from zip")
    made = processor('cat "$PAI_INPUT_NAS/file" "$PAI_INPUT_ZIPPED"; echo x >"$PAI_OUTPUT_DATA/result"')
    made.run(
        inputs={"nas": FileSystemInput("0a1b", "deep"), "zipped": f"zip://inner.txt::file://{here}/archive.zip"},
        outputs={"data": DatasetConfig("d-12345678")},
    )
    assert made.latest_job is not None
    assert "".join(made.latest_job.logs()) == "from nasfrom zip"
    assert made.get_outputs_data() == {"data": "d-12345678"}
    assert (tmp_path / "set" / "result").exists()


def test_metrics_are_read_from_the_logs() -> None:
    made = processor("echo loss=2.5; echo loss=1e-1")
    made.metric_definitions = [MetricDefinition("loss", r"loss=(\S+)")]
    assert made.run().metrics() == {"loss": [2.5, 0.1]}
    job = processor("echo loss=$RANK and more", instance_count=2).run()
    assert job.metrics([MetricDefinition("loss", r"^loss=(\d)")]) == {"loss": [0.0, 1.0]}
    with pytest.raises(pailot.PailotError, match="the metric 'word': 'more' is no number"):
        job.metrics([MetricDefinition("word", r"more$")])
    made.metric_definitions = [MetricDefinition("broken", "(")]
    with pytest.raises(ValueError, match="the regular expression of 'broken'"):
        made.run()


def test_what_has_no_meaning_here_is_named() -> None:
    made = processor(
        "true",
        spot_spec=SpotSpec(SpotStrategy.SpotAsPriceGo),
        user_vpc_config=UserVpcConfig("vpc", "group"),
        resource_type=ResourceType.Lingjun,
        settings={"AIMasterType": "x", "Priority": 9},
        experiment_config=ExperimentConfig("unknown"),
    )
    with pytest.warns(UserWarning, match="without effect here") as caught:
        made.run()
    words = " ".join(str(each.message) for each in caught)
    for name in ("spot_spec", "user_vpc_config", "resource_type", "AIMasterType", "Priority", "experiment_config"):
        assert words.count(name) == 1
    assert "image_uri" not in words
    assert made.latest_job is not None
    assert made.latest_job.run.job.extras.hived is not None
    assert made.latest_job.run.job.extras.hived.priority == "crit"


def test_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_default_session().engine is None
    try:
        assert setup_default_session(engine="local", storage="x") is get_default_session()
    finally:
        monkeypatch.setattr("pailot.processor.session._default", None)
    with pytest.raises(ValueError, match="an engine or a server"):
        Session(engine="local", server="http://x")
    with pytest.warns(UserWarning, match="without effect here: access_key_id, access_key_secret;") as caught:
        made = Session(region_id="cn-hangzhou", oss_bucket_name="b", access_key_id="an-id", access_key_secret="a-secret")
    assert "a-secret" not in f"{caught[0].message} {made!r} {made.__dict__}"
    assert made.storage_uri() == "oss://b/pai/processing_job"
    with pytest.raises(TypeError, match="a session has no 'engin'"):
        Session(engin="local")


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_code_from_git(here: Path) -> None:
    (here / "repo" / "src").mkdir(parents=True)
    (here / "repo" / "src" / "version").write_text("one")
    git(here / "repo", "init", "-q", "-b", "main")
    git(here / "repo", "add", ".")
    git(here / "repo", "commit", "-qm", "one")
    first = git(here / "repo", "rev-parse", "HEAD")
    (here / "repo" / "src" / "version").write_text("two")
    git(here / "repo", "commit", "-qam", "two")
    repo = {"repo": f"file://{here}/repo", "branch": "main", "source_dir": "src"}
    for source, wanted in ((repo, "two"), ({**repo, "commit": first}, "one")):
        job = processor("cat version", source_dir=source).run(show_logs=False)
        assert list(job.logs()) == [wanted]
    with pytest.raises(pailot.PailotError, match="cannot be fetched"):
        processor("true", source_dir={"repo": f"file://{here}/nothing"}).run()
    with pytest.raises(ValueError, match="'repo' is missing"):
        processor("true", source_dir={"branch": "x"}).run()


def test_a_token_for_git_is_nowhere_to_be_seen(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = "t0ken-%-of-mine"
    (here / "repo").mkdir()
    (here / "repo" / "version").write_text("one")
    git(here / "repo", "init", "-q", "-b", "main")
    git(here / "repo", "add", ".")
    git(here / "repo", "commit", "-qm", "one")
    monkeypatch.setenv("GIT_TRACE_CURL", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    with git_server(here, "x-access-token", token) as server:
        url = f"{server.url}/repo/.git"
        inline = url.replace("://", f"://x-access-token:{token.replace('%', '%25')}@")
        for source in ({"repo": url, "token": token}, {"repo": inline, "branch": "main"}):
            job = processor("cat version; ls -A", source_dir=source).run(show_logs=False)
            assert list(job.logs()) == ["oneversion"]
            assert json.dumps(job.describe()).count(url) == 1
        for wrong in ({"repo": url, "token": "no-such-token"}, {"repo": inline.replace("mine", "no-such-token")}, {"repo": url}):
            with pytest.raises(ValueError, match=f"the code of {url} cannot be fetched") as caught:
                processor("true", source_dir=wrong).run()
            assert "no-such-token" not in str(caught.value)
    for line in server.command_lines:
        assert b"t0ken" not in line
    assert server.command_lines
    seen = subprocess.run(["grep", "-r", "t0ken", str(tmp_path)], capture_output=True, check=False)
    assert (seen.returncode, seen.stdout) == (1, b"")
    with pytest.raises(ValueError, match="a token or password is for repositories at https://"):
        processor("true", source_dir={"repo": "git@example.com:a/b.git", "token": token}).run()
    with pytest.raises(ValueError, match="commit should be a text, and no option"):
        processor("true", source_dir={"repo": url, "commit": "--upload-pack=touch x"}).run()


def test_requirements_go_into_an_environment_of_their_own(here: Path) -> None:
    for version in ("1.0", "2.0"):
        wheel(here / "wheels", "pailot_probe", version)
    (here / "code").mkdir()
    (here / "code" / "requirements.txt").write_text("pailot_probe==1.0\n")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(here / "wheels")}
    command = "python -c 'import pailot_probe; print(pailot_probe.version)'"
    file_only = processor(command, source_dir="code", environments=offline).run(show_logs=False)
    assert list(file_only.logs())[-1] == "1.0"
    both = {"source_dir": "code", "requirements": ["pailot_probe==2.0"], "environments": offline}
    assert list(processor(command, **both).run(show_logs=False).logs())[-1] == "2.0"
    with pytest.raises(UnexpectedStatusException) as caught:
        processor("echo never", requirements=["pailot_probe==3.0"], environments=offline).run(show_logs=False)
    assert caught.value.last_lines[-1] == "the requirements could not be installed"
    with pytest.raises(ModuleNotFoundError):
        __import__("pailot_probe")


def test_requirements_that_only_the_task_can_tell(here: Path, tmp_path: Path) -> None:
    """The file in code that is fetched, and one that names others: what these hold may change."""
    wheel(here / "wheels", "pailot_probe", "1.0")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(here / "wheels")}
    command = "python -c 'import pailot_probe; print(pailot_probe.version)'"
    (here / "code").mkdir()
    (here / "code" / "requirements.txt").write_text("pailot_probe\n")
    shutil.make_archive(str(here / "packed"), "gztar", here / "code")
    fetched = processor(command, source_dir=f"local://{here}/packed.tar.gz", environments=offline).run(show_logs=False)
    assert list(fetched.logs())[-1] == "1.0"
    without = processor("ls", source_dir=f"local://{here}/wheels", environments=offline).run(show_logs=False)
    assert list(without.logs()) == ["pailot_probe-1.0-py3-none-any.whl"]
    (here / "code" / "requirements.txt").write_text("-r others.txt\n")
    (here / "code" / "others.txt").write_text("pailot_probe==2.0\n")
    wheel(here / "wheels", "pailot_probe", "2.0")
    job = processor(command, source_dir="code", environments=offline).run(show_logs=False)
    assert list(job.logs())[-1] == "2.0"
    assert len([each for each in (tmp_path / "cache/pailot/environments").iterdir() if each.is_dir()]) == 1


def test_parameters_as_they_arrive(here: Path) -> None:
    values = {
        "text": "a b 'c' \"d\"\n<% x %> $HOME",
        "flag": False,
        "none": None,
        "deep": {"a": [1, 2]},
        "é": "日本",
        "long": "x" * 200_000,
    }
    (here / "show.py").write_text(
        "import json, os\n"
        "given = json.load(open(os.environ['PAI_CONFIG_DIR'] + 'hyperparameters.json'))\n"
        "found = {key: value for key, value in os.environ.items() if key.startswith(('PAI_HPS', 'PAI_USER_ARGS'))}\n"
        "json.dump([given, found], open(os.environ['PAI_OUTPUT_SEEN'] + 'seen.json', 'w'))\n"
    )
    with pytest.warns(UserWarning, match="left out.*: PAI_HPS, PAI_USER_ARGS, PAI_HPS_LONG"):
        processor("python3 show.py", source_dir="show.py", parameters=values).run(outputs={"seen": "seen"})
    given, found = json.loads((here / "seen" / "seen.json").read_text())
    assert given == {key: str(value) for key, value in values.items()}
    assert found == {
        "PAI_HPS_TEXT": values["text"],
        "PAI_HPS_FLAG": "False",
        "PAI_HPS_NONE": "None",
        "PAI_HPS_DEEP": "{'a': [1, 2]}",
        "PAI_HPS__": "日本",
    }
    with pytest.warns(UserWarning, match="'a-b' and 'a_b' have one variable, PAI_HPS_A_B"):
        processor("true", parameters={"a-b": 1, "a_b": 2}).run()


def test_an_image_that_is_not_used_is_named_unless_the_engine_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(UserWarning, match="image_uri"):
        Processor("python:3.12", "true", session=Session()).run()


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "no command": (lambda: processor("").run(), "command should be"),
    "no such folder": (lambda: processor("x", source_dir="nowhere").run(), "source_dir does not exist: nowhere"),
    "missing input": (lambda: processor("x").run(inputs={"a": "missing"}), "the input 'a' does not exist: .*missing"),
    "bad channel name": (lambda: processor("x").run(inputs={"a b": "."}), "the input channel 'a b' has a bad name"),
    "no driver": (lambda: processor("x").run(inputs={"a": "s3://bucket/key"}), "driver for s3:// is not installed: pip install"),
    "no driver for the output": (lambda: processor("x").run(outputs={"a": "oss://b/k"}), r"pip install '.*\[oss\]'"),
    "unknown scheme": (lambda: processor("x").run(inputs={"a": "gopher://x"}), "there is no driver for gopher://"),
    "table": (lambda: processor("x").run(inputs={"a": "odps://p/tables/t"}), "tables are not supported"),
    "not mounted": (lambda: processor("x").run(inputs={"a": FileSystemInput("77")}), "the table mounts"),
    "data set": (lambda: processor("x").run(inputs={"a": "d-abcdef12"}), "is the data set d-abcdef12"),
    "password": (
        lambda: processor("x").run(inputs={"a": "https://me:pass@host/x"}),
        r"https://me:…@host/x\) has a password in it",
    ),
    "web output": (lambda: processor("x").run(outputs={"a": "http://x/y"}), "cannot be written to http://x/y"),
    "instance type": (lambda: processor("x", instance_type="ecs.unknown").run(), "instance type 'ecs.unknown' is not known"),
    "instance count": (lambda: processor("x", instance_count=0).run(), "instance_count should be a whole number from 1"),
    "instance count as a flag": (lambda: processor("x", instance_count=True).run(), "instance_count should be a whole number"),
    "time as a text": (lambda: processor("x", max_run_time="5").run(), "max_run_time should be a number of seconds"),
    "no program": (lambda: processor(["", "x"]).run(), "begins with a program"),
    "long command": (lambda: processor("x" * 200_000).run(), "command is longer than"),
    "nul": (lambda: processor("x", parameters={"a": "\0"}).run(), "parameters: 'a' holds a NUL"),
    "half a character": (lambda: processor("x", environments={"a": "\ud800"}).run(), "environments: 'a' holds half"),
    "parameter": (lambda: processor("x", parameters={1: 2}).run(), "1 is not the name of a parameter"),
    "parameters": (lambda: processor("x", parameters=["a"]), "parameters should be a mapping"),
    "inputs": (lambda: processor("x").run(inputs=["a"]), "inputs should be a mapping"),  # type: ignore[arg-type]  # that is the test
    "label": (lambda: processor("x", labels={"a": 1}).run(), "labels should be texts"),
    "requirements": (lambda: processor("x", requirements="numpy"), "requirements should be a list"),
    "spot": (lambda: processor("x", spot_spec={"a": 1}).run(), "spot_spec should be a SpotSpec"),
    "long variable": (lambda: processor("x", environments={"a": "b" * 200_000}).run(), "that a variable can have"),
    "long name": (lambda: processor("x", base_job_name="n" * 300).run(), "base_job_name has more than 200"),
    "variable": (lambda: processor("x", environments={"a-b": "c"}).run(), "'a-b' cannot be the name of a variable"),
    "priority": (lambda: processor("x", settings={"Priority": 11}).run(), "from 1 to 9"),
    "resource type": (lambda: processor("x", resource_type="Moon"), "no resource type 'Moon'"),
    "engine": (lambda: processor("x", session=Session(engine="abacus")).run(), "no engine 'abacus'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_before_anything_is_done(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, words = BAD[case]
    from fsspec.registry import _registry as known  # those that were loaded before

    for driver, scheme in (("s3fs", "s3"), ("ossfs", "oss")):  # as where they are not installed
        monkeypatch.setitem(sys.modules, driver, None)
        monkeypatch.delitem(known, scheme, raising=False)
    with pytest.raises(pailot.PailotError, match=words):
        work()
    assert not (tmp_path / "home").exists()


def test_declared_channels(tmp_path: Path) -> None:
    made = processor("x")
    made.set_input_channels([Channel("train", required=True), Channel("test")])
    made.set_output_channels([Channel("model")])
    with pytest.raises(ValueError, match="no input channel 'trian'; did you mean 'train'"):
        made.run(inputs={"trian": "."})
    with pytest.raises(ValueError, match="no output channel 'x'"):
        made.run(inputs={"train": "."}, outputs={"x": "y"})
    with pytest.raises(ValueError, match="'train' is required"):
        made.run()
    with pytest.raises(RuntimeError, match="call run first"):
        made.get_outputs_data()
    with pytest.raises(RuntimeError, match="call run first"):
        made.wait()
    assert not (tmp_path / "home").exists()


def test_a_machine_type_means_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"mine": {"cpu": 1, "memoryMB": 300}, "broken": {"cpu": 1}}
    monkeypatch.setenv("PAILOT_INSTANCE_TYPES", json.dumps(table))
    job = processor("true", instance_type="mine").run()
    assert job.run.job.task_roles["worker"].resources.memory_mb == 300
    with pytest.raises(ValueError, match="should have cpu, memoryMB, gpu"):
        processor("true", instance_type="broken").run()


def test_names_are_unique() -> None:
    made = processor("true")
    assert len({made._gen_job_display_name() for _ in range(200)}) == 200


def test_a_command_that_names_ml_is_warned_about_where_it_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "works", lambda: False)
    with pytest.warns(UserWarning, match="/ml"):
        processor("ls /ml/output || true").run()


def test_the_example_trains_a_model(here: Path) -> None:
    shutil.copytree(ROOT / "examples" / "processor", here / "example")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PAILOT_ENGINE": "local"}
    command = [sys.executable, "run.py"]
    done = subprocess.run(command, cwd=here / "example", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads((here / "example" / "results" / "model" / "report.json").read_text())
    assert report["accuracy"] > 0.8
    assert "accuracy" in done.stdout


def test_both_documented_places_of_outputs_are_the_same(here: Path) -> None:
    if not sandbox.works():
        pytest.skip("without bubblewrap there is no /ml")
    command = "echo a >/ml/outputs/data/model/a; echo b >/ml/output/model/b"
    for count in (1, 2):
        processor(command, instance_count=count).run(outputs={"model": f"kept{count}"}, show_logs=False)
        assert sorted(path.name for path in (here / f"kept{count}").iterdir()) == ["a", "b"]


@pytest.mark.parametrize("outputs", [{"model": "kept"}, {}])
def test_what_is_left_elsewhere_below_ml_is_named(here: Path, outputs: dict[str, str]) -> None:
    command = 'cd "$PAI_WORKING_DIR/.."; echo x >output/lost; mkdir -p result; echo y >result/deep; echo z >usercode/scratch'
    with pytest.warns(UserWarning, match="left below /ml and not kept: ") as caught:
        processor(command).run(outputs=outputs, show_logs=False)
    words = str(caught[-1].message)
    assert "/ml/output/lost" in words
    assert "/ml/result/deep" in words
    assert "scratch" not in words


def test_what_subclasses_do_otherwise_is_done(here: Path) -> None:
    class Mine(Processor):
        def _gen_job_display_name(self, job_name: str | None = None) -> str:
            return "my job: 1"

        def _build_algorithm_spec(self, code_input: Any) -> Any:
            return super()._build_algorithm_spec(code_input).replace(command=["sh", "-c", "cat $PAI_INPUT_A >$PAI_OUTPUT_B/it"])

        def build_inputs(self, inputs: Any, input_channels: Any, default_inputs: Any = None) -> list[dict[str, Any]]:
            made = super().build_inputs(inputs, input_channels, default_inputs)
            assert made == [{"Name": "a", "InputUri": "first"}]
            return [{"Name": "a", "InputUri": "second"}]

        def _training_job_base_output(self, job_name: str) -> str:
            assert job_name == "my_job__1"
            return "results"

    (here / "first").write_text("first")
    (here / "second").write_text("second")
    made = Mine("image", "false", session=LOCAL)
    made.set_output_channels([Channel("b")])
    job = made.run({"a": "first"}, show_logs=False)
    assert job.training_job_name == "my_job__1"
    assert (here / "results" / "b" / "it").read_text() == "second"
    assert job.to_dict()["OutputChannels"] == [{"Name": "b", "OutputUri": "results/b/"}]
    assert job.to_dict()["Status"] == "Succeed"
    assert None not in job.to_dict().values()
    assert made.build_outputs("x", [Channel("b")], {"b": "elsewhere"}) == [{"Name": "b", "OutputUri": "elsewhere"}]


def test_that_requirements_are_being_installed_is_said(here: Path) -> None:
    wheel(here / "wheels", "pailot_probe", "1.0")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(here / "wheels")}
    made = processor("true", requirements=["pailot_probe"], environments=offline)
    assert "installing the requirements" in str(made.run(show_logs=False).run.logs())
    assert "installing the requirements" not in str(made.run(show_logs=False).run.logs())  # they are there already
