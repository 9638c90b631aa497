"""No credential of a job, wherever it stands, is in a file, a row of a database, an answer or a line of output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pailot.testing.runs import Home

from ..parts.canaries import Canaries, found_below, found_in
from ..support.http_server import Server

COMMANDS = (
    ["ps"], ["ps", "--json"], ["show"], ["show", "--json"], ["logs"], ["logs", "--json"], ["events"], ["events", "--json"],
    ["why"], ["why", "--json"], ["wait"], ["enter", "--json"],
)  # fmt: skip


def everything_said(home: Home, name: str) -> bytes:
    """What every command says of a run."""
    said = [home.pailot(words[0], *([name] if words[0] != "ps" else []), *words[1:]) for words in COMMANDS]
    return "".join(each.out + each.err for each in said).encode()


@pytest.mark.parametrize("end", ["true", "echo the end; false"])
def test_a_run_shows_and_keeps_no_credential(home: Home, end: str) -> None:
    made = Canaries(end=end)
    inherited = made.inherited()
    home.environment |= inherited
    done = home.run(made.job)
    assert done.status == (0 if end == "true" else 1), done
    texts = [*made.texts.values(), *(value.rpartition(":")[2].partition("@")[0] for value in inherited.values())]
    in_logs = [text for text in texts if "ANYNAME" not in text]  # no name, no shape: nobody can know it
    said = done.out + done.err + "".join(home.pailot(*words, "job.yaml").out for words in (["plan"], ["plan", "--json"]))
    said += home.pailot("validate", "job.yaml").err + home.pailot("validate", "job.yaml", "--json").out
    assert found_in(said.encode() + everything_said(home, "canaries"), in_logs) == []
    assert found_below(home.folder, in_logs, without=[home.cwd / "job.yaml"]) == {}
    logs = [path for path in home.folder.rglob("attempts/0/*") if path.name in ("all", "stdout", "exit.json")]
    assert logs
    records = found_below(
        home.folder, texts, without=[home.cwd / "job.yaml", *home.folder.rglob("stdout"), *home.folder.rglob("all")]
    )
    assert {Path(path).name for path in records} <= {
        "exit.json",
        "final.json",
        "journal",
        "verdict.json",
    }  # last lines of the log
    environment = next(home.folder.rglob("environment")).read_text()
    assert "PRICE=12\0" in environment
    assert "PATH=" in environment
    assert "ANY_NAME_AT_ALL" not in environment


def test_a_run_is_repeated_with_the_credentials_that_were_taken_out_of_its_file(home: Home) -> None:
    made = Canaries()
    assert home.run(made.job, "--quiet").status == 0
    again = home.pailot("rerun", "canaries", "--quiet")  # its last command checks a variable
    assert again.status == 0, again
    assert found_in((again.out + again.err).encode(), made.texts.values()) == []
    assert found_below(home.folder, made.texts.values(), without=[home.cwd / "job.yaml"]) == {}


def test_enter_has_the_variables_of_the_shell_that_it_is_typed_in(home: Home) -> None:
    made = Canaries()
    assert home.run(made.job, "--quiet", GITHUB_PAT="of-the-run-1").status == 0
    home.environment |= {"GITHUB_PAT": "of-the-shell-2", "EDITOR": "of-the-shell"}
    done = home.pailot("enter", "canaries", "main", "0", "--command", "echo $GITHUB_PAT $PRICE $PAI_TASK_INDEX")
    assert done.out == "of-the-shell-2 12 0\n", done


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs") as started:
        yield started


PATHS = ("", "/config", "/record", "/journal", "/plan", "/events", "/why", "/attempts/0", "/logs/main/0", "/job-attempts/0")


def test_a_server_shows_and_keeps_no_credential(server: Server) -> None:
    made = Canaries(end="false")
    assert server.submit(made.job).status == 202
    assert server.wait("canaries")["jobStatus"]["state"] == "FAILED"
    config = server.get("/jobs/admin~canaries/config").json
    assert config["prerequisites"][0]["auth"] == {"username": "ann", "password": "******", "registryuri": "registry.example"}
    assert config["extras"]["pailot"]["environment"]["PRICE"] == "12"
    for path in PATHS:
        answer = server.get(f"/jobs/admin~canaries{path}")
        assert found_in(answer.body, made.texts.values()) == [], path
    assert found_in(server.get("/jobs").body, made.texts.values()) == []
    assert "secret '******'" in server.get("/jobs/admin~canaries/logs/main/0").text
    assert found_below(server.home, made.texts.values()) == {}


def test_a_server_starts_a_job_again_with_its_credentials(server: Server) -> None:
    made = Canaries("again")
    assert server.submit(made.job).status == 202
    assert server.wait("again")["jobStatus"]["state"] == "SUCCEEDED"
    answer = server.ask("POST", "/jobs/admin~again/rerun", {"name": "once-more"})
    assert answer.status < 300, answer
    assert server.wait("once-more")["jobStatus"]["state"] == "SUCCEEDED"
    assert found_below(server.home, made.texts.values()) == {}


def test_a_job_that_waits_survives_the_server_with_its_credentials(tmp_path: Path) -> None:
    made = Canaries("waits")
    with Server(tmp_path / "home", "--stop-jobs", PAILOT_CPUS="1") as server:
        release = tmp_path / "release"
        server.submit(
            json.dumps(
                {
                    "protocolVersion": 2, "name": "first", "type": "job",
                    "prerequisites": [{"name": "i", "type": "dockerimage", "uri": "debian"}],
                    "taskRoles": {"w": {
                        "dockerImage": "i", "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0},
                        "commands": [f"until [ -e {release} ]; do sleep 0.05; done"],
                    }},
                }
            )
        )  # fmt: skip
        assert server.submit(made.job).status == 202
        server.kill()
        assert found_below(server.home, made.texts.values()) == {}
        server.start()
        release.touch()
        assert server.wait("waits")["jobStatus"]["state"] == "SUCCEEDED"
        assert found_below(server.home, made.texts.values()) == {}


def test_another_member_does_not_get_the_owners_credentials(server: Server) -> None:
    made = Canaries("mine")
    owner, other = server.user("owner"), server.user("other")
    assert server.submit(made.job, owner).status == 202
    server.wait("owner~mine")
    refused = server.ask("POST", "/jobs/owner~mine/rerun", {"name": "theirs", "secrets": {"token": "of another"}}, token=other)
    assert refused.status == 400, refused
    assert "holds credentials of its owner outside of 'secrets'" in refused.json["message"]
    assert found_in(refused.body, made.texts.values()) == []


@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_a_problem_in_a_line_with_a_credential_does_not_repeat_it(home: Home, command: str) -> None:
    made = Canaries()
    text = made.job.replace('"12"', '"12 <% $nothing %>"').replace("$parameters.signed %>", "$parameters.nothing %>")
    text = text.replace("MYSQL_PWD=", "<% $nothing %> MYSQL_PWD=")
    for each in (text, text.replace("api_key:", "require: 1, api_key:"), text.replace("password: ", "password:\t")):
        (home.cwd / "job.yaml").write_text(each)  # the others are no YAML
        done = home.pailot(command, "job.yaml")
        assert done.status == 2, done
        assert found_in((done.out + done.err).encode(), made.texts.values()) == []
