"""What a job on a real server can reach: every way to name a place, with canaries, on every engine."""

from __future__ import annotations

import io
import json
import os
import pwd
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pailot.testing.runs import kill_all_with, no_process_left

from ..parts import containers, slurm
from ..support.http_server import Server
from ..support.web_server import WebServer

CANARY = "canary-that-no-job-may-see"
ENGINES = ("local", "unix_users", "docker", "slurm")
UNIX_USER = "nobody"

JOB = """\
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - {{name: image, type: dockerimage, uri: '{image}'}}
  - {fetched}
secrets: {{way: '{secret}'}}
taskRoles:
  main:
    dockerImage: image
    prerequisites: [f]
    resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 0}}
    commands: ['{command}']
extras: {{pailot: {{{options}}}}}
"""
PLAIN = "{name: f, type: script, plugin: cmd}"
FIELDS = {
    "fetch": "{{name: f, type: data, plugin: fetch, uri: '{uri}'}}",
    "code": "code: '{uri}'",
    "channels.code": "channels: {{code: '{uri}'}}",
    "input": "channels: {{inputs: {{i: '{uri}'}}}}",
    "output": "channels: {{outputs: {{o: '{uri}'}}}}",
}


class Scene:
    """A server, a folder that jobs may use, one that they may not, and a web server that they may ask."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.folder = Path(tempfile.mkdtemp(prefix="pailot-places-"))
        self.folder.chmod(0o755)
        self.store, self.closed = self.folder / "store", self.folder / "closed"
        self.store.mkdir()
        self.store.chmod(0o777)
        (self.store / "data").mkdir()
        (self.store / "data" / "file").write_text("from the store")
        self.closed.mkdir(0o700)
        (self.closed / "canary").write_text(CANARY)
        (self.closed / "canary").chmod(0o600)
        (self.store / "out").symlink_to(self.closed)
        self.inner = WebServer(lambda request: _say(request, CANARY.encode()))
        self.outer = WebServer(self._answer)
        settings = {
            "PAILOT_STORAGE_FOLDERS": f"store={self.store}",
            "PAILOT_ALLOWED_ADDRESSES": self.outer.host,
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }
        arguments = []
        if engine == "unix_users":
            settings["PAILOT_UNIX_USERS"] = f"ann={UNIX_USER}"
        elif engine == "docker":
            settings |= containers.docker().environment
            arguments = ["--engine", "docker"]
        elif engine == "slurm":
            settings |= {**slurm.cluster().environment, "PAILOT_SLURM_POLL_SECONDS": "1"}
            arguments = ["--engine", "slurm"]
        self.server = Server(self.folder / "home", *arguments, **settings).start()
        self.token = self.server.user("ann")
        self.image = containers.IMAGE if engine == "docker" else "debian"

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        if request.path == "/away":
            request.send_response(302)
            request.send_header("Location", f"http://{self.inner.host}/")
            request.end_headers()
        elif request.path.endswith(".tgz"):
            _say(request, _archive())
        else:
            _say(request, b"from the web")

    def text(self, name: str, command: str = "true", field: str = "", uri: str = "", secret: str = "", options: str = "") -> str:
        written = FIELDS[field].format(uri=uri) if field else ""
        fetched, more = (written, "") if field == "fetch" else (PLAIN, written)
        return JOB.format(name=name, image=self.image, fetched=fetched, secret=secret, command=command, options=options or more)

    def run(self, name: str, *arguments: str, **more: str) -> tuple[str, str]:
        """How a job of the user ended, and why."""
        answer = self.server.submit(self.text(name, *arguments, **more), self.token)
        assert answer.status == 202, answer
        self.server.wait(f"ann~{name}", self.token)
        told = self.server.get(f"/jobs/ann~{name}/record", self.token)
        shown = told.json if told.status == 200 else {}
        detail = self.server.get(f"/jobs/ann~{name}", self.token).json["jobStatus"]
        return str(detail["state"]), str(shown.get("reason") or detail)

    def seen(self) -> list[str]:
        """Files of jobs, of the cache and of the folder for all that hold the canary."""
        found = []
        for base in (self.folder / "home" / "jobs", self.folder / "home" / "cache", self.folder / "cache", self.store):
            for parent, _, names in os.walk(base):
                for name in names:
                    path = Path(parent) / name
                    if path.is_file() and not path.is_symlink() and CANARY.encode() in path.read_bytes():
                        found.append(str(path))
        return found

    def close(self) -> None:
        self.server.stop()
        self.inner.close()
        self.outer.close()
        kill_all_with(str(self.folder))
        no_process_left(str(self.folder))
        shutil.rmtree(self.folder, ignore_errors=True)


def _say(request: BaseHTTPRequestHandler, data: bytes) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(len(data)))
    request.end_headers()
    request.wfile.write(data)


def _archive() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        entry = tarfile.TarInfo("main.txt")
        data = b"from the archive"
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


@pytest.fixture(scope="module", params=ENGINES)
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    if os.geteuid() != 0 and request.param != "local":
        pytest.skip("it takes root")
    made = Scene(request.param)
    yield made
    made.close()


def test_what_is_refused_is_refused_at_once(scene: Scene) -> None:
    canary, home = scene.closed / "canary", scene.folder / "home"
    ways = [
        str(canary),
        f"{scene.store}/../closed/canary",
        f"file://{canary}",
        f"local://{canary}",
        f"LOCAL://{home}/keys",
        f"simplecache::file://{canary}",
        f"filecache::local://{canary}",
        f"dir::file://{scene.closed}",
        f"{scene.store}/out/canary",
        f"http://{scene.inner.host}/",
        f"http://2130706433:{scene.inner.host.rpartition(':')[2]}/",
        "http://169.254.169.254/",
        "memory://x",
    ]
    for number, uri in enumerate(ways):
        for field in FIELDS:
            for token in (scene.token, scene.server.token):
                answer = scene.server.submit(scene.text(f"refused-{number}", field=field, uri=uri), token)
                assert answer.status == 400, (field, uri, answer)
                assert CANARY not in answer.text
    answer = scene.server.submit(
        scene.text("secret", field="fetch", uri="<% $secrets.way %>", secret=f"local://{canary}"), scene.token
    )
    assert answer.status == 400, answer
    assert str(canary) not in answer.text


def test_nothing_leads_out_while_a_job_runs(scene: Scene) -> None:
    for field in ("fetch", "code", "channels.code", "input"):
        name = f"away-{field.replace('.', '-')}"
        state, reason = scene.run(name, field=field, uri=f"http://{scene.outer.host}/away")
        assert (state, "allowed_addresses" in reason) == ("FAILED", True), (field, reason)
    assert scene.seen() == []


def test_outputs_cannot_be_made_of_what_is_not_the_jobs(scene: Scene) -> None:
    """A task replaces its output, or a folder on the way there, by a link."""
    for number, command in enumerate(
        (
            f'o="$PAI_OUTPUT_O"; rm -rf "${{o%/}}"; ln -s {scene.closed} "${{o%/}}"',
            f'o="$PAI_OUTPUT_O"; ln -s {scene.closed}/canary "$o/link"; ln -s {scene.closed} "$o/folder"',
            'mkfifo "$PAI_OUTPUT_O/fifo"; echo x >"$PAI_OUTPUT_O/file"',
        )
    ):
        scene.run(f"swap-{number}", command, options=f"channels: {{outputs: {{o: '{scene.store}/swap-{number}'}}}}")
    assert scene.seen() == []
    assert [each.name for each in scene.closed.iterdir()] == ["canary"]
    command = f"rm -rf {scene.store}/target; ln -s {scene.closed} {scene.store}/target; echo mine >$PAI_OUTPUT_O/mine"
    if scene.engine != "docker":  # where the folder is not to be seen
        state, _ = scene.run("target", command, options=f"channels: {{outputs: {{o: '{scene.store}/target/deep'}}}}")
        assert state == "FAILED"
    assert [each.name for each in scene.closed.iterdir()] == ["canary"]


def test_what_is_allowed_works_and_is_the_users_own(scene: Scene) -> None:
    web = f"http://{scene.outer.host}"
    inputs = f"inputs: {{i: '{web}/data', s: '{scene.store}/data', f: 'file://{scene.store}/data/file'}}"
    channels = f"channels: {{{inputs}, outputs: {{o: '{scene.store}/results'}}, code: '{web}/code.tgz'}}"
    command = (
        'cat "$PAI_INPUT_I" >"$PAI_OUTPUT_O/web"; cat "$PAI_INPUT_S/file" >"$PAI_OUTPUT_O/store";'
        'cat "$PAI_INPUT_F" >"$PAI_OUTPUT_O/one"; cat "$PAI_WORKING_DIR/main.txt" >"$PAI_OUTPUT_O/code"'
    )
    state, reason = scene.run("fine", command, options=channels)
    assert state == "SUCCEEDED", reason
    found = {each.name: each.read_text() for each in (scene.store / "results").iterdir()}
    assert found == {"web": "from the web", "store": "from the store", "one": "from the store", "code": "from the archive"}
    if scene.engine == "unix_users":
        owner = pwd.getpwnam(UNIX_USER).pw_uid
        assert {each.stat().st_uid for each in (scene.store / "results").iterdir()} == {owner}
        assert (scene.folder / "home" / "cache" / f"unix-{UNIX_USER}").stat().st_uid == owner
        assert (scene.folder / "home" / "cache" / f"unix-{UNIX_USER}").stat().st_mode & 0o777 == 0o700
    for name, uri, words in (("web", f"{web}/thing", "from the web"), ("store", f"{scene.store}/data/file", "from the store")):
        file = uri.rpartition("/")[2]
        state, reason = scene.run(f"fetch-{name}", f'test "$(cat {file})" = "{words}"', field="fetch", uri=uri)
        assert state == "SUCCEEDED", reason
    state, reason = scene.run("code", 'test "$(cat thing)" = "from the web"', field="code", uri=f"{web}/thing")
    assert state == "SUCCEEDED", reason


def test_a_container_sees_its_own_job_and_nothing_else_of_the_home(scene: Scene) -> None:
    if scene.engine != "docker":
        pytest.skip("tasks of the other engines are processes of the machine")
    home = scene.folder / "home"
    look = (
        f'test "$(ls {home})" = jobs; test "$(ls {home}/jobs | wc -l)" = 1; test ! -e {home}/keys; '
        f"test ! -e {scene.closed}; test ! -e {scene.store}"
    )
    state, reason = scene.run("look", look.replace("'", "''"))
    assert state == "SUCCEEDED", reason
    forged = json.dumps({"kind": "folder", "path": str(scene.closed)})
    attempt = "${PAI_WORK_DIR%/tasks/*}"
    command = f'printf "%s\\\\n" "$FORGED" >{attempt}/outputs.ledger'
    channels = f"channels: {{outputs: {{o: '{scene.store}/forged'}}}}, environment: {{FORGED: '{forged}'}}"
    scene.run("forged", command, options=channels)
    assert (scene.closed / "canary").exists()
