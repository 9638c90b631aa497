"""The API's finer points, against a real server: paths, rights, streams that break, parts of logs, what the machine tells."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import json
import re
import tarfile
import time
from pathlib import Path

import pytest

from pailot.testing.runs import PATIENCE

from ..support.http_server import Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LABELS = r'\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*\}'
SAMPLE = re.compile(rf"([a-zA-Z_:][\w:]*)(?:{LABELS})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|NaN|[+-]Inf)")
DIGITS = "".join(f"{number:09}\n" for number in range(40_000))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    closed = "http://127.0.0.1:1/hook"  # nobody listens there
    with Server(None, "--stop-jobs", PAILOT_LOG_ROTATE_MB="0.05", PAILOT_WEBHOOK=closed) as started:
        yield started
        assert "defect" not in started.log.read_text()


def test_paths_in_every_spelling(server: Server) -> None:
    server.run(job("spelled", "true"))
    for path in ("/api/v2/%6Aobs", "/API/v2/%4aobs/", "/api/v2/jobs/admin%7Espelled", "/rest-server/API/V2/JOBS/admin~spelled/"):
        assert server.get(path).status == 200, path
    assert server.get("/api/v2/jobs/ADMIN~spelled").status == 404  # names are not the same in other letters
    assert server.get("/api/v2%2fjobs").status == 404


def test_only_the_owner_starts_and_tags(server: Server) -> None:
    server.run(job("kept", "true"))
    other = server.user("busybody")
    for value in ("START", "STOP"):
        answer = server.ask("PUT", "/jobs/admin~kept/executionType", {"value": value}, other)
        assert (answer.status, answer.code) == (403, "ForbiddenUserError"), value
    assert server.ask("PUT", "/jobs/admin~kept/executionType", {"value": "START"}).status == 202
    # Whether the job is there or not is not told to somebody who may not.
    for name in ("kept", "missing"):
        for method in ("PUT", "DELETE"):
            assert server.ask(method, f"/jobs/admin~{name}/tag", {"value": "t"}, other).status == 403
    assert server.ask("PUT", "/jobs/admin~missing/tag", {"value": "t"}).code == "NoJobError"


def test_values_that_no_reader_of_json_takes_are_refused(server: Server) -> None:
    token = server.user("infinite")
    answer = server.ask("PUT", "/users/infinite/extension", '{"extension": {"x": 1e999}}', token, kind="application/json")
    assert (answer.status, answer.code) == (400, "InvalidParametersError")
    odd = '{"extension": {"nul": "\\u0000", "half": "\\ud83d"}}'
    assert server.ask("PUT", "/users/infinite/extension", odd, token, kind="application/json").status in (201, 400)
    assert server.get("/users/infinite", token).json["username"] == "infinite"
    assert [each for each in server.get("/users").json if each["username"] == "infinite"]


def test_an_extension_does_not_grow_for_ever(server: Server) -> None:
    token = server.user("hoarder")
    put = "/users/hoarder/extension"
    statuses = [server.ask("PUT", put, {"extension": {f"key{each}": "x" * 100_000}}, token).status for each in range(4)]
    assert statuses == [201, 201, 400, 400]
    assert set(server.get("/users/hoarder", token).json["extension"]) == {"key0", "key1"}


def test_numbers_and_switches_as_texts(server: Server) -> None:
    form = "username=formed&password=form-password&admin=false"
    assert server.ask("POST", "/users", form, kind="application/x-www-form-urlencoded").status == 201
    assert server.ask("PUT", "/virtual-clusters/formed", {"vcCapacity": "25"}).status == 201
    assert server.get("/virtual-clusters/formed").json["capacity"] == 25
    assert server.ask("PUT", "/virtual-clusters/formed", {"vcCapacity": "much"}).code == "InvalidParametersError"
    assert server.ask("PUT", "/users/formed/admin", {"admin": "perhaps"}).code == "InvalidParametersError"
    assert server.ask("DELETE", "/virtual-clusters/formed").status == 201


def test_a_virtual_cluster_that_comes_later(server: Server) -> None:
    acls = {"acls": {"admin": False, "virtualClusters": ["later"], "storageConfigs": []}}
    server.ask("POST", "/groups", {"groupname": "waiting", "extension": acls})
    token = server.user("early")
    server.ask("PUT", "/users/early/group", {"groupname": "waiting"})
    text = job("in-later", "true", more="defaults: {virtualCluster: later}")
    assert server.submit(text, token).status == 403
    server.ask("PUT", "/virtual-clusters/later", {"vcCapacity": 10})
    assert server.submit(text, token).status == 202
    server.wait("in-later", token)
    server.ask("DELETE", "/virtual-clusters/later")


def test_roles_whose_names_openpai_would_spell_alike(server: Server) -> None:
    one = (
        "{completion: {minSucceededInstances: -1}, dockerImage: image, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0},"
        " commands: [echo %s]}"
    )
    words = {"a_b": "first", "ab": "second", "__": "third"}
    roles = "".join(f"  {name}: {one % word}\n" for name, word in words.items())
    text = job("alike", "true").replace("taskRoles:\n", f"taskRoles:\n{roles}").replace("  main:", "  Main:")
    detail = server.run(text.replace("minSucceededInstances: 1}", "minSucceededInstances: -1}"))
    assert set(detail["taskRoles"]) == {*words, "main"}
    for name, word in words.items():
        task = detail["taskRoles"][name]["taskStatuses"][0]
        assert server.get(server.get(task["containerLog"]).json["locations"][0]["uri"], None).text == f"{word}\n"


def some(server: Server, path: str, after: str, most: int) -> list[tuple[str, str, Any]]:
    """So many events, and then the line breaks."""
    stream = server.events(path, after=after)
    found = []
    for each in stream:
        found.append(each)
        if len(found) == most:
            break
    stream.close()
    return found


def test_a_job_followed_over_a_line_that_breaks_after_every_event(server: Server) -> None:
    server.run(job("broken-line", "true", instances=5))
    whole = [data for name, _, data in server.events("/jobs/broken-line/live") if name in ("task", "journal")]
    assert sum(each["event"] == "task-ended" for each in whole) == 5
    heard: list[Any] = []
    after = ""
    while True:
        [(name, after, data)] = some(server, "/jobs/broken-line/live", after, 1)
        if name not in ("task", "journal"):
            break
        heard.append(data)
    assert heard == whole
    # An id that this journal has not reached belongs to another: all is told anew.
    anew = [
        data for name, _, data in server.events("/jobs/broken-line/live", after="999999999999") if name in ("task", "journal")
    ]
    assert anew == whole


def test_a_log_followed_over_a_line_that_breaks(server: Server) -> None:
    server.submit(job("long-log", "for i in $(seq 400); do echo line $i äöü €; done; sleep 0.2; echo end"))
    text, after, ended = "", "", False
    while not ended:
        for name, mark, data in some(server, "/jobs/long-log/logs/main/0?follow=true&stream=stdout", after, 2):
            text, after, ended = text + data.get("text", ""), mark, name == "end"
    assert text == "".join(f"line {number} äöü €\n" for number in range(1, 401)) + "end\n"


def test_all_jobs_followed_over_a_line_that_breaks(server: Server) -> None:
    stream = server.events("/live/jobs")
    server.submit(job("breaks-1", "true"))
    # On a busy machine the job may be over when it is first told of: changes that come fast are told as one.
    mark, first = next((mark, data["state"]) for name, mark, data in stream if data.get("name") == "breaks-1")
    stream.close()
    server.wait("breaks-1")
    server.run(job("breaks-2", "true"))
    seen = [("breaks-1", first)]
    for name, _, data in server.events("/live/jobs", after=mark):
        assert name == "job"
        seen.append((data["name"], data["state"]))
        if seen[-1] == ("breaks-2", "SUCCEEDED"):
            break
    assert ("breaks-1", "SUCCEEDED") in seen
    assert len(seen) == len(set(seen))
    future = server.events("/live/jobs", after=str(int(mark) + 10**15))
    assert next(future)[0] == "reset"
    future.close()


def test_a_revoked_token_hears_nothing_more(server: Server, tmp_path: Path) -> None:
    token = server.user("leaver")
    application = server.ask("POST", "/tokens/application", token=token).json["token"]
    release = tmp_path / "release"
    server.submit(job("talker", f"echo begun; until [ -e {release} ]; do sleep 0.05; done; echo secret"))
    streams = [server.events("/live/jobs", application), server.events("/jobs/admin~talker/logs/main/0?follow=true", application)]
    assert next(streams[1])[2]["text"] == "begun\n"
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    line.request("GET", "/api/v2/live/jobs", headers={"Authorization": f"Bearer {token}"})
    answer = line.getresponse()
    assert server.ask("DELETE", f"/tokens/{application}", token=token).status == 200
    assert server.ask("DELETE", "/authn/basic/logout", token=token).status == 200
    release.touch()
    server.wait("talker")
    assert list(streams[1]) == []
    assert b"talker" not in answer.read()  # it ends
    line.close()


def test_parts_of_a_log(server: Server) -> None:
    server.run(job("parts", "echo 0123456789"))
    path = "/jobs/parts/logs/main/0?stream=stdout"
    whole = server.get(path)
    mark = whole.headers["etag"]
    assert (whole.status, whole.headers["x-content-type-options"]) == (200, "nosniff")
    assert re.fullmatch(r'"[\w.-]+"', mark)

    def ask(**headers: str) -> tuple[int, bytes]:
        answer = server.ask("GET", path, headers={key.replace("_", "-"): value for key, value in headers.items()})
        return answer.status, answer.body

    assert ask(Range="bytes=2-4", If_Range=mark) == (206, b"234")
    assert ask(Range="bytes=-3", If_Range=mark) == (206, b"89\n")
    assert ask(Range="bytes=-999") == (206, whole.body)
    assert ask(Range="bytes=4-", If_Range='"another"') == (200, whole.body)
    assert ask(Range="bytes=4-", If_Range="Tue, 17 Nov 2026 00:00:00 GMT") == (200, whole.body)
    assert ask(Range="bytes=11-")[0] == 416
    assert ask(Range="bytes=-0")[0] == 416
    assert ask(Range="bytes=4-2") == (200, whole.body)
    assert ask(Range="lines=1-2") == (200, whole.body)
    assert ask(Range="bytes=0-1,3-4") == (200, whole.body)
    assert ask(If_None_Match=mark) == (304, b"")
    assert ask(If_None_Match='"another"') == (200, whole.body)
    head = server.ask("HEAD", path)
    assert (head.status, head.headers["content-length"], head.headers["etag"], head.body) == (200, "11", mark, b"")
    # The same name, another job: nothing of it continues what came before.
    server.ask("DELETE", "/jobs/parts")
    server.run(job("parts", "echo 9876543210"))
    assert ask(Range="bytes=4-", If_Range=mark) == (200, b"9876543210\n")


def test_a_log_that_grows_is_gone_on_with(server: Server, tmp_path: Path) -> None:
    release = tmp_path / "release"
    server.submit(job("grows", f"echo first; until [ -e {release} ]; do sleep 0.05; done; echo second"))
    assert next(server.events("/jobs/grows/logs/main/0?follow=true"))[2]["text"] == "first\n"
    before = server.get("/jobs/grows/logs/main/0")
    assert (before.body, before.headers["x-log-ended"]) == (b"first\n", "false")
    release.touch()
    server.wait("grows")
    headers = {"Range": f"bytes={len(before.body)}-", "If-Range": before.headers["etag"]}
    rest = server.ask("GET", "/jobs/grows/logs/main/0", headers=headers)
    assert (rest.status, rest.body, rest.headers["content-range"]) == (206, b"second\n", "bytes 6-12/13")


def test_what_a_rotated_log_has_lost_is_not_told_as_something_else(server: Server) -> None:
    server.run(job("rotated", f"seq -f %09g 0 {DIGITS.count(chr(10)) - 1}"))
    path = "/jobs/rotated/logs/main/0?stream=stdout"
    whole = server.get(path)
    assert whole.text == DIGITS[-len(whole.text) :]
    lost = len(DIGITS) - len(whole.text)
    assert 0 < lost < len(DIGITS)
    assert int(whole.headers["content-length"]) == len(whole.body)

    def part(wanted: str) -> tuple[int, str | None, str]:
        answer = server.ask("GET", path, headers={"Range": wanted})
        return answer.status, answer.headers["content-range"], answer.text

    total = len(DIGITS)
    assert part(f"bytes={total - 20}-{total - 11}") == (206, f"bytes {total - 20}-{total - 11}/{total}", DIGITS[-20:-10])
    assert part("bytes=0-9")[:2] == (416, f"bytes */{total}")
    assert part(f"bytes={lost - 10}-{lost + 9}") == (206, f"bytes {lost}-{lost + 9}/{total}", DIGITS[lost : lost + 10])


def test_version_1_without_a_token_is_for_this_machine_alone(server: Server) -> None:
    server.ask("PUT", "/virtual-clusters/closed", {"vcCapacity": 10})
    server.run(job("shut", "true", more="defaults: {virtualCluster: closed}"))
    server.run(job("ajar", "true"))
    assert server.get("/api/v1/jobs/ajar", None).status == 200
    assert server.get("/api/v1/jobs/ajar/config", None).status == 200
    for headers in (
        {"X-Forwarded-For": "203.0.113.9"},
        {"Forwarded": "for=203.0.113.9"},
        {"Host": "page.example"},
        {"Host": "localhost.page.example:9186"},
        {"Host": "127.0.0.1.page.example"},
        {"Host": ""},
    ):
        for path in ("/api/v1/jobs", "/api/v1/jobs/ajar", "/api/v1/virtual-clusters"):
            answer = server.ask("GET", path, token=None, headers=headers)
            assert (answer.status, answer.code) == (401, "UnauthorizedUserError"), headers
    for host in ("localhost", f"localhost:{server.port}", "127.0.0.1", "[::1]:80", "[::1]"):
        assert server.ask("GET", "/api/v1/jobs", token=None, headers={"Host": host}).status == 200, host
    # Leaving the token out opens nothing that a user without special rights could not read.
    stranger = server.user("outsider")
    assert server.get("/jobs/admin~shut/config", stranger).status == 403
    assert server.get("/api/v1/jobs/admin~shut/config", None).status == 403
    assert server.get("/api/v1/user/admin/jobs/shut/config", None).status == 403
    assert server.get("/api/v1/jobs/nowhere/ssh", None).code == "NoJobError"
    server.ask("DELETE", "/virtual-clusters/closed")


def test_users_as_version_1_changes_them(server: Server) -> None:
    make = {"username": "oldie", "password": "old-password", "admin": False, "modify": False}
    assert server.ask("PUT", "/api/v1/user", make).json == {"message": "update successfully"}
    assert server.ask("PUT", "/api/v1/user", make).code == "ConflictUserError"
    assert server.ask("PUT", "/api/v1/user", {"username": "oldie"}).code == "InvalidParametersError"
    form = "username=oldie&password=new-password&admin=true&modify=true"
    assert server.ask("PUT", "/api/v1/user", form, kind="application/x-www-form-urlencoded").status == 201
    token = server.login("oldie", "new-password")
    assert server.get("/api/v1/user/oldie", token).json["admin"] is True
    assert server.ask("PUT", "/api/v1/user", {**make, "admin": False, "modify": True}).status == 201
    assert server.ask("PUT", "/api/v1/user", {**make, "username": "nobody", "modify": True}).code == "NoUserError"
    server.ask("PUT", "/virtual-clusters/v1a", {"vcCapacity": 1})
    assert server.ask("PUT", "/api/v1/user/oldie/virtualClusters", {"virtualClusters": "default,v1a"}).status == 201
    assert server.get("/api/v1/user/oldie").json["virtualCluster"] == ["default", "v1a"]
    assert server.ask("PUT", "/api/v1/user/oldie/virtualClusters", {"virtualClusters": "none"}).code == "NoVirtualClusterError"
    assert server.ask("DELETE", "/api/v1/user", {"username": "oldie"}, server.user("plain")).status == 403
    assert server.ask("DELETE", "/api/v1/user", {"username": "oldie"}).json == {"message": "remove successfully"}
    assert server.ask("DELETE", "/api/v1/user", {"username": "oldie"}).code == "NoUserError"
    server.ask("DELETE", "/virtual-clusters/v1a")


def test_what_everyone_sees_of_a_job_holds_nothing_of_its_logs(server: Server) -> None:
    server.ask("PUT", "/virtual-clusters/quiet", {"vcCapacity": 10})
    member, stranger = server.user("insider", clusters=("quiet",)), server.user("bystander")
    server.run(job("told", "echo CONFIDENTIAL; exit 3", more="defaults: {virtualCluster: quiet}"), member)
    path = "/jobs/insider~told"
    for below in ("", "/attempts/0", "/job-attempts", "/job-attempts/0"):
        assert "CONFIDENTIAL" in server.get(path + below, member).text, below
    home = str(server.home)
    assert home in server.get(f"{path}/record", member).text
    for below in ("", "/attempts/0", "/job-attempts", "/job-attempts/0", "/record"):
        answer = server.get(path + below, stranger)
        assert answer.status == 200
        assert "CONFIDENTIAL" not in answer.text, below
        assert home not in answer.text, below
    for url in ("/api/v1/jobs/insider~told", "/api/v1/jobs", "/api/v1/user/insider/jobs/told"):
        assert "CONFIDENTIAL" not in server.get(url, None).text
    for below in ("/rerun", "/logs/main/0", "/plan", "/why", "/live", "/attempts/0/taskRoles/main/taskIndex/0/attempts"):
        answer = server.ask("POST" if below == "/rerun" else "GET", path + below, token=stranger)
        assert (answer.status, answer.code) == (403, "ForbiddenUserError"), below
    server.ask("DELETE", "/virtual-clusters/quiet")


def archive(content: bytes) -> tuple[bytes, str]:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        entry = tarfile.TarInfo("secret.txt")
        entry.size = len(content)
        packed.addfile(entry, io.BytesIO(content))
    return buffer.getvalue(), hashlib.sha256(buffer.getvalue()).hexdigest()


def test_code_is_for_who_has_it(server: Server) -> None:
    owner, thief = server.user("coder"), server.user("digger")
    data, digest = archive(b"the content")
    assert server.ask("PUT", f"/code/{digest}", data, owner).status == 201
    # Who knows the digest alone learns nothing, and gets nothing.
    assert server.ask("HEAD", f"/code/{digest}", token=thief).status == 404
    assert server.submit(job("steals", "cat secret.txt"), thief, query=f"?code={digest}").code == "NoCodeError"
    assert server.ask("PUT", f"/code/{digest}", b"something else", thief).code == "InvalidParametersError"
    assert server.submit(job("steals", "cat secret.txt"), thief, query=f"?code={digest}").code == "NoCodeError"
    # Who has the content has it anyway; it is kept once.
    assert server.ask("PUT", f"/code/{digest}", data, thief).status == 201
    assert server.ask("PUT", f"/code/{digest}", data, thief).status == 200
    assert server.ask("HEAD", f"/code/{digest}", token=thief).status == 200
    assert server.submit(job("has", "cat secret.txt"), thief, query=f"?code={digest}").status == 202
    server.wait("digger~has", thief)
    assert server.get("/jobs/digger~has/logs/main/0", thief).text == "the content"
    assert len(list((server.home / "code").iterdir())) == 1


def test_large_answers_are_packed_for_who_unpacks_them(server: Server) -> None:
    for number in range(12):
        server.submit(job(f"packed-{number}", "true").replace("cpu: 1,", "cpu: 99,"))
    plain = server.get("/jobs?keyword=packed-")
    assert (len(plain.json), plain.headers["content-encoding"]) == (12, None)
    packed = server.ask("GET", "/jobs?keyword=packed-", headers={"Accept-Encoding": "br, gzip;q=0.5"})
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert int(packed.headers["content-length"]) == len(packed.body) < len(plain.body) / 3
    assert json.loads(gzip.decompress(packed.body)) == plain.json
    for header in ("gzip;q=0", "br", "identity"):
        assert server.ask("GET", "/jobs?keyword=packed-", headers={"Accept-Encoding": header}).body == plain.body
    small = server.ask("GET", "/info", token=None, headers={"Accept-Encoding": "gzip"})
    assert small.headers["content-encoding"] is None
    server.run(job("unpacked", "seq 3000"))
    log = server.ask("GET", "/jobs/unpacked/logs/main/0", headers={"Accept-Encoding": "gzip"})
    assert (log.headers["content-encoding"], len(log.body)) == (None, 13893)
    for number in range(12):
        server.ask("PUT", f"/jobs/packed-{number}/executionType", {"value": "STOP"})


def test_alerts(server: Server) -> None:
    owner, other = server.user("alerted"), server.user("calm")
    assert server.get("/alerts", other).json == []
    server.submit(job("giant", "true").replace("cpu: 1,", "cpu: 99,"), owner)
    hooked = "extras: {jobStatusChangeNotification: {succeeded: true}}"
    server.run(job("unheard", "true", more=hooked), owner)
    deadline = time.monotonic() + PATIENCE
    while True:
        found = {each["labels"]["alertname"]: each for each in server.get("/alerts", owner).json}
        if set(found) >= {"JobNeverFits", "NoticeUndeliverable"}:
            break
        assert time.monotonic() < deadline, found
    never = found["JobNeverFits"]
    assert never["labels"]["job_name"] == "alerted~giant"
    assert (never["labels"]["username"], never["labels"]["severity"]) == ("alerted", "warning")
    assert (never["status"]["state"], never["state"]) == ("active", "firing")
    assert "99" in never["annotations"]["summary"]
    assert re.fullmatch(r"[0-9-]+T[0-9:.]+Z", never["startsAt"])
    # How the server reaches others is told to administrators only.
    assert "description" not in found["NoticeUndeliverable"]["annotations"]
    assert server.get("/alerts", other).json == []
    everything = {each["labels"]["alertname"]: each for each in server.get("/alerts").json}
    assert set(everything) >= {"JobNeverFits", "NoticeUndeliverable"}
    assert everything["NoticeUndeliverable"]["annotations"]["description"]
    assert everything["JobNeverFits"]["fingerprint"] == never["fingerprint"]
    assert 'pailot_alerts{alert="JobNeverFits"} 1' in server.get("/metrics", None).text
    server.ask("PUT", "/jobs/alerted~giant/executionType", {"value": "STOP"}, owner)
    server.wait("alerted~giant", owner)
    assert "JobNeverFits" not in [each["labels"]["alertname"] for each in server.get("/alerts", owner).json]


def test_nodes_and_pods(server: Server) -> None:
    token = server.user("podder")
    server.submit(job("podded", "echo begun; sleep 1000", instances=2), token)
    for name, _, data in server.events("/jobs/podder~podded/live", token):
        if name == "job" and data["state"] == "RUNNING":
            break
    server.submit(job("pending", "true").replace("cpu: 1,", "cpu: 99,"), token)
    node = server.get("/kubernetes/nodes").json["items"][0]
    assert {each["type"]: each["status"] for each in node["status"]["conditions"]}["Ready"] == "True"
    assert node["status"]["allocatable"] == {"cpu": "16", "memory": "16000Mi", "nvidia.com/gpu": "0"}
    pods = server.get("/kubernetes/pods?namespace=default&labelSelector=userName%3Dpodder").json
    assert (pods["kind"], pods["apiVersion"]) == ("PodList", "v1")
    by_name = {
        f"{each['metadata']['labels']['jobName']}:{each['metadata']['labels']['FC_TASK_INDEX']}": each for each in pods["items"]
    }
    assert set(by_name) == {"podded:0", "podded:1", "pending:0"}
    running, waiting = by_name["podded:1"], by_name["pending:0"]
    assert (running["status"]["phase"], running["spec"]["nodeName"]) == ("Running", node["metadata"]["name"])
    assert running["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "64Mi", "nvidia.com/gpu": "0"}
    assert running["metadata"]["labels"]["virtualCluster"] == "default"
    assert "running" in running["status"]["containerStatuses"][0]["state"]
    assert (waiting["status"]["phase"], "nodeName" in waiting["spec"]) == ("Pending", False)
    detail = server.get("/jobs/podder~podded", token).json["taskRoles"]["main"]["taskStatuses"][1]
    assert detail["containerNodeName"] == node["metadata"]["name"]
    assert detail["containerId"] == running["metadata"]["uid"]
    assert server.get("/kubernetes/pods?namespace=other").json["items"] == []
    assert len(server.get("/kubernetes/pods?labelSelector=userName=podder,jobName!=podded").json["items"]) == 1
    assert server.get("/kubernetes/pods?labelSelector=a(b").code == "InvalidParametersError"
    for path in ("/kubernetes/pods", "/kubernetes/nodes", "/api/v1/kubernetes/pods"):
        assert server.get(path, token).code == "ForbiddenUserError"
        assert server.get(path, None).code == "UnauthorizedUserError"
    for name in ("podded", "pending"):
        server.ask("PUT", f"/jobs/podder~{name}/executionType", {"value": "STOP", "now": True}, token)
        server.wait(f"podder~{name}", token)
    assert server.get("/kubernetes/pods?labelSelector=userName=podder").json["items"] == []


def test_kinds_of_cells() -> None:
    cells = json.dumps(
        {"V100": {"cpu": 6, "memoryMB": 60000, "gpu": 1, "virtualClusters": ["vision"]}, "CPU": {"cpu": 1, "memoryMB": 900}}
    )
    with Server(None, "--stop-jobs", PAILOT_SKU_TYPES=cells, PAILOT_VIRTUAL_CLUSTERS="vision:cpus=4:memory_mb=1000") as server:
        both = {"V100": {"cpu": 6, "memory": 60000, "gpu": 1}, "CPU": {"cpu": 1, "memory": 900, "gpu": 0}}
        assert server.get("/cluster/sku-types").json == both
        assert server.get("/cluster/sku-types?vc=vision").json == both
        assert server.get("/virtual-clusters/default/sku-types").json == {"CPU": both["CPU"]}
        asks = "extras: {hivedScheduler: {taskRoles: {main: {skuType: %s}}}}"
        answer = server.submit(job("wants", "true", more=asks % "V100"))
        assert (answer.status, answer.code) == (400, "InvalidProtocolError")
        assert "V100" in answer.json["message"]
        assert server.submit(job("wants", "true", more=asks % "CPU")).status == 202
        in_vision = f"defaults: {{virtualCluster: vision}}\n{asks % 'V100'}"
        assert server.submit(job("sees", "true", more=in_vision)).status == 202


def test_figures_are_what_prometheus_reads(server: Server) -> None:
    server.run(job("measured", "true"))
    text = server.get("/metrics", None).text
    kinds = exposition(text)
    assert kinds["pailot_jobs_submitted_total"] == "counter"
    assert kinds["pailot_http_request_duration_seconds"] == "histogram"
    assert kinds["pailot_memory_used_bytes"] == "gauge"
    assert "virtual_cluster" not in text
    told = server.get("/metrics").text
    assert exposition(told)["pailot_virtual_cluster_gpus_used"] == "gauge"
    assert 'pailot_virtual_cluster_cpu_cores_used{virtual_cluster="default"} 0' in told
    assert server.get("/metrics", "rubbish").status == 401
    assert not re.search(r"[0-9]e\+", text)  # six digits only would lose what is counted
    started = float(re.search(r"^pailot_start_time_seconds (.*)$", text, re.MULTILINE)[1])  # type: ignore[index]  # it is there
    assert abs(time.time() - started) < 3600
    assert server.get("/metrics", None).headers["content-type"].startswith("text/plain; version=0.0.4")


def exposition(text: str) -> dict[str, str]:
    """Prometheus' text format, strictly: each family once and whole, its help and type first, no sample twice."""
    kinds: dict[str, str] = {}
    seen: set[str] = set()
    family = ""
    assert text.endswith("\n")
    for number, line in enumerate(text[:-1].split("\n"), 1):
        if line.startswith("# HELP "):
            _, _, family, words = line.split(" ", 3)
            assert words, line
            assert family not in kinds, f"line {number}: {family} comes twice"
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family, line
            assert kind in ("counter", "gauge", "histogram")
            kinds[name] = kind
        else:
            found = SAMPLE.fullmatch(line)
            assert found, f"line {number}: {line}"
            name = re.sub("_(bucket|sum|count)$", "", found[1]) if kinds[family] == "histogram" else found[1]
            assert name == family, line
            assert line.rpartition(" ")[0] not in seen, line
            seen.add(line.rpartition(" ")[0])
    return kinds
