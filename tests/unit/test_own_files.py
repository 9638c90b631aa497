"""Files that a job names and that are looked at where it is read: `authFile` and `code`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pailot
from pailot.job_values import Auth
from pailot.loading import read_job
from pailot.planning.private_values import private_values

SECRET = "hunter2-of-the-registry"


def v1(**more: object) -> str:
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": "true"}
    return json.dumps({"jobName": "demo", "image": "registry.example/tool", "taskRoles": [role], **more}, indent=1)


def v2(auth_file: str) -> str:
    return f"""\
protocolVersion: 2
name: demo
type: job
prerequisites:
  - {{name: with, type: dockerimage, uri: a/with, auth: {{username: ann, password: <% $secrets.word %>, registryuri: a}}}}
  - {{name: without, type: dockerimage, uri: b/without}}
secrets: {{word: another word}}
taskRoles:
  one: {{dockerImage: with, resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 0}}, commands: ["true"]}}
  two: {{dockerImage: without, resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 0}}, commands: ["true"]}}
extras:
  pailot:
    authFile: {auth_file}
"""


def test_three_lines_become_the_credentials_of_images_without_their_own(tmp_path: Path) -> None:
    file = tmp_path / "auth"
    file.write_text(f"registry.example\nann\n{SECRET}\n")
    job = pailot.loads(v2(str(file)))
    plan = pailot.plan(job)
    assert not [each for each in plan.warnings if each.code == "auth-file"]
    one, two = plan.roles["one"].image.auth, plan.roles["two"].image.auth
    assert one
    assert one.password == "<% $secrets.word %>"
    assert two
    assert (two.registry, two.username, two.password) == ("registry.example", "ann", "******")
    logins = private_values(job, plan).logins
    assert logins == {"one": Auth("ann", "another word", "a"), "two": Auth("ann", SECRET, "registry.example")}
    shown = json.dumps(plan.to_json()) + repr(plan)
    assert SECRET not in shown
    assert plan.to_json()["taskRoles"]["two"]["imageAuth"] == {
        "username": "ann",
        "password": "******",
        "registryuri": "registry.example",
    }


def test_the_file_may_be_at_any_address() -> None:
    import fsspec

    with fsspec.open("memory://keys/auth", "wb") as stream:
        stream.write(f"registry.example\r\nann\r\n{SECRET}\r\n".encode())
    job = pailot.loads(v1(authFile="memory://keys/auth"))
    assert private_values(job, pailot.plan(job)).logins["main"].password == SECRET


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("none", None, "none: cannot be read: No such file or directory; images are pulled without it"),
        ("auth", f"{SECRET}\n", "auth should have three lines: registry, user, password; it has 1; images are pulled without it"),
        ("memory://keys/none", None, "memory://keys/none: there is no such file; images are pulled without it"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_warning_with_its_place(
    file: str, text: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path(file).write_text(text)
    (problem,) = pailot.loads(v1(authFile=file)).warnings
    assert (problem.code, problem.message, problem.line, problem.path) == ("auth-file", words, 14, "authFile")
    (problem,) = (each for each in pailot.loads(v2(file)).warnings if each.code == "auth-file")
    assert (problem.line, problem.column, problem.path) == (13, 15, "extras.pailot.authFile")


def test_files_that_a_stranger_names_are_not_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "auth"
    file.write_text(f"registry.example\nann\n{SECRET}\n")
    job = read_job(v1(authFile=str(file), codeDir="nowhere"), "-", own_files=False)
    assert job.registry_auth is None
    assert job.warnings == ()


def test_a_large_code_folder_is_a_warning(tmp_path: Path) -> None:
    with (tmp_path / "data").open("wb") as stream:
        stream.truncate(200_000_001)
    (problem,) = pailot.loads(v1(codeDir=str(tmp_path))).warnings
    assert (problem.code, problem.path) == ("code-folder", "codeDir")
    assert "holds more than 200 MB" in problem.message
    (tmp_path / "data").write_bytes(b"little")
    assert pailot.loads(v1(codeDir=str(tmp_path))).warnings == ()
