"""The library of a real server: who reads and changes it, jobs that use it, and data sets that are fetched once."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import pailot
from pailot.data.data_sets import DataSets
from pailot.testing.runs import Home

from ..parts import containers, slurm
from ..support.http_server import Answer, Server, job
from ..support.web_server import WebServer

GREETER = """\
# how to greet
name: greeter
type: script
version: {version}
description: Says hello.
callbacks:
  - event: containerStart
    commands: ['export GREETING="hello {version}"']
"""
TEMPLATE = job("starter", "echo from a template")
FETCHERS = ("backup", "mail", "news")


def put(server: Server, text: str, token: str = "", path: str = "greeter", query: str = "") -> Answer:
    return server.ask("PUT", f"/library/{path}{query}", text, token, kind="text/yaml")


def using(name: str, *references: str, command: str = 'echo "$GREETING"') -> str:
    return job(name, command).replace("    taskRetryCount", f"    prerequisites: {json.dumps(references)}\n    taskRetryCount")


def printed(server: Server, name: str, token: str = "") -> str:
    return server.get(f"/jobs/{name}/logs/main/0", token).text


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs", PAILOT_ALLOWED_ADDRESSES="127.0.0.1") as started:
        yield started
        assert "defect" not in started.log.read_text()


def test_an_entry_is_kept_found_used_replaced_and_removed(server: Server) -> None:
    eve = server.user("eve")
    assert put(server, GREETER.format(version=1)).status == 201
    assert put(server, GREETER.format(version=10)).status == 201
    assert put(server, GREETER.format(version=10)).code == "ConflictLibraryError"
    shown = server.get("/library/greeter", eve).json
    assert (shown["version"], shown["versions"], shown["owner"]) == ("10", ["10", "1"], "admin")
    assert shown["text"] == GREETER.format(version=10)
    assert server.get("/library/greeter/1", eve).json["text"] == GREETER.format(version=1)
    assert server.get("/library/greeter/2", eve).code == "NoLibraryEntryError"
    assert [each["name"] for each in server.get("/library?q=HELLO%20admin", eve).json["data"]] == ["greeter"]
    assert server.get("/library?type=data", eve).json["totalCount"] == 0
    assert server.get("/library", None).status == 401

    for reference, words in (("greeter", "hello 10"), ("greeter@1", "hello 1")):
        name = reference.replace("@", "-")
        server.run(using(name, reference), eve)
        assert printed(server, f"eve~{name}", eve) == f"{words}\n"
    assert server.get("/library/greeter/1").json["uses"] == 1
    assert "there is no prerequisite 'greeter@7'" in server.submit(using("none", "greeter@7"), eve).text

    assert put(server, GREETER.format(version=1).replace("hello", "bonjour"), query="?replace=true").status == 200
    again = server.ask("POST", "/jobs/eve~greeter-1/rerun", {}, eve)
    assert again.status == 202, again
    server.wait(again.json["name"], eve)
    assert printed(server, again.json["name"], eve) == "hello 1\n", "a job runs again with what it was submitted with"
    assert server.ask("DELETE", "/library/greeter/1").status == 200
    assert server.get("/library/greeter").json["versions"] == ["10"]
    assert server.ask("DELETE", "/library/greeter").status == 200
    assert server.get("/library/greeter").status == 404
    done = {(each["action"], each["target"], each["status"]) for each in server.get("/audit?limit=1000").json}
    assert ("put-library-entry", "greeter", 201) in done
    assert ("remove-library-version", "greeter/1", 200) in done


def test_only_administrators_and_owners_change_it(server: Server) -> None:
    ann, bob = server.user("ann"), server.user("bob")
    text = GREETER.format(version=1)
    assert put(server, text, ann).code == "ForbiddenUserError"
    assert put(server, text, query="?owner=nobody-here").status == 400
    assert put(server, text, query="?owner=ann").json["owner"] == "ann"
    assert put(server, GREETER.format(version=2), ann).status == 201
    assert put(server, GREETER.format(version=2), bob, query="?replace=true").status == 403
    assert put(server, GREETER.format(version=3), ann, query="?owner=bob").status == 403
    assert server.ask("DELETE", "/library/greeter", token=bob).status == 403
    assert server.get("/library/greeter", ann).json["mayChange"] is True
    assert server.get("/library/greeter", bob).json["mayChange"] is False
    assert server.get("/library", bob).json["mayAdd"] is False
    assert server.ask("DELETE", "/library/greeter", token=ann).status == 200


@pytest.mark.parametrize(
    ("text", "path", "status", "words"),
    [
        ("name: x\ntype: dta\n", "x", 400, "'dta'"),
        ("name: x\ntype: script\n", "y", 400, "the file is 'x@latest'"),
        ("name: x\ntype: script\nversion: 2\n", "x/3", 400, "the request is for 'x@3'"),
        ("name: x\ntype: data\nuri: ['https://a:hunter22word@b.example/']\n", "x", 400, "credential"),
        ("name: x\ntype: script\nversion: ../../x\n", "x", 400, "cannot be kept"),
        ("name: x\ntype: script\ndescription: " + "y" * 300_000, "x", 400, "characters"),
        ("name: x\ntype: script\ndescription: " + "y" * 2_000_000, "x", 413, ""),
        ("", "x", 400, "empty"),
    ],
)
def test_what_is_refused(server: Server, text: str, path: str, status: int, words: str) -> None:
    answer = put(server, text, path=path)
    assert answer.status == status, answer
    assert words in answer.text
    assert server.get("/library/x").status == 404


def test_a_file_can_be_checked_without_being_kept(server: Server) -> None:
    wrong = server.ask("POST", "/library/validate", "name: x\ntype: dta\n", kind="text/yaml").json
    assert [(each["line"], each["column"], each["code"]) for each in wrong["problems"]] == [(2, 7, "bad-value")]
    right = server.ask("POST", "/library/validate", TEMPLATE, kind="text/yaml").json
    assert (right["problems"], right["name"], right["type"]) == ([], "starter", "job")
    assert server.get("/library/starter").status == 404


def test_a_template_is_no_prerequisite(server: Server) -> None:
    assert put(server, TEMPLATE, path="starter").status == 201
    assert server.get("/library?type=job").json["data"][0]["name"] == "starter"
    assert "there is no prerequisite 'starter'" in server.submit(using("x", "starter")).text
    assert server.ask("DELETE", "/library/starter").status == 200


def test_it_is_there_after_a_crash(tmp_path: Path) -> None:
    with Server(tmp_path / "home", "--stop-jobs") as server:
        put(server, GREETER.format(version=1))
        server.kill()
        server.start()
        assert server.get("/library/greeter").json["version"] == "1"
        server.run(using("after", "greeter"))
        assert printed(server, "admin~after") == "hello 1\n"


def test_the_folder_of_the_administrator_comes_first(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "greeter.yaml").write_text(GREETER.format(version=7))
    with Server(tmp_path / "home", "--stop-jobs", PAILOT_LIBRARY=str(folder), PAILOT_LIBRARY_WRITERS="users") as server:
        eve = server.user("eve")
        assert put(server, GREETER.format(version=8), eve).code == "ConflictLibraryError"
        assert put(server, "name: own\ntype: script\n", eve, path="own").status == 201
        listed = server.get("/library", eve).json
        assert [(each["name"], each["source"]) for each in listed["data"]] == [("greeter", "folder"), ("own", "server")]
        server.run(using("x", "greeter"), eve)
        assert printed(server, "eve~x", eve) == "hello 7\n"


class Shelf:
    """A web server that counts what is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.server = WebServer(self.answer)
        self.url = f"http://{self.server.host}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append((request.path, request.headers.get("Authorization", "")))
        request.send_response(200)
        request.end_headers()
        request.wfile.write(b"a thousand pictures\n")


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    made = Shelf()
    yield made
    made.server.close()


def data_set(shelf: Shelf, version: int = 1) -> str:
    return f"name: pictures\ntype: data\nversion: {version}\nplugin: fetch\nuri: ['{shelf.url}/p.bin']\nsize: 20 B\n"


def test_a_data_set_is_fetched_once_for_all_users_and_shown_where_it_lies(server: Server, shelf: Shelf) -> None:
    users = {name: server.user(name) for name in ("fay", "gus", "hal")}
    assert put(server, data_set(shelf), path="pictures").status == 201
    assert [each["state"] for each in server.get("/library/pictures").json["content"]] == ["not-fetched"]
    look = "cat p.bin; readlink p.bin; stat -L -c %a p.bin"
    sent = [server.submit(using("look", "pictures", command=look), token) for token in users.values()]
    assert [each.status for each in sent] == [202] * 3
    for name, token in users.items():
        server.wait(f"{name}~look", token)
    (content,) = server.get("/library/pictures").json["content"]
    assert (content["state"], content["bytes"], content["jobs"]) == ("here", 20, 0)
    for name, token in users.items():
        assert printed(server, f"{name}~look", token) == f"a thousand pictures\n{content['path']}\n444\n"
    assert shelf.asked == [("/p.bin", "")]
    assert put(server, data_set(shelf, 2), path="pictures").status == 201
    server.run(using("two", "pictures", command=look), users["fay"])
    assert len(shelf.asked) == 2, "another version is another content"


def test_what_a_job_itself_defines_is_shared_with_no_other_user(server: Server, shelf: Shelf) -> None:
    ivy, joe = server.user("ivy"), server.user("joe")
    own = f"  - {{name: own, type: data, version: 1, plugin: fetch, uri: ['{shelf.url}/own.bin']}}"
    for token in (ivy, joe):
        text = using("own", "own", command="cat own.bin").replace("taskRoles:", f"{own}\ntaskRoles:", 1)
        server.run(text, token)
    assert len(shelf.asked) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="Unix users need root")
def test_with_unix_users_no_job_can_change_what_others_read(shelf: Shelf) -> None:
    found = [name for name in FETCHERS if any(each.pw_name == name for each in pwd.getpwall())]
    if len(found) < 3:
        pytest.skip(f"the Unix users {', '.join(FETCHERS)} are not all here")
    home = Path("/var/tmp") / f"pailot-data-{os.getpid()}"
    home.mkdir(mode=0o755)
    netrc = Path(pwd.getpwnam(found[1]).pw_dir) / ".netrc"
    options = {
        "PAILOT_UNIX_USERS": f"ann={found[1]}, bob={found[2]}, cal={found[0]}",
        "PAILOT_DATA_CACHE_USER": found[0],
        "PAILOT_ALLOWED_ADDRESSES": "127.0.0.1",
        "XDG_CACHE_HOME": str(home / "xdg"),
    }
    try:
        with Server(home / "server", "--stop-jobs", **options) as server:
            ann, bob, cal = (server.user(name) for name in ("ann", "bob", "cal"))
            assert put(server, data_set(shelf), path="pictures").status == 201
            attack = (
                'id -un; P=$(readlink p.bin); for f in "$P" "$(dirname $P)" "$(dirname $(dirname $P))"; do\n'
                'chmod -R u+w "$f" 2>/dev/null && echo changed; touch "$f/x" 2>/dev/null && echo wrote; done\n'
                'echo poison 2>/dev/null >"$P" && echo wrote; mv "$P" "$P.x" 2>/dev/null && echo moved; cat p.bin'
            )
            told = server.run(using("attack", "pictures", command=attack), ann)
            assert told["jobStatus"]["state"] == "SUCCEEDED", told["jobStatus"]["appExitTriggerMessage"] or told
            assert printed(server, "ann~attack", ann) == f"{found[1]}\na thousand pictures\n"
            server.run(using("read", "pictures", command="id -un; cat p.bin"), bob)
            assert printed(server, "bob~read", bob) == f"{found[2]}\na thousand pictures\n"
            assert shelf.asked == [("/p.bin", "")], f"once, and without credentials of {netrc}"
            (content,) = server.get("/library/pictures").json["content"]
            assert Path(content["path"]).owner() == found[0]
            refused = server.submit(using("no", "pictures"), cal)
            assert refused.status == 403
            assert "data_cache_user" in refused.text
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.mark.parametrize("engine", ["docker", "slurm"])
def test_a_data_set_on_other_engines(engine: str, tmp_path: Path, shelf: Shelf) -> None:
    options = {"PAILOT_ALLOWED_ADDRESSES": "127.0.0.1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    options |= containers.docker().environment if engine == "docker" else slurm.cluster().environment
    with Server(tmp_path / "home", "--engine", engine, "--stop-jobs", **options) as server:
        assert put(server, data_set(shelf), path="pictures").status == 201
        tokens = {name: server.user(name) for name in ("ann", "bob")}
        for name, token in tokens.items():
            command = "cat p.bin; echo changed 2>/dev/null >p.bin || echo read-only"
            text = using("look", "pictures", command=command).replace("uri: debian", f"uri: {containers.IMAGE}")
            told = server.run(text, token)
            assert told["jobStatus"]["state"] == "SUCCEEDED", server.get(f"/jobs/{name}~look/record", token).json["reason"]
            said = printed(server, f"{name}~look", token)
            assert said.startswith("a thousand pictures\n")
            assert engine == "slurm" or said.endswith("read-only\n"), "root may write everywhere on Slurm"
        assert len(shelf.asked) in ((1,) if engine == "docker" else (1, 2))
        (content,) = server.get("/library/pictures").json["content"]
        assert content["state"] == "here"


def test_what_no_job_uses_goes_when_there_is_too_much(tmp_path: Path, shelf: Shelf) -> None:
    cache = tmp_path / "cache"
    options = {"PAILOT_DATA_CACHE": str(cache), "PAILOT_DATA_CACHE_MB": "0", "PAILOT_ALLOWED_ADDRESSES": "127.0.0.1"}
    with Server(tmp_path / "home", "--stop-jobs", **options) as server:
        for version in (1, 2):
            put(server, data_set(shelf, version), path="pictures")
        fifo = tmp_path / "go"
        os.mkfifo(fifo)
        assert server.submit(using("holds", "pictures@1", command=f"cat {fifo} p.bin")).status == 202
        server.begun("admin~holds")
        server.run(using("other", "pictures@2", command="cat p.bin"))
        here = DataSets(str(cache / "server"))
        assert [each.label for each in here.contents()] != []
        assert "pictures@1" in [each.label for each in here.contents()], "a running job uses it"
        with open(fifo, "w") as stream:
            stream.write("go\n")
        server.wait("admin~holds")
        assert printed(server, "admin~holds") == "go\na thousand pictures\n"
        assert [each.label for each in here.evict(0)]
        assert here.contents() == []


def test_the_commands_on_a_server(server: Server, shelf: Shelf, tmp_path: Path) -> None:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("PAILOT_")},
        "PAILOT_HOME": str(tmp_path / "home"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PAILOT_SERVER": server.url,
        "PAILOT_TOKEN": server.token,
    }

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "pailot", *words]
        return subprocess.run(line, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)

    def told(*words: str) -> Any:
        done = command(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    (tmp_path / "set.yaml").write_text(data_set(shelf, 5).replace("pictures", "photos"))
    (tmp_path / "greeter.yaml").write_text(GREETER.format(version=1))
    assert told("library", "add", "set.yaml")["version"] == "5"
    assert "has 'photos@5' already" in command("library", "add", "set.yaml").stderr
    assert told("library", "add", "set.yaml", "--replace")["name"] == "photos"
    assert told("library", "add", "greeter.yaml", "--folder", "own")["file"] == "own/greeter@1.yaml"
    assert "photos" in [each["name"] for each in told("library", "list", "--type", "data")]
    assert told("library", "list", "--type", "script") == []
    assert [each["name"] for each in told("library", "search", "photos", "20")] == []
    assert [each["size"] for each in told("library", "search", "photos")] == [20]
    assert {"greeter", "photos"} <= {each["name"] for each in told("library", "--library", "own", "list")}
    shown = command("library", "show", "photos")
    assert shown.stdout == (tmp_path / "set.yaml").read_text()
    assert "is not on" in shown.stderr

    (tmp_path / "job.yaml").write_text(using("borrows", "photos", command="cat p.bin"))
    sent = command("submit", "job.yaml", "--follow")
    assert sent.returncode == 0, sent.stderr
    assert "a thousand pictures" in sent.stdout
    assert server.get("/jobs/admin~borrows/config?format=text").text == (tmp_path / "job.yaml").read_text()
    assert "lies on" in command("library", "show", "photos").stderr
    assert told("library", "show", "photos@5")["content"][0]["state"] == "here"
    assert told("library", "remove", "photos@5")["name"] == "photos@5"
    assert command("library", "show", "photos").returncode == 2
    assert told("library", "remove", "greeter", "--folder", "own")["file"] == "own/greeter@1.yaml"


def test_the_library_in_python(server: Server) -> None:
    with pailot.Client(server.url, server.token) as client:
        assert client.add_to_library(GREETER.format(version=4).replace("greeter", "pythonic"))["version"] == "4"
        assert [each["name"] for each in client.library("pythonic", "script")] == ["pythonic"]
        assert client.library_entry("pythonic@4")["owner"] == "admin"
        client.remove_from_library("pythonic")
        assert list(client.library("pythonic")) == []


def test_own_runs_share_a_data_set(shelf: Shelf, tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.environment["PAILOT_DATA_CACHE_MB"] = "0"
    (home.cwd / "set.yaml").write_text(data_set(shelf))
    (home.cwd / "job.yaml").write_text(using("look", "pictures", command="cat p.bin"))
    assert home.pailot("library", "add", "set.yaml").status == 0
    for _ in range(2):
        done = home.pailot("run", "job.yaml", "--workdir", "private", "--quiet")
        assert (done.status, done.out) == (0, "a thousand pictures\n"), done
    assert len(shelf.asked) == 1
    told = json.loads(home.pailot("library", "show", "pictures", "--json").out)
    (content,) = told["content"]
    assert (content["state"], content["bytes"]) == ("here", 20)
    assert home.pailot("gc").status == 0
    assert not Path(content["path"]).exists()


def test_many_readers_and_writers_at_once(server: Server) -> None:
    answers: list[int] = []

    def write(number: int) -> None:
        text = f"name: many\ntype: script\nversion: {number}\n"
        answers.append(put(server, text, path="many").status)
        answers.append(server.submit(using(f"many-{number}", f"many@{number}", command="true")).status)
        answers.append(server.get("/library?q=many").status)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(set(answers)) == [200, 201, 202]
    assert server.get("/library/many/3").json["uses"] == 1
    assert server.get("/library/many").json["versions"] == [str(number) for number in range(11, -1, -1)]
