"""The view of a run of this machine, read from folders that no process drives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pailot.errors import NoSuchRun, PailotError
from pailot.runfolder import journal
from pailot.views.base import Which
from pailot.views.cancellation import Quit
from pailot.views.local import LocalRuns, LocalView

from .folders import FolderOfARun


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(LocalView, "LOOK_SECONDS", 60.0)  # only the kernel tells
    return tmp_path / "home"


def lines(view: LocalView, which: Which | None = None, *, follow: bool = False) -> list[str]:
    return [f"{role}:{index} {text}" for role, index, text in view.lines(which or Which(), follow, Quit())]


class Follower(threading.Thread):
    """Follows in another thread, and tells of each line."""

    def __init__(self, found: Iterator[object]) -> None:
        super().__init__(daemon=True)
        self.seen: list[object] = []
        self.news = threading.Semaphore(0)
        self._found = found
        self.start()

    def run(self) -> None:
        for each in self._found:
            self.seen.append(each)
            self.news.release()

    def next(self) -> object:
        assert self.news.acquire(timeout=60)
        return self.seen[-1]

    def finish(self) -> list[object]:
        self.join(60)
        assert not self.is_alive()
        return self.seen


def test_every_attempt_of_every_task_of_the_latest_attempt_of_the_job(home: Path) -> None:
    run = FolderOfARun(home, main=2)
    run.prints(b"old\n")
    run.prints(b"one\n", attempt=1)
    run.prints(b"two\n", attempt=1, task_attempt=1)
    run.prints(b"other\n", index=1, attempt=1)
    assert lines(run.view) == ["main:0 one", "main:0 two", "main:1 other"]
    assert lines(run.view, Which("main", 0, attempt=0)) == ["main:0 old"]
    assert lines(run.view, Which(task_attempt=1)) == ["main:0 two"]
    run.ends()


@pytest.mark.parametrize(
    ("which", "words"),
    [
        (Which("mian"), "has no role 'mian'; did you mean 'main'"),
        (Which("main", 7), "has no task main:7"),
        (Which(attempt=3), "has no attempt 3: it has 0 to 0"),
        (Which("main", 0, task_attempt=2), "has no attempt 2 of main:0"),
        (Which(task_attempt=2), "has no attempt 2 of any of these tasks"),
    ],
)
def test_what_there_is_not(home: Path, which: Which, words: str) -> None:
    run = FolderOfARun(home, main=2)
    run.prints(b"x\n")
    with pytest.raises(PailotError, match=words):
        lines(run.view, which)
    run.ends()


def test_a_plan_that_is_damaged_says_where_the_logs_are(home: Path) -> None:
    run = FolderOfARun(home)
    Path(run.folder.path, "plan.json").write_text("{")
    with pytest.raises(PailotError, match=r"plan\.json is damaged or missing.*their logs are below"):
        lines(run.view)
    run.ends()


def test_following_goes_over_retries_to_the_end(home: Path) -> None:
    run = FolderOfARun(home)
    run.prints(b"half")
    follower = Follower(run.view.lines(Which(), True, Quit()))
    run.prints(b" a line\nand")
    assert follower.next() == ("main", 0, "half a line")
    run.prints(b"again\n", task_attempt=1)
    assert follower.next() == ("main", 0, "again") or follower.next() == ("main", 0, "again")
    run.prints(b"anew\n", attempt=1)
    run.ends()
    texts = [line[2] for line in follower.finish()]  # type: ignore[index]
    assert texts == ["half a line", "and", "again", "anew"]


def test_following_can_begin_at_the_latest_attempt(home: Path) -> None:
    run = FolderOfARun(home)
    run.prints(b"old\n")
    run.prints(b"new\n", attempt=1)
    run.ends()
    assert lines(run.view, follow=True) == ["main:0 old", "main:0 new"]
    assert lines(run.view, Which(since=1), follow=True) == ["main:0 new"]


def test_following_ends_when_nobody_wants_to_know(home: Path) -> None:
    run, quit = FolderOfARun(home), Quit()
    run.prints(b"first\n")
    follower = Follower(run.view.lines(Which(), True, quit))
    follower.next()
    quit.set()
    assert follower.finish() == [("main", 0, "first")]
    run.ends()


def test_events_come_as_they_happen_each_once(home: Path) -> None:
    run = FolderOfARun(home)
    follower = Follower(event["event"] for event in run.view.events(Quit()))
    assert follower.next() == "submitted"
    run.folder.note(journal.started(0, 1))
    assert follower.next() == "started"
    run.ends()
    assert follower.finish() == ["submitted", "started", "ended"]
    assert [event["event"] for event in run.view.journal()] == ["submitted", "started", "ended"]


def test_a_wait_ends_with_the_run_or_its_time(home: Path) -> None:
    run = FolderOfARun(home)
    assert not run.view.wait(0.01, Quit())
    waited: list[bool] = []
    waiting = threading.Thread(target=lambda: waited.append(run.view.wait(None, Quit())))
    waiting.start()
    run.ends()
    waiting.join(60)
    assert waited == [True]


def test_the_record_names_the_task_that_decided(home: Path) -> None:
    run = FolderOfARun(home, main=2)
    run.task_ends(index=0, lastLines=["not this one"])
    run.task_ends(index=1, lastLines=["the cause"])
    assert (run.view.record()["task"], run.view.record()["lastLines"]) == (None, [])
    run.ends("FAILED", "main:1 exited with 3", role="main", index=1, exit_code=3)
    record = run.view.record()
    assert (record["state"], record["task"], record["lastLines"]) == ("FAILED", "main:1", ["the cause"])
    summary = run.view.summary()
    assert [summary[key] for key in ("name", "id", "state", "reason")] == ["demo", run.id, "FAILED", "main:1 exited with 3"]
    why = run.view.why()
    assert (why.name, why.state, why.lines[-1]) == ("demo", "FAILED", "    the cause")


def test_it_is_found_listed_stopped_and_deleted(home: Path) -> None:
    run = FolderOfARun(home)
    runs = LocalRuns()
    assert runs.find("demo").id == run.id
    assert [row["id"] for row in runs.rows((), every=False, everyone=False)] == [run.id]
    assert runs.rows(("FAILED",), every=False, everyone=False) == []
    assert [view.id for view in runs.search(keyword="dem")] == [run.id]
    view = runs.find("demo")
    view.stop(now=False)
    assert Path(run.folder.path, "stop.json").exists()
    with pytest.raises(PailotError, match="is still running; stop it first"):
        view.delete()
    run.ends("STOPPED", "stopped by the user")
    assert view.file() == "name: demo\n"
    view.delete()
    with pytest.raises(NoSuchRun, match="is gone"):
        run.view.record()
    with pytest.raises(NoSuchRun):
        runs.find("demo")
