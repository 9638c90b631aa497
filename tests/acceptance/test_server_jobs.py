"""Jobs over HTTP, against a real server: OpenPAI's routes and ours."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile

import pytest

from ..support.http_server import Server, job
from .conftest import UNIX_USERS, unix_users

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", params=["sqlite", "postgresql", UNIX_USERS])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    settings = {}
    if request.param == "postgresql":
        settings = {"PAILOT_DATABASE": request.getfixturevalue("postgres").new_url()}
    elif request.param == UNIX_USERS:
        settings = unix_users("lister")
    with Server(None, "--stop-jobs", **settings) as started:
        yield started


def test_a_job_from_submission_to_its_logs(server: Server) -> None:
    answer = server.submit(job("first", "echo out; echo err >&2"))
    assert answer.status == 202
    assert answer.json["message"] == "Update job first for user admin successfully."
    detail = server.wait("admin~first")
    status = detail["jobStatus"]
    assert (status["state"], status["subState"], status["appExitCode"], status["appExitType"]) == (
        "SUCCEEDED",
        "Completed",
        0,
        "Succeeded",
    )
    assert detail["debugId"] == hashlib.md5(b"admin~first").hexdigest()
    times = [status[key] for key in ("submissionTime", "launchedTime", "completedTime")]
    assert times == sorted(times)
    assert all(isinstance(each, int) for each in times)
    task = detail["taskRoles"]["main"]["taskStatuses"][0]
    assert task["taskState"] == "SUCCEEDED"
    assert set(task["containerPorts"]) >= {"ssh", "http"}
    places = server.get(task["containerLog"]).json["locations"]
    assert [each["name"] for each in places] == ["stdout", "stderr", "all"]
    assert server.get(places[0]["uri"], None).text == "out\n"
    assert server.get(places[1]["uri"], None).text == "err\n"
    assert sorted(server.get(places[2]["uri"], None).text.split()) == ["err", "out"]


def test_a_broken_file_is_answered_with_its_places(server: Server) -> None:
    for text, line in (
        (job("x") + "name: again\n", 17),
        ("a: [", 1),
        ("taskRoles: 3\n" + job("y").replace("taskRoles:", "t:"), 1),
    ):
        answer = server.submit(text)
        assert (answer.status, answer.code) == (400, "InvalidProtocolError"), answer
        assert answer.json["problems"][0]["line"] >= line
        assert answer.json["message"]
    for kind in ("application/x-www-form-urlencoded", "text/yaml"):
        assert server.ask("POST", "/jobs", "", kind=kind).code == "InvalidProtocolError"


def test_json_is_taken_under_any_type(server: Server) -> None:
    body = {
        "protocolVersion": 2,
        "name": "as-json",
        "type": "job",
        "prerequisites": [{"name": "i", "type": "dockerimage", "uri": "debian"}],
        "taskRoles": {
            "w": {"dockerImage": "i", "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0}, "commands": ["true"]},
        },
    }
    assert server.ask("POST", "/jobs", body).status == 202
    assert server.wait("as-json")["jobStatus"]["state"] == "SUCCEEDED"


def test_a_name_is_used_once(server: Server) -> None:
    server.run(job("once", "true"))
    answer = server.submit(job("once", "true"))
    assert (answer.status, answer.code) == (409, "ConflictJobError")
    assert server.submit(job("once", "true"), query="?name=twice").json["name"] == "twice"


def test_a_failed_job_tells_codes_of_openpai_and_its_own(server: Server) -> None:
    detail = server.run(job("fails", "echo before; exit 3", retries=1))
    status = detail["jobStatus"]
    assert (status["state"], status["appExitCode"], status["appExitType"]) == ("FAILED", 255, "Failed")
    assert status["appExitMessages"]["runtime"]["originUserExitCode"] == 3
    assert (status["appExitTriggerTaskRoleName"], status["appExitTriggerTaskIndex"]) == ("main", 0)
    history = server.get("/jobs/admin~fails/attempts/0/taskRoles/main/taskIndex/0/attempts").json
    assert [each["attemptId"] for each in history["attempts"]] == [1, 0]
    assert history["attempts"][1]["containerExitCode"] == 255
    item = next(each for each in server.get("/jobs").json if each["name"] == "fails")
    assert (item["state"], item["username"], item["appExitCode"]) == ("FAILED", "admin", 255)
    events = server.get("/jobs/admin~fails/events").json
    assert events["totalCount"] == len(events["data"])
    assert events["data"][0]["lastTimestamp"] >= events["data"][-1]["lastTimestamp"]
    warnings = server.get("/jobs/admin~fails/events?type=Warning").json["data"]
    assert {each["type"] for each in warnings} == {"Warning"}
    assert server.get("/jobs/admin~fails/events?type=Other").status == 400
    old = server.get("/jobs/admin~fails/job-attempts").json
    assert (old[0]["attemptIndex"], old[0]["isLatest"], old[0]["exitCode"]) == (0, True, 255)
    assert server.get("/jobs/admin~fails/job-attempts/0").json["jobName"] == "fails"
    assert server.get("/jobs/admin~fails/job-attempts/7").code == "NoJobError"
    assert server.get("/jobs/admin~fails/job-attempts/healthz").text == "ok"
    why = server.get("/jobs/admin~fails/why").json
    assert why["state"] == "FAILED"
    assert any("exited with 3" in line for line in why["lines"])


def test_what_is_not_there(server: Server) -> None:
    server.run(job("there", "true"))
    for path in (
        "/jobs/admin~nowhere",
        "/jobs/admin~nowhere/config",
        "/jobs/admin~there/attempts/9",
        "/jobs/admin~there/attempts/0/taskRoles/other/taskIndex/0/attempts",
        "/jobs/admin~there/attempts/0/taskRoles/main/taskIndex/9/attempts",
        "/jobs/admin~nowhere/live",
        "/jobs/admin~nowhere/record",
        "/jobs/admin~there/logs/main/9?follow=true",
        "/jobs/admin~nowhere/attempts/0/taskRoles/main/taskIndex/0/attempts/0/logs",
    ):
        answer = server.get(path)
        assert (answer.status, answer.code) == (404, "NoJobError"), (path, answer)
    assert server.get("/jobs/admin~there/attempts/0/taskRoles/main/taskIndex/0/attempts/4/logs").code == "NoTaskLogError"
    assert server.get("/jobs/admin~there/ssh").code == "NoJobSshInfoError"
    assert server.get("/nothing").code == "NoApiError"


def test_stop(server: Server) -> None:
    server.submit(job("long", "echo begun; sleep 1000"))
    assert server.ask("PUT", "/jobs/admin~long/executionType", {"value": "stop"}).code == "InvalidParametersError"
    assert server.ask("PUT", "/jobs/admin~long/executionType", {}).code == "InvalidParametersError"
    # As a browser sends it: JSON, called text.
    answer = server.ask("PUT", "/jobs/admin~long/executionType", '{"value": "STOP"}', kind="text/plain")
    assert (answer.status, answer.json["message"]) == (202, "Execute job admin~long successfully.")
    status = server.wait("long")["jobStatus"]
    assert (status["state"], status["executionType"], status["appExitCode"]) == ("STOPPED", "STOP", -210)
    assert server.ask("PUT", "/jobs/admin~long/executionType", {"value": "STOP"}).status == 202


def test_config_holds_no_secret_however_it_was_written(server: Server) -> None:
    secret = "hunter2-and-more"
    text = json.dumps(
        {
            "protocolVersion": 2,
            "name": "hides",
            "type": "job",
            "prerequisites": [{"name": "i", "type": "dockerimage", "uri": "debian"}],
            "secrets": {"token": secret},
            "taskRoles": {
                "w": {
                    "dockerImage": "i",
                    "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0},
                    "commands": ["echo <% $secrets.token %>"],
                },
            },
        }
    )
    server.run(text)
    config = server.get("/jobs/admin~hides/config")
    assert config.headers["content-type"].startswith("text/yaml")
    assert config.json["secrets"] == {"token": "******"}  # the file as it was written, but for that
    assert config.json["name"] == "hides"
    for path in ("", "/record", "/journal", "/plan", "/events", "/why", "/logs/w/0"):
        assert secret not in server.get(f"/jobs/admin~hides{path}").text, path
    assert server.get("/jobs/hides/logs/w/0").text.strip() != ""


def test_list_filters_orders_and_pages(server: Server) -> None:
    token = server.user("lister")
    for number in range(4):
        server.run(job(f"list-{number}", "true" if number % 2 else "false"), token)
    server.ask("PUT", "/jobs/lister~list-1/tag", {"value": "blue"}, token)

    def names(query: str) -> list[str]:
        return [each["name"] for each in server.get(f"/jobs?username=lister&{query}").json]

    assert names("") == ["list-3", "list-2", "list-1", "list-0"]
    assert names("state=FAILED") == ["list-2", "list-0"]
    assert names("state=FAILED,SUCCEEDED&order=jobName,ASC&offset=1&limit=2") == ["list-1", "list-2"]
    assert names("order=rubbish") == ["list-3", "list-2", "list-1", "list-0"]
    assert names("keyword=st-2") == ["list-2"]
    assert names("tagsContain=blue,red") == ["list-1"]
    assert names("tagsNotContain=blue") == ["list-3", "list-2", "list-0"]
    assert names("vc=default&jobPriority=default") == ["list-3", "list-2", "list-1", "list-0"]
    assert names("vc=other") == []
    assert names("jobPriority=prod") == []
    counted = server.get("/jobs?username=lister&withTotalCount=true&limit=0").json
    assert counted == {"totalCount": 4, "data": []}
    for query in ("limit=50001", "limit=x", "offset=-1"):
        assert server.get(f"/jobs?{query}").code == "InvalidParametersError"
    item = server.get("/jobs?username=lister&limit=1").json[0]
    assert set(item) == set(
        "debugId name username state subState executionType tags retries retryDetails retryDelayTime submissionTime createdTime "
        "launchedTime completedTime appExitCode virtualCluster totalGpuNumber totalTaskNumber totalTaskRoleNumber "
        "jobPriority".split()
    )


def test_tags(server: Server) -> None:
    server.run(job("tagged", "true"))
    for _ in range(2):
        answer = server.ask("PUT", "/jobs/admin~tagged/tag", {"value": "a tag"})
        assert answer.json == {"status": 200, "message": "Add tag a tag for job admin~tagged successfully."}
    assert server.get("/jobs/admin~tagged").json["tags"] == ["a tag"]
    for bad in ("a,b", "", "a\nb", "\0", "\ud800"):
        for method in ("PUT", "DELETE"):
            assert server.ask(method, "/jobs/admin~tagged/tag", {"value": bad}).code == "InvalidParametersError", bad
    assert server.ask("DELETE", "/jobs/admin~tagged/tag", {"value": "a tag"}).status == 200
    assert server.ask("DELETE", "/jobs/admin~tagged/tag", {"value": "a tag"}).code == "NoTagError"


def test_logs_in_parts_and_live(server: Server) -> None:
    server.submit(job("talks", "for i in 1 2 3 4 5; do echo line $i äöü; sleep 0.05; done"))
    text, last = "", ""
    for name, mark, data in server.events("/jobs/talks/logs/main/0?follow=true"):
        if name == "end":
            break
        text, last = text + data["text"], mark
    whole = "".join(f"line {number} äöü\n" for number in range(1, 6))
    assert text == whole
    assert server.get("/jobs/talks/logs/main/0").text == whole
    assert server.get("/jobs/talks/logs/main/0?tail=7").body == whole.encode()[-7:]
    for wanted, status, expected in (
        ("bytes=0-3", 206, b"line"),
        ("bytes=-3", 206, whole.encode()[-3:]),
        ("bytes=99999-", 416, None),
    ):
        answer = server.ask("GET", "/jobs/talks/logs/main/0?stream=stdout", headers={"Range": wanted})
        assert answer.status == status
        assert expected is None or answer.body == expected
    assert server.get("/jobs/talks/logs/main/0?stream=other").status == 400
    # Going on from the middle brings exactly the rest.
    middle = f"{last.rpartition('.')[0]}.{len('line 1 äöü'.encode()) + 1}"
    rest = "".join(
        data["text"] for name, _, data in server.events("/jobs/talks/logs/main/0?follow=true", after=middle) if name != "end"
    )
    assert rest == whole[len("line 1 äöü\n") :]


def test_tail_mode_is_accepted_in_both_spellings(server: Server) -> None:
    server.run(job("much", "yes 0123456789 | head -c 40000"))
    for spelling in ("tail-mode", "tailMode"):
        base = "/jobs/admin~much/attempts/0/taskRoles/main/taskIndex/0/attempts/0/logs"
        places = server.get(f"{base}?{spelling}=true").json["locations"]
        assert len(server.get(places[0]["uri"], None).body) == 16384


def test_live_states(server: Server) -> None:
    stream = server.events("/live/jobs")
    seen = []
    server.submit(job("watched", "sleep 0.1"))
    for name, mark, data in stream:
        if name == "job" and data["name"] == "watched":
            seen.append((int(mark), data["state"]))
            if data["state"] == "SUCCEEDED":
                break
    stream.close()
    assert [mark for mark, _ in seen] == sorted({mark for mark, _ in seen})
    assert seen[-1][1] == "SUCCEEDED"
    again = [data["state"] for name, _, data in server.events("/jobs/watched/live", after=str(seen[0][0])) if name == "job"]
    assert again[-1:] == ["SUCCEEDED"]


def test_record_journal_rerun_and_removal(server: Server) -> None:
    server.run(job("again", "echo $PAI_JOB_NAME"))
    record = server.get("/jobs/again/record").json
    assert (record["name"], record["state"], record["exitCode"]) == ("again", "SUCCEEDED", 0)
    assert record["taskRoles"]["main"]["tasks"][0]["state"] == "SUCCEEDED"
    assert [each["event"] for each in server.get("/jobs/again/journal").json][-1] == "ended"
    assert server.get("/jobs/again/plan").json["taskRoles"]["main"]["instances"] == 1
    answer = server.ask("POST", "/jobs/again/rerun", {"name": "again-2"})
    assert (answer.status, answer.json["name"]) == (202, "again-2")
    assert server.wait("again-2")["jobStatus"]["state"] == "SUCCEEDED"
    assert server.get("/jobs/again-2/logs/main/0").text == "admin~again-2\n"
    server.submit(job("busy", "sleep 1000"))
    assert server.ask("DELETE", "/jobs/busy").status == 409
    server.ask("PUT", "/jobs/busy/executionType", {"value": "STOP"})
    server.wait("busy")
    assert server.ask("DELETE", "/jobs/busy").status == 200
    assert server.get("/jobs/busy").code == "NoJobError"
    assert server.submit(job("busy", "true")).status == 202


def test_code_travels_once(server: Server) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        content = b"print('from the folder')\n"
        entry = tarfile.TarInfo("main.py")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    data = buffer.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    assert server.ask("HEAD", f"/code/{digest}").status == 404
    assert server.ask("PUT", f"/code/{'0' * 64}", data).status == 400
    assert server.ask("PUT", "/code/rubbish", data).status == 400
    assert server.ask("PUT", f"/code/{digest}", data).status == 201
    assert server.ask("PUT", f"/code/{digest}", data).status == 200
    assert server.ask("HEAD", f"/code/{digest}").status == 200
    assert server.submit(job("coded", "python3 main.py"), query=f"?code={digest}").status == 202
    server.wait("coded")
    assert server.get("/jobs/coded/logs/main/0").text == "from the folder\n"
    assert server.submit(job("uncoded"), query=f"?code={'1' * 64}").status == 404


def test_figures_and_documents(server: Server) -> None:
    server.run(job("counted", "true"))
    text = server.get("/metrics", None).text
    assert 'pailot_http_requests_total{path="/api/v2/jobs",method="POST",status="202"}' in text
    assert "pailot_jobs_submitted_total" in text
    document = server.get("/openapi.json", None).json
    assert document["openapi"].startswith("3.")
    assert "/api/v2/jobs/{job}/config" in document["paths"]
    assert server.get("/healthz", None).status == 200


@pytest.mark.parametrize("base", ["/api/v2", "/rest-server/api/v2", "/API/V2", "/api/v2/"])
def test_one_route_under_every_spelling(server: Server, base: str) -> None:
    assert server.get(f"{base.rstrip('/')}/virtual-clusters/").status == 200
    assert server.ask("GET", f"{base.rstrip('/')}/jobs", {}).status == 200
