"""The same runs on a real server: `pailot.Client`, `pailot.run(server=…)`, Processor sessions."""

from __future__ import annotations

import asyncio
import pickle
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import pailot
from pailot import Client, Job, TaskRole
from pailot.client.api import Client as Wire
from pailot.client.errors import Refused
from pailot.processor import Channel, MetricDefinition, Processor, Session, TrainingJob, UnexpectedStatusException

from ..parts import meeting
from ..support.servers import PASSWORD, Server

SECONDS = 240


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(
        tmp_path_factory.mktemp("server"),
        PAILOT_STORAGE_FOLDERS=f"tests={tmp_path_factory.getbasetemp()}",
    )
    yield started
    started.close()


@pytest.fixture(scope="module")
def token(server: Server) -> str:
    with Wire(server.url) as wire:
        wire.login("admin", PASSWORD)
        return wire.create_token()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PAILOT_SERVER", "PAILOT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def job(commands: str, name: str, instances: int = 1) -> Job:
    return Job(name, {"main": TaskRole(commands=commands, image="debian", instances=instances, memory_mb=64)})


def test_instances_of_a_processor_on_a_server(server: Server, token: str, here: Path) -> None:
    (here / "code").mkdir()
    (here / "code" / "meet.py").write_text(meeting.PROGRAM)
    (here / "code" / "given").write_text("code")
    session = Session(server=server.url, token=token)
    made = Processor("debian", "python3 meet.py", "code", instance_count=2, session=session, labels={"kind": "a, b"})
    with pytest.warns(UserWarning, match="left below /ml and not kept: /ml/output/mine"):
        job = made.run(outputs={"model": str(here / "model")}, show_logs=False)
    assert {index: list(job.logs(index)) for index in range(2)} == meeting.expected(2)
    assert sorted(path.name for path in (here / "model").iterdir()) == ["0", "1"]
    assert TrainingJob.list(session=session, labels={"kind": "a, b"}) == [job] == TrainingJob.list("Succeed", session)[:1]
    assert TrainingJob.list(session=session, labels={"kind": "c"}) == []
    assert TrainingJob.get(job.id, session).labels == [{"Key": "kind", "Value": "a, b"}]
    assert job.metrics([MetricDefinition("met", r"^met (\d)")]) == {"met": [1.0]}
    assert job.console_uri == f"{server.url}/api/v2/jobs/admin~{job.id}"
    alone = Processor("debian", "cat given; ls", "code/given", session=session).run(show_logs=False)
    assert list(alone.logs()) == ["codegiven"]


def test_a_training_job_on_a_server_that_does_not_succeed(server: Server, token: str) -> None:
    session = Session(server=server.url, token=token)
    job = Processor("debian", "echo begun; exec sleep 1000", session=session).run(wait=False)
    assert next(job.logs(0, follow=True)) == "begun"
    assert job.status == "Running"
    for shown in (True, False):
        with pytest.raises(TimeoutError, match=r"is still Running after 0\.05 s"):
            job.wait(timeout=0.05, show_logs=shown)
    job.stop()
    with pytest.raises(UnexpectedStatusException, match="Terminated") as caught:
        pickle.loads(pickle.dumps(job)).wait()
    assert caught.value.reason_message == "stopped by the user"
    assert job.describe()["Instances"][0]["Name"] == "worker-0"
    job.delete()
    with pytest.raises(pailot.NoSuchRun):
        TrainingJob.get(job.id, session)
    with pytest.raises(UnexpectedStatusException, match="Failed: it ran longer than its limit of 1 seconds"):
        Processor("debian", "sleep 1000", max_run_time=1, session=session).run(show_logs=False)


def test_a_run_is_the_same_object(server: Server, token: str) -> None:
    labels = {"team": "vision, and more", 'a "key"': "é=1"}
    run = pailot.run(job("echo one; echo two >&2", "same"), server=server.url, token=token, labels=labels)
    assert run.result(SECONDS).state == "SUCCEEDED"
    assert sorted(run.logs("main", 0)) == ["one", "two"]
    assert sorted(run.logs(follow=True)) == ["one", "two"]
    assert [event.kind for event in run][-1] == "ended"
    assert run.id == "admin~same"
    assert run.job.name == "same"
    assert "same" in run._repr_html_()
    with Client(server.url, token) as client:
        assert client.user == "admin"
        assert client.get("same") == run
        assert list(client.runs(labels=labels)) == [run]
        assert list(client.runs(labels={"team": "vision, and more"})) == [run]
        assert list(client.runs(labels={**labels, "other": "x"})) == []
        assert list(client.runs(labels={"team": "speech"})) == []
        assert run.describe()["labels"] == labels
        for wrong in ("[]", '{"a": 1}', "team=vision", "[" * 5000):
            with pytest.raises(pailot.PailotError, match="labels should be a JSON mapping"):
                client._wire.jobs(labels=wrong)
        assert pickle.loads(pickle.dumps(run)).state == "SUCCEEDED"
        with pytest.raises(pailot.Conflict):
            client.run(job("true", "same"))
        run.delete()
        with pytest.raises(pailot.NoSuchRun):
            client.get("same")


def test_failure_stop_and_time(server: Server, token: str) -> None:
    client = Client(server.url, token)
    failing = client.run(job("echo the-cause >&2; exit 6", "failing"))
    with pytest.raises(pailot.JobFailed) as caught:
        failing.result(SECONDS)
    assert (caught.value.exit_code, caught.value.task, caught.value.last_lines) == (6, "main:0", ("the-cause",))
    slow = client.run(job("echo up; sleep 1000", "slow", instances=2))
    lines = iter(slow.logs(follow=True))
    assert {next(lines), next(lines)} == {"[main:0] up", "[main:1] up"}
    with pytest.raises(pailot.WaitTimeout):
        slow.wait(0.05)
    slow.stop()
    with pytest.raises(pailot.JobStopped):
        slow.result(SECONDS)


def test_async(server: Server, token: str) -> None:
    async def work() -> None:
        client = Client(server.url, token)
        run = client.run(job("echo line", "async"))
        assert [line async for line in run.logs(follow=True)] == ["line"]
        assert (await run).state == "SUCCEEDED"

    asyncio.run(work())


def test_code_is_sent_along(server: Server, token: str, here: Path) -> None:
    (here / "code").mkdir()
    (here / "code" / "file").write_text("of the client")
    run = Client(server.url, token).run(job("cat file", "with-code"), code=here / "code")
    run.result(SECONDS)
    assert str(run.logs()) == "of the client\n"


def test_who_may_and_who_answers(server: Server, here: Path) -> None:
    with pytest.raises(pailot.Denied):
        Client(server.url, "expired").run(job("true", "denied"))
    with pytest.raises(pailot.Unreachable, match="127"):
        Client("http://127.0.0.1:9", "x").run(job("true", "nobody"))
    with pytest.raises(pailot.PailotError, match="no server is known"):
        Client()
    with pytest.raises(TypeError, match="the server's to choose"):
        pailot.run(job("true", "x"), server=server.url, engine="local")


def test_processing_on_a_server(server: Server, token: str, here: Path) -> None:
    (here / "code").mkdir()
    (here / "code" / "main.sh").write_text('cat "$PAI_INPUT_DATA"; pwd; echo "$PAI_HPS_RATE" >"$PAI_OUTPUT_MODEL/file"\n')
    (here / "data").write_text("a line\n")
    session = Session(server=server.url, token=token, storage=here / "storage")
    made = Processor(
        "debian", "sh main.sh", source_dir="code", parameters={"rate": 3}, instance_type="ecs.c6.large", session=session
    )
    made.instance_type = "local"
    made.set_output_channels([Channel("model")])
    job = made.run(inputs={"data": "data"}, show_logs=False)
    assert job.status == "Succeed"
    assert next(iter(job.logs())) == "a line"
    assert Path(made.get_outputs_data()["model"], "file").read_text() == "3\n"
    assert TrainingJob.get(job.id, session) == job
    assert TrainingJob.list(session=session)[0] == job
    with zipfile.ZipFile(here / "archive.zip", "w") as archive:
        archive.writestr("inner.txt", "fetched by the server")
    fetching = Processor("debian", 'cat "$PAI_INPUT_A"', session=session)
    with pytest.raises(Refused, match="is not allowed on this server"):
        fetching.run(inputs={"a": f"zip://inner.txt::file://{here}/archive.zip"}, show_logs=False)
    with pytest.raises(UnexpectedStatusException, match="exited with 3"):
        Processor("debian", "exit 3", session=session).run(show_logs=False)
    with pytest.raises(pailot.Denied):
        Processor("debian", "true", session=Session(server=server.url, token="expired")).run()
    with pytest.raises(ValueError, match="which the server cannot see"):
        Processor("debian", "true", session=Session(server="http://example.com", token="x")).run(inputs={"a": "data"})
