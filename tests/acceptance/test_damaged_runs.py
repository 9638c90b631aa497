"""Every file of a run's folder, damaged in every way: no command ends with a traceback, and other runs are as ever."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pailot.cli.main import main
from pailot.testing.runs import Home, job, role

WRONG: object = {
    "event": 5, "at": "x", "state": [], "reason": {}, "taskRoles": [1], "id": 7, "name": [], "user": None, "retries": "x",
    "started": "x", "ended": "x", "outcome": 3, "ports": 1, "hosts": 2, "why": [], "options": 5, "attempts": {}, "engine": 9,
    "folders": 3, "command": 4, "until": "x", "exitCode": [], "class": 3, "lastLines": 8, "attempt": "x", "submitted": "x",
}  # fmt: skip
DAMAGES: dict[str, Callable[[Path], object]] = {
    "torn": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 20),
    "a list": lambda path: path.write_text("[1, {}]\n"),
    "wrong types": lambda path: path.write_text(json.dumps(WRONG) + "\n"),
    "wrong inside": lambda path: path.write_text(json.dumps(_wrong_inside(path)) + "\n"),
    "missing": lambda path: path.unlink(),
    "a folder": lambda path: _folder_instead(path),  # noqa: PLW0108  # it comes below
}
COMMANDS = (
    ("ps",), ("show", "demo"), ("why", "demo"), ("events", "demo"),
    ("logs", "demo"), ("wait", "demo", "--timeout", "1"), ("stop", "demo", "--no-wait"),
    ("gc", "--dry-run"), ("gc", "--rebuild-index"), ("ps",),
)  # fmt: skip


def _folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "x").write_text("x")


def _wrong_inside(path: Path) -> object:
    """The record with every value of another type."""
    try:
        found = json.loads(path.read_bytes().splitlines()[0])
    except (ValueError, IndexError):
        return 7
    return {key: _other(value) for key, value in found.items()} if isinstance(found, dict) else found


def _other(value: object) -> object:
    if isinstance(value, dict):
        return {key: _other(each) for key, each in value.items()} or [0]
    if isinstance(value, str):
        return {"x": value}
    return "x" if isinstance(value, (int, float, list)) else 5


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with a run that has ended, and another that failed and was tried again."""
    home = Home(tmp_path_factory.mktemp("template"))
    home.run(job(role("echo fine"), name="other"), "--quiet")
    home.run(job(role("echo x; exit 3", retries=1, memory=0), job_retries=1), "--quiet")
    yield home
    home.close()


def files_of_a_run(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file() and "attempts/1" not in str(each))


def _what_is_no_file(_: str, names: list[str]) -> set[str]:
    return {name for name in names if name == "control" or name.startswith("index.db")}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("over", [True, False], ids=["ended", "its driver gone"])
def test_no_traceback_and_a_line_that_says_what(
    template: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], damage: str, over: bool
) -> None:
    for name, value in template.environment.items():
        monkeypatch.setenv(name, value)
    home, index_file = tmp_path / "home", tmp_path / "index.db"
    monkeypatch.setenv("PAILOT_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    original = next(each for each in template.jobs() if json.loads((each / "job.json").read_text())["name"] == "demo")
    folder = home / "jobs" / original.name
    shutil.copytree(template.folder / "home", home, ignore=_what_is_no_file)
    if not over:
        (folder / "verdict.json").unlink()
    assert main(["gc", "--rebuild-index"]) == 0
    os.rename(home / "index.db", index_file)
    pristine = Path(shutil.copytree(folder, tmp_path / "pristine"))
    problems = []
    for file in files_of_a_run(pristine):
        if damage not in ("binary", "a folder") and not file.endswith((".json", "journal", "claim", "job.yaml")):
            continue  # what is in a log or a script is the task's
        shutil.rmtree(folder)
        shutil.copytree(pristine, folder)
        os.mkfifo(folder / "control")
        for path in home.glob("index.db*"):
            path.unlink()
        shutil.copy(index_file, home / "index.db")
        DAMAGES[damage](folder / file)
        capfd.readouterr()
        for command in COMMANDS:
            try:
                status = main(list(command))
            except BaseException as error:  # what we look for
                problems.append(f"{file}: {' '.join(command)}: {type(error).__name__}: {error}")
                continue
            out, err = capfd.readouterr()
            if "Traceback" in err or (status and not err.startswith("pailot: ") and "wait" not in command):
                problems.append(f"{file}: {' '.join(command)}: {status} {err[-300:]!r}")
            if command == ("ps",) and "other" not in out:
                problems.append(f"{file}: ps hides the other run: {err!r}")
    assert not problems, "\n" + "\n".join(problems)
