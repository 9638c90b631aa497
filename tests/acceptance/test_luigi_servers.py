"""Luigi tasks against servers: a Pailot, and what answers as genuine OpenPAIs do, with version 2 and with version 1 only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import luigi
import pytest
from luigi.configuration import get_config

import pailot
from pailot.client.api import Client as Wire
from pailot.luigi import PaiJobFailed, ProtocolTask, auth, backends, openpai_v1, slot_to_dict, tasks
from pailot.views import connections

from ..support import luigi_tasks
from ..support.luigi_tasks import Failing, Hello, build, configure, wait_for_file
from ..support.servers import PASSWORD, Server
from .genuine import Genuine
from .test_luigi import Distributed, OneWorker

here = luigi_tasks.here
SECONDS = 240


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(
        tmp_path_factory.mktemp("server"),
        PAILOT_V1_SUCCEEDED_STATE="SUCCEED",
        PAILOT_VIRTUAL_CLUSTERS="default:cpus=8:memory_mb=32000,gpu-cluster:cpus=8:memory_mb=32000",
        PAILOT_CPUS="64",
        PAILOT_MEMORY_MB="128000",
    )
    yield started
    started.close()


@pytest.fixture
def old(server: Server) -> Iterator[Genuine]:
    with Genuine(server, version=1) as started:
        yield started


@pytest.fixture
def cluster(server: Server) -> Iterator[Genuine]:
    with Genuine(server, version=2) as started:
        yield started


@pytest.fixture(params=["server", "cluster", "old"])
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(openpai_v1, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(connections, "POLL_SECONDS", 0.05)
    configure(pai_url=request.getfixturevalue(request.param).url, username="admin", password=PASSWORD)
    return str(request.param)


class Writes(Hello):
    command = 'echo "$PAI_JOB_NAME"; mkdir -p "$PAI_OUTPUT_DIR"; echo done >"$PAI_OUTPUT_DIR/file"'


def test_a_name_with_a_dot_as_in_luigis_own_documentation(server: Server) -> None:
    configure(pai_url=server.url, username="admin", password=PASSWORD)

    class Dotted(Hello):
        name = "test_job_sk_1731900000.25"

    assert build(Dotted())
    assert Dotted().complete()
    assert (Path(Dotted().output().path) / "file").read_text() == "done\n"
    (Path(Dotted().output().path) / "file").unlink()
    Path(Dotted().output().path).rmdir()
    assert not Dotted().complete()
    assert build(Dotted())  # as test_job_sk_1731900000.25-r2
    with Wire(server.url) as wire:
        wire.login("admin", PASSWORD)
        assert wire.record("admin~test_job_sk_1731900000.25-r2")["state"] == "SUCCEEDED"


def test_a_job_that_has_succeeded_meanwhile_is_the_result(where: str, server: Server) -> None:
    first, second = Writes(f"meanwhile-{where}"), Writes(f"meanwhile-{where}")
    first.run()
    second.run()
    with Wire(server.url) as wire:
        wire.login("admin", PASSWORD)
        assert [each["name"] for each in wire.jobs(keyword=f"meanwhile-{where}")] == [f"job-meanwhile-{where}"]


@pytest.mark.parametrize("shared", [False, True])
def test_the_documented_pipeline_runs_on_a_server_as_it_stands(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    """Each of its files as the page shows them, and luigi's configuration with a server in it."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "luigi.md").read_text()
    here = tmp_path / f"pipeline-{shared}"
    here.mkdir()
    for name in ("pipeline.py", "count.yaml"):
        (here / name).write_text(page.partition(f"title={name}\n")[2].partition("```")[0])
    (here / "luigi.cfg").write_text(f"[OpenPai]\npai_url = {server.url}\npassword = {PASSWORD}\n")
    environment = {**os.environ, "PAILOT_HOME": str(tmp_path / "clients-home")}
    if shared:
        (tmp_path / "shared").mkdir()
        environment["PAILOT_DEFAULT_FS_URI"] = str(tmp_path / "shared")
        for name, job in (("pipeline.py", "prepare"), ("count.yaml", "count")):  # the server has seen these names
            text = (here / name).read_text()
            (here / name).write_text(
                text.replace(f'name = "{job}"', f'name = "{job}-shared"').replace(f"name: {job}", f"name: {job}-shared")
            )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "pipeline.py"], cwd=here, env=environment, capture_output=True, text=True, check=False
    )
    base = tmp_path / "shared" / "prepare-shared" if shared else tmp_path / "clients-home" / "fs" / "prepare"
    assert (base / "output" / "numbers").read_text() == "".join(f"{number}\n" for number in range(1, 11)), done.stderr
    assert done.returncode == 0


def test_an_output_on_the_servers_machine_is_left_to_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, server: Server
) -> None:
    far = backends.There("https://pai.example.com", auth.Tokens("https://pai.example.com", "ann", None, 60, None))
    path = str(tmp_path / "shared" / "train" / "output")
    assert not far.sees(path)
    monkeypatch.setenv("PAILOT_DEFAULT_FS_URI", str(tmp_path / "shared"))
    assert not far.sees(path)  # it is not there: another machine's
    (tmp_path / "shared").mkdir()
    assert far.sees(path)
    assert not far.sees(str(tmp_path / "sharedness"))
    configure(pai_url=server.url, username="admin", password=PASSWORD)
    task = Writes("unseen")
    with caplog.at_level("INFO", "luigi-interface"):
        assert task._left_its_output(backends.There("https://pai.example.com", far._tokens)) is False  # shared, and missing
        monkeypatch.delenv("PAILOT_DEFAULT_FS_URI")
        assert task._left_its_output(far)
        assert task._left_its_output(far)
    assert caplog.text.count("job-unseen: its output") == 1


def test_a_task_runs_once_and_luigi_is_told(where: str, caplog: pytest.LogCaptureFixture) -> None:
    task = Writes(f"told-{where}")  # contacts nobody
    assert not auth.KNOWN
    assert not task.complete()
    told: dict[str, list[Any]] = {"url": [], "message": [], "percentage": []}
    task.set_tracking_url, task.set_status_message = told["url"].append, told["message"].append
    task.set_progress_percentage = told["percentage"].append
    with caplog.at_level("INFO", "luigi-interface"):
        task.run()
    assert task.complete()
    assert f"job-told-{where}" in told["url"][0]
    assert told["message"][-1].startswith("SUCCEED")
    if where != "old":  # which shows its logs to people only
        assert f"job-told-{where}: admin~job-told-{where}" in caplog.text
        assert told["message"][-1].startswith("SUCCEEDED, 1 of 1 tasks ended")
        assert told["percentage"][-1] == 100
        assert (Path(task.output().path) / "file").read_text() == "done\n"
    assert build(task)  # which has nothing to do


def test_a_failed_job_says_why_and_is_run_again(server: Server, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Failing(f"fails-{where}")
    with pytest.raises(RuntimeError, match="exited with 5") as caught:
        task.run()
    error = caught.value
    assert isinstance(error, PaiJobFailed)
    if where != "old":
        assert (error.exit_code, error.task, error.last_lines) == (5, "worker:0", ("the-cause",))
    assert not task.complete()
    with pytest.raises(PaiJobFailed):
        task.run()  # luigi itself tries again: the job does not
    with Wire(server.url) as wire:
        wire.login("admin", PASSWORD)
        assert [wire.record(f"admin~job-fails-{where}{suffix}")["attempt"] for suffix in ("", "-r2")] == [2, 0]
    monkeypatch.setattr(tasks, "STARTED", tasks.Memory())  # another luigi
    monkeypatch.setattr(Failing, "command", "true")
    task.run()  # the name is taken on the server, and that is no obstacle
    assert task.complete()


def test_a_token_that_expires_while_the_job_runs_is_renewed(
    cluster: Genuine, old: Genuine, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openpai_v1, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(connections, "POLL_SECONDS", 0.05)
    for number, front in enumerate((cluster, old)):
        os.mkfifo(f"gate{number}")
        configure(pai_url=front.url, username="admin", password=PASSWORD)

        class Gated(Hello):
            command = f"touch {here}/up{number}; read line <{here}/gate{number}"

        waiting = threading.Thread(target=Gated(f"expires-{number}").run)
        waiting.start()
        wait_for_file(here / f"up{number}")
        front.expire()
        asked = len(front.asked)
        while len(front.asked) < asked + 3:  # it has asked with the old one, logged in, and asked with the new one
            assert waiting.is_alive()
            time.sleep(0.01)
        Path(f"gate{number}").write_text("go\n")
        waiting.join(SECONDS)
        assert front.logins == 2
        assert Gated(f"expires-{number}").complete()


def test_a_server_that_is_killed_and_started_again_in_the_middle(
    tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request is repeated by itself, so that the server's absence is noticed. The token is revoked meanwhile, too."""
    monkeypatch.setattr("pailot.client.http.RETRIES", 0)
    own = Server(tmp_path / "own")
    try:
        configure(pai_url=own.url, username="admin", password=PASSWORD)
        os.mkfifo("gate")

        class Gated(Hello):
            command = f"touch {here}/up; read line <{here}/gate; echo the-last-line"

        problems: list[BaseException] = []

        def work() -> None:
            try:
                Gated("survives").run()
            except BaseException as error:  # shown below
                problems.append(error)

        waiting = threading.Thread(target=work)
        waiting.start()
        wait_for_file(here / "up")
        own.kill()
        own.start()
        with Wire(own.url) as wire:
            wire.login("admin", PASSWORD)
            for token in wire.tokens():
                if token != wire.token:
                    wire.revoke_token(token)
        Path("gate").write_text("go\n")
        waiting.join(SECONDS)
        assert not waiting.is_alive()
        assert problems == []
        assert Gated("survives").complete()
    finally:
        own.close()


def test_a_job_that_another_has_just_started_is_joined(server: Server, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(pai_url=server.url, username="admin", password=PASSWORD)
    os.mkfifo("gate")

    class Gated(Hello):
        command = f"touch {here}/up; read line <{here}/gate"

    first = threading.Thread(target=Gated("raced").run)
    first.start()
    wait_for_file(here / "up")
    task = Gated("raced")
    place = task._place()
    monkeypatch.setattr(place, "_get", lambda name, real=place._get, seen=[]: real(name) if seen or seen.append(name) else None)
    started = place.start("job-raced", *task._job(again=False))
    assert started.name == "job-raced"  # and not job-raced-r2
    Path("gate").write_text("go\n")
    first.join(SECONDS)


def test_a_token_instead_of_a_password(server: Server) -> None:
    configure(pai_url=server.url, username="admin", token="not-a-token")
    with pytest.raises(pailot.Denied, match="does not accept the token; it may have expired"):
        Hello("denied").complete()
    get_config().remove_option("OpenPai", "token")
    luigi.task_register.Register.clear_instance_cache()
    with pytest.raises(pailot.Denied, match="set password or token"):
        Hello("denied").run()
    with Wire(server.url) as client:
        client.login("admin", PASSWORD)

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


def test_version_1_gets_the_very_json_of_the_original(old: Genuine) -> None:
    configure(pai_url=old.url, password=PASSWORD)
    task = Writes("exact")
    backends.place_for(old.url, "admin", PASSWORD, 3600, None).start(task.name, *task._job(again=False))
    assert json.loads(old.posted[-1]) == json.loads(json.dumps(task.pai_job(), default=slot_to_dict))
    with pytest.raises(pailot.PailotError, match="version 1 of the API only, which takes no protocol files"):
        Greeting("nobody").run()


def test_the_documented_examples_run_as_written_on_a_server(server: Server, here: Path) -> None:
    configure(pai_url=server.url, username="admin", password=PASSWORD)
    (here / "data").mkdir()
    (here / "code").mkdir()
    (here / "code" / "bench.py").write_text("print('benched')")

    class There(OneWorker):
        data_dir = str(here / "data")

    assert build(There(), Distributed(), workers=2)
    with Wire(server.url) as wire:
        wire.login("admin", PASSWORD)
        client = pailot.Client(server.url, wire.token)
    assert list(client.get("sklearn-example").logs()) == ["bench.py", "code", "benched"]
    said = set(client.get("distributed-example").logs())
    assert {"[ps:0] ps at 8080", "[ps:1] ps at 8081", "[worker:3] worker 3 of 4"} <= said


class Greeting(ProtocolTask):
    who = luigi.Parameter()
    loud = luigi.BoolParameter(default=True)

    @property
    def job(self) -> pailot.Job:
        role = pailot.TaskRole(
            commands="echo <% $parameters.who %> <% $parameters.loud %> <% $secrets.key %> | tr a-z A-Z",
            image="debian",
            memory_mb=64,
        )
        return pailot.Job("greeting", {"worker": role}, parameters={"who": "", "loud": False}, secrets={"key": "x"})

    @property
    def secrets(self) -> dict[str, str]:
        return {"key": "hidden-value"}


def test_a_protocol_job_as_a_task(server: Server, cluster: Genuine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "POLL_SECONDS", 0.05)
    for front, who in ((server, "Ann"), (cluster, "Ben")):
        configure(pai_url=front.url, username="admin", password=PASSWORD)
        task = Greeting(who)
        assert build(task)
        assert task.complete()
        with Wire(server.url) as wire:
            wire.login("admin", PASSWORD)
            run = pailot.Client(server.url, wire.token).get(task.job_name)
        assert list(run.logs()) == [f"{who.upper()} TRUE HIDDEN-VALUE"]
        assert "hidden-value" not in str(run.describe()) + run.job.to_yaml()
