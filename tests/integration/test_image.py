"""The image of the server: built without a registry, run without rights on a root file system that cannot be written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from pailot.testing.runs import PATIENCE, wait_for
from tests.parts.containers import Podman, folder_for
from tests.parts.image_base import ENABLE, base_archive
from tests.parts.oidc import free_port
from tests.support.http_server import job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
BASE, IMAGE = "localhost/pailot-base:test", "localhost/pailot:test"
LOCKED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--network=host", "--tmpfs=/tmp")
PASSWORD = "correct-horse"


@pytest.fixture(scope="module")
def engine() -> Iterator[Podman]:
    """A Podman that has the image."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("podman", "runc", "make"))):
        pytest.skip(ENABLE)
    archive = base_archive()
    made = Podman(folder_for("image"))
    try:
        made.run("import", str(archive), BASE)
        environment = {**os.environ, **made.environment, "BUILDAH_ISOLATION": "chroot"}
        venv = f"VENV={Path(sys.prefix)}"
        done = subprocess.run(
            ["make", "image", f"BASE={BASE}", f"IMAGE={IMAGE}", "CONTAINER=podman", venv],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        yield made
    finally:
        made.stop()
        shutil.rmtree(made.folder, ignore_errors=True)


def ask(port: int, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
    line = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        line.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = line.getresponse()
        return answer.status, answer.read().decode()
    finally:
        line.close()


def test_a_server_in_a_container_that_may_do_nothing_runs_a_job(engine: Podman) -> None:
    port = free_port()
    words = ("serve", "--port", str(port))
    engine.run("run", "--detach", "--name=server", *LOCKED, "--env", f"PAILOT_ADMIN_PASSWORD={PASSWORD}", IMAGE, *words)

    def healthy() -> bool:
        try:
            return ask(port, "GET", "/healthz")[0] == 200
        except OSError:
            return False

    wait_for(healthy)
    login = json.dumps({"username": "admin", "password": PASSWORD})
    status, text = ask(port, "POST", "/api/v2/tokens", login, content_type="application/json")
    assert status == 200, text
    bearer = f"Bearer {json.loads(text)['token']}"
    command = "id -u; touch /opt/pailot/x 2>/dev/null || echo read-only"
    status, text = ask(port, "POST", "/api/v2/jobs", job("hello", command), authorization=bearer, content_type="text/yaml")
    assert status == 202, text

    def detail() -> Any:
        return json.loads(ask(port, "GET", "/api/v2/jobs/admin~hello", authorization=bearer)[1])["jobStatus"]["state"]

    wait_for(lambda: detail() in ("SUCCEEDED", "FAILED"))
    assert detail() == "SUCCEEDED"
    assert ask(port, "GET", "/api/v2/jobs/admin~hello/logs/main/0", authorization=bearer)[1] == "10001\nread-only\n"
    ended = engine.run("stop", "--time=30", "server")
    assert ended.returncode == 0
    assert engine.run("inspect", "--format={{.State.ExitCode}}", "server").stdout.strip() == "0"


def test_what_is_in_it(engine: Podman) -> None:
    told = json.loads(engine.run("image", "inspect", IMAGE).stdout)[0]
    assert told["Config"]["User"] == "10001:10001"
    base = json.loads(engine.run("image", "inspect", BASE).stdout)[0]
    assert told["Size"] - base["Size"] < 100_000_000
    inside = engine.run(
        "run", "--rm", *LOCKED, "--entrypoint=/bin/sh", IMAGE, "-c", "pailot --version; ls /wheels /opt/pailot/bin", check=False
    )
    assert "pailot" in inside.stdout
    assert "No such file" in inside.stderr, "the wheels are not in the image"
    assert "pip" not in inside.stdout.split()
