"""The command line as a user meets it: real processes, real files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
HELLO = str(EXAMPLES / "hello" / "job.yaml")

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def pailot(tmp_path: Path) -> Run:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PAILOT_")} | {
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "LOGNAME": "me",
    }

    def run(*arguments: str, text: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pailot", *arguments]
        return subprocess.run(
            command, input=text, capture_output=True, text=True, cwd=tmp_path, env=environment | more, check=False
        )

    return run


@pytest.mark.parametrize("job", sorted(EXAMPLES.glob("*/job.*")), ids=lambda path: path.parent.name)
def test_every_example_is_valid_without_a_warning_and_can_be_planned(pailot: Run, job: Path) -> None:
    library = ("--library", str(EXAMPLES / "library"))
    checked = pailot("validate", "--strict", str(job), *library)
    assert checked.stdout == f"{job}: ok\n"
    planned = pailot("plan", "--json", str(job), *library)
    assert planned.returncode == 0
    for role in json.loads(planned.stdout)["taskRoles"].values():
        for script in role["script"].values():
            assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


def test_validate_prints_problems_with_line_and_caret(pailot: Run, tmp_path: Path) -> None:
    bad = Path(HELLO).read_text().replace("    commands:", "    comands:").replace("cpu: 1", "cpu: four")
    (tmp_path / "bad.yaml").write_text(bad)
    done = pailot("validate", "bad.yaml")
    assert done.returncode == 2
    assert done.stdout.splitlines() == [
        "bad.yaml:12:3: error[missing-key]: 'commands' is missing in a task role",
        "      worker:",
        "      ^",
        "bad.yaml:15:12: error[wrong-type]: should be a whole number, is the text 'four'",
        "          cpu: four",
        "               ^",
        "bad.yaml:18:5: error[unknown-key]: 'comands' is not known in a task role; did you mean 'commands'?",
        "        comands:",
        "        ^",
        "bad.yaml: invalid (3 errors)",
    ]


def test_validate_json_holds_nothing_else(pailot: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [")
    done = pailot("validate", "--json", "bad.yaml", HELLO)
    assert done.returncode == 2
    (problem,) = json.loads(done.stdout)
    assert set(problem) == {"file", "line", "column", "severity", "code", "message", "path"}
    assert (problem["file"], problem["code"], done.stderr) == ("bad.yaml", "yaml-syntax", "")


def test_strict_turns_warnings_into_errors(pailot: Run) -> None:
    assert pailot("validate", HELLO, "--set", "parameters.idle=1").returncode == 0
    assert pailot("validate", "--strict", HELLO, "--set", "parameters.idle=1").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("validate", "missing.yaml"), "missing.yaml:1:1: error[file-unreadable]: cannot be read: No such file or directory"),
        (("validate", "."), "cannot be read: Is a directory"),
        (("plan", "missing.yaml"), "No such file or directory"),
        (("plan", HELLO, "--role", "workr"), "there is no role 'workr'; did you mean 'worker'?"),
        (("plan", HELLO, "--index", "1"), "role 'worker' has tasks 0 to 0"),
        (("plan", HELLO, "--set", "parameters"), "write it as path=value"),
        (("plan", HELLO, "--secret", "x=@/no/such/file"), "cannot be read"),
        (("plan", HELLO, "--secret", "x=env:NO_SUCH_VARIABLE"), "no variable 'NO_SUCH_VARIABLE'"),
        (("plan", HELLO, "--deployment", "none"), "there is no deployment 'none'"),
        (("vlidate", HELLO), "there is no command 'vlidate'; did you mean 'validate'?"),
        (("--vrsion",), "there is no option '--vrsion'"),
        (("library", "show", "nothing"), "there is no 'nothing'"),
        (("library", "remove", "nothing"), "there is no 'nothing'"),
        (("init", "--roles", "0"), "between 1 and 50"),
    ],
)
def test_bad_input_is_exit_status_2_and_words_not_a_traceback(pailot: Run, arguments: tuple[str, ...], words: str) -> None:
    done = pailot(*arguments)
    assert done.returncode == 2
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "wrong-type"),
        (b"\x00\x01\x02", "yaml-encoding"),
        (b"\xff\xfe", "yaml-encoding"),
        (b"[" * 100_000, "yaml-limit"),
        (b"a: " + b"x" * 1_048_577, "yaml-limit"),
        (b"\xed\xa0\x80", "yaml-encoding"),
        (b"a: 1\na: 2\n", "yaml-duplicate-key"),
        (b"a: 1\n---\nb: 2\n", "yaml-documents"),
    ],
)
def test_hostile_files_get_one_clean_error(pailot: Run, tmp_path: Path, data: bytes, code: str) -> None:
    (tmp_path / "job.yaml").write_bytes(data)
    done = pailot("validate", "job.yaml", "--json")
    assert done.returncode == 2
    assert [problem["code"] for problem in json.loads(done.stdout)] == [code]


def test_standard_input_is_a_file_too(pailot: Run) -> None:
    done = pailot("validate", "-", text=Path(HELLO).read_text())
    assert (done.returncode, done.stdout) == (0, "-: ok\n")


def test_plan_shows_what_runs(pailot: Run) -> None:
    done = pailot("plan", HELLO, "--set", "parameters.greeting=Good morning", "--name", "other", "--vc", "fast")
    assert done.returncode == 0
    assert done.stdout.startswith("me~other: 1 role, 1 task in virtual cluster 'fast'\n")
    assert '    | echo "Good morning from task $PAI_TASK_INDEX of $PAI_CURRENT_TASK_ROLE_NAME"' in done.stdout


def test_plan_of_one_task_shows_its_environment(pailot: Run) -> None:
    done = pailot("plan", HELLO, "--set", "taskRoles.worker.instances=3", "--index", "2")
    assert "    | PAI_TASK_INDEX=2\n" in done.stdout
    assert "    | WORLD_SIZE=3\n" in done.stdout


def test_secrets_never_show(pailot: Run, tmp_path: Path) -> None:
    job = str(EXAMPLES / "deployment" / "job.yaml")
    (tmp_path / "file").write_text("from-a-file-5678\n")
    for secret in ("token=in-clear-1234", f"token=@{tmp_path}/file", "token=env:MY_TOKEN"):
        for extra in ((), ("--json",)):
            done = pailot("plan", job, "--deployment", "cluster", "--secret", secret, *extra, MY_TOKEN="from-env-9012")
            assert done.returncode == 0
            for value in ("in-clear-1234", "from-a-file-5678", "from-env-9012", "not-a-real-one"):
                assert value not in done.stdout + done.stderr
            assert "<% $secrets.token %>" in done.stdout


def test_lenient_keeps_what_cannot_be_resolved(pailot: Run) -> None:
    change = ("--set", 'taskRoles.worker.commands=["echo <% $nope.x %>"]')
    assert pailot("plan", HELLO, *change).returncode == 2
    assert "echo <% $nope.x %>" in pailot("plan", HELLO, *change, "--lenient").stdout


def test_schema_accepts_the_examples(pailot: Run) -> None:
    schema = json.loads(pailot("schema").stdout)
    assert schema["required"] == ["protocolVersion", "name", "type", "taskRoles"]
    assert "commands" in schema["properties"]["taskRoles"]["additionalProperties"]["required"]
    assert schema["additionalProperties"] is False


def test_convert_there_and_back(pailot: Run, tmp_path: Path) -> None:
    legacy = EXAMPLES / "legacy-v1" / "job.json"
    made = pailot("convert", str(legacy))
    assert made.returncode == 0
    (tmp_path / "v2.yaml").write_text(made.stdout)
    assert pailot("validate", "--strict", "v2.yaml").returncode == 0
    back = json.loads(pailot("convert", "v2.yaml", "--to", "v1").stdout)
    assert back["jobName"] == "legacy-v1"
    assert [role["command"] for role in back["taskRoles"]] == [
        role["command"] for role in json.loads(legacy.read_text())["taskRoles"]
    ]


@pytest.mark.parametrize("options", [(), ("--roles", "3"), ("--distributed",), ("--roles", "2", "--distributed")])
def test_init_writes_a_valid_job_and_never_overwrites(pailot: Run, options: tuple[str, ...]) -> None:
    assert pailot("init", *options).returncode == 0
    assert pailot("validate", "--strict", "job.yaml").stdout == "job.yaml: ok\n"
    again = pailot("init", *options)
    assert (again.returncode, "is there already" in again.stderr) == (2, True)


def test_an_editor_finds_the_schema_of_a_starter(pailot: Run, tmp_path: Path) -> None:
    assert pailot("init", str(tmp_path / "job.yaml")).returncode == 0
    first = (tmp_path / "job.yaml").read_text().splitlines()[0]
    (named,) = re.findall(r"^# yaml-language-server: \$schema=(\S+)$", first)
    assert json.loads((tmp_path / named).read_text()) == json.loads(pailot("schema").stdout)
    (tmp_path / named).write_text("{}")
    assert pailot("init", str(tmp_path / "other.yaml")).returncode == 0
    assert (tmp_path / named).read_text() == "{}", "a schema of the user's own is kept"
    assert "yaml-language-server" not in pailot("init", "-").stdout  # it would lie nowhere


GATHER = """\
import os, socket, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(("", place[1])) as server:
        callers = [server.accept()[0] for _ in range(size - 1)]
    print("group", 0, *sorted(int(caller.recv(16)) for caller in callers), flush=True)
else:
    caller = None
    while caller is None:
        try:
            caller = socket.create_connection(place)
        except OSError:
            time.sleep(0.02)  # rank 0 does not listen yet
    caller.sendall(str(rank).encode())
    caller.recv(16)  # until rank 0 has them all
"""
"""What a distributed program does first: every rank reports to rank 0."""


@pytest.mark.parametrize(("roles", "changes", "tasks"), [("1", (), 2), ("2", (), 3), ("3", ("taskRoles.worker.instances=3",), 6)])
def test_a_distributed_starter_runs_as_one_group(
    pailot: Run, tmp_path: Path, roles: str, changes: tuple[str, ...], tasks: int
) -> None:
    """Also after the number of tasks has been changed."""
    text = pailot("init", "-", "--roles", roles, "--distributed").stdout
    (tmp_path / "gather.py").write_text(GATHER)
    gather = f"      - {sys.executable} {tmp_path / 'gather.py'}\n"
    last = next(line for line in text.splitlines(keepends=True) if "rank 0 listens" in line)
    (tmp_path / "group.yaml").write_text(text.replace(last, last + gather))
    limits = ["--set", "extras.pailot.maxRunSeconds=60"]  # two groups would wait for ever
    done = pailot("run", "group.yaml", *limits, *(word for change in changes for word in ("--set", change)))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.partition("] ")[2] for line in done.stdout.splitlines()]
    assert f"group {' '.join(map(str, range(tasks)))}" in lines
    assert sorted(line for line in lines if line.startswith("task")) == [
        f"task {rank} of {tasks}, 2 epochs" for rank in range(tasks)
    ]
    assert len({line for line in lines if line.startswith("rank 0 listens at")}) == 1


def test_library_round_trip(pailot: Run) -> None:
    job = str(EXAMPLES / "library" / "job.yaml")
    greeter = str(EXAMPLES / "library" / "greeter.yaml")
    assert "there is no prerequisite 'greeter'" in pailot("validate", job).stdout
    assert pailot("library", "add", greeter).returncode == 0
    assert pailot("validate", job).returncode == 0
    assert "has 'greeter' already" in pailot("library", "add", greeter).stderr
    assert pailot("library", "add", "--replace", greeter).returncode == 0
    assert [entry["name"] for entry in json.loads(pailot("library", "--json", "list").stdout)] == ["greeter"]
    assert pailot("library", "show", "greeter").stdout == Path(greeter).read_text()
    assert pailot("library", "remove", "greeter").returncode == 0
    assert json.loads(pailot("library", "--json", "list").stdout) == []


def test_library_add_refuses_what_is_no_prerequisite(pailot: Run, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("name: x\ntype: dta\n")
    done = pailot("library", "add", "x.yaml")
    assert done.returncode == 2
    assert "x.yaml:2:7: error[bad-value]" in done.stderr


def test_settings_come_from_file_and_environment(pailot: Run, tmp_path: Path) -> None:
    job = str(EXAMPLES / "library" / "job.yaml")
    (tmp_path / "pailot.toml").write_text(f'library = ["{EXAMPLES / "library"}"]\n')
    assert pailot("validate", job).returncode == 0
    assert pailot("validate", job, PAILOT_LIBRARY="/no/such/folder").returncode == 2
    (tmp_path / "pailot.toml").write_text("librry = []\n")
    assert "there is no setting 'librry'; did you mean 'library'?" in pailot("validate", job).stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_every_command(pailot: Run, shell: str) -> None:
    script = pailot("completion", shell).stdout
    for word in ("validate", "plan", "convert", "library"):
        assert word in script
    assert "strict" in script


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m pailot schema | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""
