"""Every file of a run replaced by what does harm: nothing of others is shown, nothing blocks, nobody beside it notices."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pailot.cli.main import main
from pailot.runfolder.layout import STREAMS
from pailot.testing.runs import Home, wait_for
from pailot.testing.runs import job as plain_job
from pailot.testing.runs import role as plain_role

from ..support.http_server import Server, job
from .conftest import unix_users

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CANARY = "canary-of-somebody-else"
LARGE = 10 << 30
SECONDS = 120


def link(path: Path, canary: Path) -> None:
    path.symlink_to(canary)


def fifo(path: Path, _: Path) -> None:
    os.mkfifo(path)


def folder(path: Path, _: Path) -> None:
    path.mkdir()


def device(path: Path, _: Path) -> None:
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero: it never ends
    except PermissionError:
        path.symlink_to("/dev/zero")


def sparse(path: Path, _: Path) -> None:
    path.touch()
    os.truncate(path, LARGE)


REPLACEMENTS = [link, fifo, folder, device, sparse]


def files_below(place: Path) -> list[Path]:
    """All that is no folder, as paths below the place; those of a task's working directory are its own."""
    found = []
    for parent, folders, files in os.walk(place):
        folders[:] = [name for name in folders if name != "work"]
        found += [Path(parent, name).relative_to(place) for name in files]
    return sorted(found)


@contextlib.contextmanager
def in_time(what: object) -> Iterator[None]:
    """An error where something waits that should not: for a machine that is very busy."""

    def stuck(*_: object) -> None:
        raise AssertionError(f"stuck with {what}")

    before = signal.signal(signal.SIGALRM, stuck)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def spoilt(place: Path, file: Path, replace: Callable[[Path, Path], None], canary: Path) -> Iterator[None]:
    path, kept = place / file, place.parent / "kept"
    os.rename(path, kept)
    replace(path, canary)
    try:
        yield
    finally:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        os.rename(kept, path)


def test_a_server_shows_nothing_and_goes_on(tmp_path: Path) -> None:
    """It is root here, and its users are Unix users; the files of a run that is over are replaced by root, as no user could."""
    canary = tmp_path / "canary"
    canary.write_text(f'{{"{CANARY}": 1, "event": "{CANARY}", "outcome": "{CANARY}"}}\n')
    with Server(None, "--stop-jobs", **(unix_users("ann") if os.geteuid() == 0 else {})) as server:
        ann = server.user("ann")
        assert server.submit(job("beside", "touch up; until [ -e go ]; do sleep 0.02; done")).status == 202
        beside = wait_for(lambda: list(server.home.glob("jobs/*/attempts/0/tasks/main-0/work/up")), what="the neighbour's task")[
            0
        ]
        server.run(job("own", "echo out; exit 1", retries=1), ann)
        (place,) = [path for path in server.home.glob("jobs/*") if "own" in (path / "job.json").read_text()]
        files = files_below(place)
        names = {path.name for path in files}
        assert {"final.json", "exit.json", "journal", "job.json", "plan.json", "stdout", "all", "environment", "claim"} <= names
        task = "/jobs/ann~own/attempts/0/taskRoles/main/taskIndex/0/attempts"
        asked = [
            "/jobs/ann~own",
            "/jobs/ann~own/events",
            "/jobs/ann~own/why",
            "/jobs/ann~own/config",
            task,
            f"{task}/1/logs",
            "/jobs",
        ]
        for file in files:
            for replace in REPLACEMENTS:
                with spoilt(place, file, replace, canary), in_time((file, replace.__name__)):
                    for path in asked:
                        answer = server.get(path, ann)
                        assert CANARY not in answer.text, (file, replace.__name__, path)
                        assert answer.status in (200, 404), (file, replace.__name__, path, answer)
        assert canary.read_text().count(CANARY) == 3
        beside.with_name("go").touch()
        assert server.wait("admin~beside")["jobStatus"]["state"] == "SUCCEEDED"
        assert "defect" not in server.log.read_text()


def test_a_user_can_replace_nothing_but_what_is_his(tmp_path: Path) -> None:
    """A task tries it, with the names of all files of a run that were found in that of another job of his."""
    canary = tmp_path / "canary"
    canary.write_text(CANARY)
    with Server(None, "--stop-jobs", **unix_users("ann")) as server:
        ann = server.user("ann")
        server.run(job("first", "exit 1", retries=1), ann)
        (first,) = server.home.glob("jobs/*")
        names = " ".join(sorted({str(path) for path in (*files_below(first), Path("stop.json"), Path("attempts/0/kill"))}))
        tries = f"""set +e
cd ../../../../..
for each in {names}; do
  for way in "ln -sfn {canary}" mkfifo mkdir "truncate -s {LARGE}" unlink; do
    $way "$each" 2>/dev/null && echo "did $way $each"
  done
done
truncate -s {LARGE} $PAI_CHECKPOINT_DIR/large; rm -rf "$PAI_WORK_DIR"; ln -s /etc "$PAI_WORK_DIR"; mkfifo $PAI_CHECKPOINT_DIR/pipe
exit 1"""
        for command in (tries, "echo again; exit 1"):
            name = "tries" if command is tries else "again"
            detail = server.run(job(name, command, retries=1), ann)
            assert detail["jobStatus"]["state"] == "FAILED"
        log = server.get("/jobs/ann~tries/attempts/0/taskRoles/main/taskIndex/0/attempts/0/logs", ann).json["locations"]
        text = server.get(next(each["uri"] for each in log if each["name"] == "stdout"), None).text
        assert [line for line in text.splitlines() if "peers.json" not in line] == []  # that one is his own
        assert canary.read_text() == CANARY


def test_commands_show_nothing_and_go_on(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = home.folder / "canary"
    canary.write_text(f'{{"{CANARY}": 1, "event": "{CANARY}", "outcome": "{CANARY}"}}\n')
    home.run(plain_job(plain_role("echo out; exit 1", retries=1), name="own"))
    home.run(plain_job(plain_role("echo fine"), name="other"))
    place = next(path for path in (home.folder / "home/jobs").glob("*") if '"own"' in (path / "job.json").read_text())
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    for file in files_below(place):
        for replace in REPLACEMENTS:
            with spoilt(place, file, replace, canary), in_time((file, replace.__name__)):
                for words in (["ps"], ["show", "own"], ["logs", "own"], ["events", "own"], ["why", "own"]):
                    if words[0] == "logs" and replace is sparse and file.name in STREAMS:
                        continue  # it would print all of it, as of any long log
                    out = io.StringIO()
                    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.suppress(SystemExit):
                        main(words)
                    assert CANARY not in out.getvalue(), (file, replace.__name__, words)
                    assert words != ["ps"] or "other" in out.getvalue(), (file, replace.__name__, out.getvalue())
    assert canary.read_text().count(CANARY) == 3
