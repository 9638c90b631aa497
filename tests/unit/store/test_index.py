"""The index of runs: what is found, in which order, how much work that is, and what is said when the file is broken."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pailot.errors import PailotError
from pailot.lifecycle.states import FINAL_JOB_STATES, JOB_STATES
from pailot.store import Index, JobRow, NameInUse, StoreError, new_id
from pailot.store.index import open_file, page_query


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index(str(tmp_path / "home" / "index.db")) as opened:
        yield opened


def row(number: int = 0, **changes: Any) -> JobRow:
    """Job number 7 has an id that sorts behind job number 6's."""
    plain = {
        "id": f"{number:016d}",
        "name": "train",
        "user": "ann",
        "state": "SUCCEEDED",
        "engine": "local",
        "folder": f"/jobs/{number}",
        "submitted": 1e9 + number,
    }
    return JobRow(**{**plain, **changes})


ANOTHER_ID: dict[str, Any] = {"name": "other", "id": "other"}


def ids(rows: list[JobRow]) -> list[int]:
    return [int(row.id) for row in rows]


# Ids


def test_ids_sort_by_time_and_are_never_the_same() -> None:
    made = [new_id() for _ in range(2000)]
    assert made == sorted(set(made))
    assert {len(id) for id in made} == {16}
    assert all(id.isalnum() and id == id.lower() for id in made)


def test_ids_of_two_processes_sort_by_time() -> None:
    before = new_id()
    code = "from pailot.store import new_id; print(new_id())"
    between = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert before < between < new_id()


# Rows


def test_a_row_comes_back_as_it_was(index: Index) -> None:
    full = row(
        1,
        started=1.5,
        ended=2.25,
        tasks=3,
        retries=2,
        exit_code=-9,
        reason="worker:0 was killed\nby signal 9 — 内存不足",
        vc="default",
        labels={"team": "vision", "größe": "1"},
        tags=("keep", "nightly"),
    )
    index.add(full)
    index.add(row(2))
    assert index.get(full.id) == full
    assert index.get(row(2).id) == row(2)
    assert index.get("nothing") is None


def test_a_folder_may_have_any_name(index: Index) -> None:
    strange = row(1, folder=os.fsdecode(b"/jobs/\xff\xfe"), reason="half a character: \ud83d")
    index.add(strange)
    assert index.get(strange.id) == strange
    assert index.resolve(os.fsdecode(b"\xff\xfe\xff\xfe\xff\xfe")) is None
    assert index.page(name_like=os.fsdecode(b"\xff")) == []


def test_an_update_changes_only_what_it_names(index: Index) -> None:
    index.add(row(1, state="WAITING"))
    assert index.update(row(1).id, state="RUNNING", started=5.0, tags=("a",))
    assert index.get(row(1).id) == row(1, state="RUNNING", started=5.0, tags=("a",))
    assert index.update(row(1).id, tags=(), labels={"a": "b"}, exit_code=None)
    assert index.get(row(1).id) == row(1, state="RUNNING", started=5.0, labels={"a": "b"})
    assert index.update(row(1).id)
    assert not index.update("nothing", state="FAILED")
    assert not index.update("nothing")


def test_mistakes_of_the_caller_are_not_blamed_on_the_file(index: Index) -> None:
    index.add(row(1))
    with pytest.raises(TypeError, match="'colour'"):
        index.update(row(1).id, colour="red")
    with pytest.raises(TypeError, match="'id'"):
        index.update(row(1).id, **ANOTHER_ID)
    for mistake in (
        lambda: index.add(row(2, state="DONE")),
        lambda: index.update(row(1).id, state="DONE"),
        lambda: index.page(states=("DONE",)),
    ):
        with pytest.raises(ValueError, match="'DONE'"):
            mistake()
    with pytest.raises(sqlite3.ProgrammingError):
        index.update(row(1).id, reason=object())
    with pytest.raises(StoreError, match="already"):
        index.add(row(1, name="other"))
    with pytest.raises(StoreError, match="NOT NULL"):
        index.update(row(1).id, reason=None)
    assert index.get(row(1).id) == row(1)
    assert index.count() == 1


def test_runs_can_be_forgotten(index: Index) -> None:
    index.rebuild(row(number) for number in range(2500))
    assert index.remove(row(number).id for number in range(2400)) == 2400
    assert index.remove([row(0).id, row(2400).id]) == 1
    assert index.remove([]) == 0
    assert index.count() == 99


# Names


def test_the_latest_run_under_a_name(index: Index) -> None:
    for number, user in enumerate(["ann", "bob", "ann", "bob", "carl"]):
        index.add(row(number, user=user))
    index.add(row(9, name="other"))
    assert index.latest("train") == row(4, user="carl")
    assert index.latest("train", "ann") == row(2)
    assert index.latest("train", "dora") is None
    assert index.latest("nothing") is None


@pytest.mark.parametrize("state", JOB_STATES)
def test_a_run_is_active_until_it_has_ended(index: Index, state: str) -> None:
    index.add(row(1, state=state))
    index.add(row(2))
    over = state in FINAL_JOB_STATES
    assert index.active("train", "ann") == (None if over else row(1, state=state))
    assert index.active("train", "bob") is None
    assert index.unfinished() == ([] if over else [row(1, state=state)])


def test_a_name_in_use_is_refused_only_where_asked(index: Index) -> None:
    index.add(row(1, state="RUNNING"), exclusive=True)
    with pytest.raises(NameInUse, match=r"^job 'train' of ann is still running \(id 0+1\)$") as refused:
        index.add(row(2), exclusive=True)
    assert refused.value.row == row(1, state="RUNNING")
    index.add(row(3, user="bob"), exclusive=True)
    index.add(row(4))
    index.update(row(1).id, state="STOPPED")
    index.add(row(5), exclusive=True)
    assert ids(index.page()) == [5, 4, 3, 1]


def test_what_a_person_may_write_for_a_run(index: Index) -> None:
    index.add(row(1, id="1abcdefgh0000001"))
    index.add(row(2, id="1abcdefgh0000002", name="serve"))
    index.add(row(3, id="1abcxyzzz0000003", user="bob"))
    index.add(row(4, id="1abcxyzzz0000004", name="a~b"))
    first, second, third, fourth = reversed(index.page())
    assert index.resolve("1abcdefgh0000001", "bob") == first
    assert index.resolve("1abcdefgh0000002") == second
    assert index.resolve("train", "ann") == first
    assert index.resolve("train", "bob") == third
    assert index.resolve("train") == third
    assert index.resolve("ann~train", "bob") == first
    assert index.resolve("bob~serve", "ann") is None
    assert index.resolve("a~b", "ann") == fourth
    assert index.resolve("1abcxyzzz0000003", "ann") == third
    assert index.resolve("1abcd", "ann") is None  # too short to be meant
    assert index.resolve("", "ann") is None
    index.remove([fourth.id])
    assert index.resolve("1abcxy", "ann") == third
    with pytest.raises(
        StoreError, match=r"^the ids of several jobs .* '1abcde': 1abcdefgh0000002 \(serve\), 1abcdefgh0000001 \(train\);"
    ):
        index.resolve("1abcde", "ann")
    index.add(row(5, id="2000000000000000", name="1abcde"))
    found = index.resolve("1abcde", "ann")
    assert found
    assert found.name == "1abcde"


# Pages


def test_pages_are_newest_first_and_follow_each_other(index: Index) -> None:
    index.rebuild(row(number) for number in range(120))
    first = index.page()
    assert ids(first) == list(range(119, 69, -1))
    second = index.page(before=first[-1].id)
    assert ids(second) == list(range(69, 19, -1))
    assert ids(index.page(before=second[-1].id)) == list(range(19, -1, -1))
    assert index.page(before=row(0).id) == []
    assert index.page(limit=0) == []


def test_pages_of_some_runs_only(index: Index) -> None:
    rows = [
        row(number, state=JOB_STATES[number % 7], user=("ann", "bob")[number % 2], name=("Train_1", "serve", "100%")[number % 3])
        for number in range(210)
    ]
    index.rebuild(rows)
    rows.reverse()
    for states in ((), ("FAILED",), ("RUNNING", "WAITING", "RUNNING"), JOB_STATES):
        for user in (None, "ann", "nobody"):
            for like in ("", "train", "RVE", "_", "%", "zzz"):
                for before in (None, row(100).id):
                    wanted = [
                        row
                        for row in rows
                        if (not states or row.state in states)
                        and (user is None or row.user == user)
                        and like.lower() in row.name.lower()
                        and (before is None or row.id < before)
                    ]
                    assert index.page(states, like, user, 20, before) == wanted[:20], (states, user, like, before)


# Work


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """100,000 runs of 5 users, half of them under one name; 10 have not ended."""
    path = tmp_path_factory.mktemp("large") / "index.db"
    columns = ", ".join(JobRow._fields)
    marks = ", ".join("?" * len(JobRow._fields))
    rest = (
        "local",
        "/home/someone/.local/share/pailot/jobs/somewhere",
        1e9,
        1e9,
        2e9,
        4,
        0,
        0,
        "all tasks ended",
        "",
        None,
        None,
    )
    connection = open_file(str(path))
    connection.execute("BEGIN")
    connection.executemany(
        f"INSERT INTO jobs ({columns}) VALUES ({marks})",
        (
            (f"{number:016d}", "train" if number % 2 else f"job-{number}", f"user{number % 5}", _state(number), *rest)
            for number in range(100_000)
        ),
    )
    connection.execute("COMMIT")
    connection.close()
    with Index(str(path)) as index:
        yield index


def _state(number: int) -> str:
    return "RUNNING" if number % 10_000 == 7 else ("SUCCEEDED", "FAILED", "STOPPED")[number % 3]


QUICK = {
    "page": lambda index: index.page(),
    "page in the middle": lambda index: index.page(before="0000000000050000"),
    "page of a state": lambda index: index.page(states=("RUNNING",)),
    "page of states": lambda index: index.page(states=("SUCCEEDED", "FAILED", "WAITING")),
    "page of a user": lambda index: index.page(user="user3"),
    "page of a user and a state": lambda index: index.page(user="user2", states=("RUNNING",)),
    "page of nobody": lambda index: index.page(user="nobody"),
    "page with a name that many have": lambda index: index.page(name_like="AIN"),
    "latest": lambda index: index.latest("train"),
    "latest of a user": lambda index: index.latest("train", "user1"),
    "latest of nobody": lambda index: index.latest("train", "nobody"),
    "active": lambda index: index.active("train", "user2"),
    "not active": lambda index: index.active("train", "user1"),
    "unfinished": lambda index: index.unfinished(),
    "get": lambda index: index.get("0000000000050000"),
    "resolve": lambda index: index.resolve("nothing", "user1"),
    "resolve the beginning of no id": lambda index: index.resolve("1000000", "user1"),
}


@pytest.mark.parametrize("question", QUICK)
def test_questions_do_not_grow_with_the_index(large: Index, question: str) -> None:
    QUICK[question](large)
    connection = large._connection
    assert connection
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.set_progress_handler(count, 10)
    try:
        QUICK[question](large)
    finally:
        connection.set_progress_handler(None, 0)
    assert steps * 10 < 12_000  # of SQLite's machine; one look at each row would be 300,000


@pytest.mark.parametrize(
    ("query", "used"),
    [
        (page_query((), "", None, 50, None), {"SEARCH jobs USING PRIMARY KEY (id<?)"}),
        (page_query((), "x", "ann", 50, None), {"SEARCH jobs USING PRIMARY KEY (id<?)"}),
        (page_query(("FAILED",), "", None, 50, None), {"jobs_by_state (state=? AND id<?)"}),
        (page_query(("FAILED", "STOPPED"), "", "ann", 50, None), {"jobs_by_user (user=? AND state=? AND id<?)"}),
        (page_query((), "", "ann", 50, None), {"jobs_by_user (user=? AND state=? AND id<?)"}),
    ],
)
def test_pages_use_an_index(large: Index, query: tuple[str, tuple[Any, ...]], used: set[str]) -> None:
    large.page()
    assert large._connection
    plan = [line[3] for line in large._connection.execute("EXPLAIN QUERY PLAN " + query[0], query[1])]
    assert all(any(part in line for line in plan) for part in used), plan
    assert not any(line.startswith("SCAN jobs") for line in plan), plan
    assert not any(line == "USE TEMP B-TREE FOR ORDER BY" for line in plan), plan


def test_the_large_index_answers_rightly(large: Index) -> None:
    assert large.count() == 100_000
    assert ids(large.unfinished()) == list(range(7, 100_000, 10_000))
    assert large.latest("train") == large.get("0000000000099999")
    assert ids(large.page(user="user2", states=("RUNNING",), limit=3)) == [90_007, 80_007, 70_007]


# The file


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    with Index(str(tmp_path / "home" / "index.db")) as index:
        assert (index.page(), index.get("x"), index.unfinished(), index.count(), index.remove(["x"])) == ([], None, [], 0, 0)
        assert index.resolve("nothing", "ann") is None
        assert not index.exists()
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_safe_against_a_power_cut(index: Index) -> None:
    index.add(row(1))
    assert index._connection
    ask = index._connection.execute
    assert [ask(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "busy_timeout")] == ["wal", 2, 10_000]


def test_it_can_be_closed_and_used_again(index: Index) -> None:
    index.close()
    index.add(row(1))
    index.close()
    index.close()
    assert index.count() == 1
    assert repr(index) == f"Index({index.path!r})"


@pytest.mark.parametrize(
    "content", [b"this is not a database, whatever its name says" * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_garbage_is_said_in_one_line_that_helps(index: Index, content: bytes) -> None:
    os.mkdir(os.path.dirname(index.path))
    Path(index.path).write_bytes(content)
    for question in (index.page, index.count, lambda: index.add(row(1))):
        with pytest.raises(StoreError, match=r"damaged .*; make it anew with: pailot gc --rebuild-index$") as broken:
            question()
        assert str(broken.value).startswith(index.path)
        assert "\n" not in str(broken.value)
    assert index.rebuild([row(1), row(2), row(2, reason="later")]) == 2
    assert index.page() == [row(2, reason="later"), row(1)]
    assert Path(index.path + ".damaged").read_bytes() == content


def test_a_damaged_page_is_said(index: Index) -> None:
    index.rebuild(row(number) for number in range(3000))
    size = os.path.getsize(index.path)
    with open(index.path, "r+b") as stream:
        stream.seek(4096)
        stream.write(os.urandom(size - 4096))
    with pytest.raises(StoreError, match="pailot gc --rebuild-index"):
        index.page()
    assert index.rebuild([row(1)]) == 1
    index.add(row(2))
    assert ids(index.page()) == [2, 1]


def test_somebody_elses_database_is_not_touched(index: Index) -> None:
    os.mkdir(os.path.dirname(index.path))
    connection = sqlite3.connect(index.path)
    connection.execute("CREATE TABLE jobs (wages)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="pailot gc --rebuild-index"):
        index.page()


def test_a_file_made_anew_is_noticed_by_those_who_have_it_open(index: Index) -> None:
    index.add(row(1))
    with Index(index.path) as other:
        assert other.count() == 1
        assert other.rebuild([row(2), row(3)]) == 2
        other.add(row(4))
        assert ids(index.page()) == [4, 3, 2]
        index.add(row(5))
        assert ids(other.page()) == [5, 4, 3, 2]
        os.unlink(index.path)
        assert index.page() == []
        index.add(row(6))
        assert ids(other.page()) == [6]
    assert not [file for file in os.listdir(os.path.dirname(index.path)) if ".new" in file]


def test_a_failed_rebuild_changes_nothing(index: Index) -> None:
    index.add(row(1))

    def rows() -> Iterator[JobRow]:
        yield row(2)
        raise RuntimeError("a folder is gone")

    with pytest.raises(RuntimeError):
        index.rebuild(rows())
    assert ids(index.page()) == [1]
    assert sorted(os.listdir(os.path.dirname(index.path))) == ["index.db", "index.db-shm", "index.db-wal", "index.db.lock"]


def test_the_rows_of_a_rebuild_may_come_from_the_index(index: Index) -> None:
    index.add(row(1))
    index.add(row(2))
    assert index.rebuild(found for number in (1, 2) if (found := index.get(row(number).id))) == 2


def test_a_failed_write_leaves_no_half_of_it(index: Index) -> None:
    index.add(row(1))

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM jobs")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index._write(work)
    assert ids(index.page()) == [1]
    index.add(row(2))


def test_threads_may_share_an_index(index: Index) -> None:
    failed: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for number in range(first, first + 50):
                index.add(row(number, state="WAITING"))
                index.update(row(number).id, state="FAILED")
                assert index.page(limit=5)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(1000 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert index.count() == 200
    assert index.unfinished() == []


def test_a_lock_that_is_never_given_back_is_said(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pailot.store.index.BUSY_SECONDS", 0.05)
    index.add(row(1))
    holder = sqlite3.connect(index.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="other processes have kept it locked"):
        index.add(row(2))
    assert ids(index.page()) == [1]
    holder.execute("ROLLBACK")
    holder.close()
    index.add(row(2))


def test_a_gate_that_is_never_opened_is_said(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr("pailot.store.index.BUSY_SECONDS", 0.05)
    os.mkdir(os.path.dirname(index.path))
    with open(index.path + ".lock", "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match="another process has been opening it"):
            index.add(row(1))
    index.add(row(1))


def test_a_full_database_is_said(index: Index) -> None:
    index.add(row(1))
    assert index._connection
    index._connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(StoreError, match=r": the disk is full$"):
        index.add(row(2, reason="x" * 50_000))
    assert index.get(row(1).id) == row(1)


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with Index(str(tmp_path / "home" / "index.db")) as index, pytest.raises(StoreError, match=r"index\.db: cannot be opened: "):
        index.add(row(1))


# On file systems of our own, where we may mount some


def mounted(options: str, code: str, folder: Path) -> str:
    """What Python code says that runs with a small file system on a folder."""
    unshare = shutil.which("unshare")
    script = f'mount -t tmpfs {options} none "$1" && shift && exec "$@"'
    for flags in (["-m"], ["-r", "-m"]):
        start = [unshare or "unshare", *flags, "sh", "-c", script, "sh", str(folder)]
        if unshare and subprocess.run([*start, "true"], capture_output=True, check=False).returncode == 0:
            done = subprocess.run([*start, sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout
    pytest.skip("this user may not mount file systems")


COMMON = """
import os, sys
from pailot.store import Index, JobRow, StoreError
index = Index(sys.argv[1] + "/index.db")
def add(number):
    index.add(JobRow(f"{number:016d}", "train", "ann", "FAILED", "local", "/jobs", 1.0, reason="x" * 1000))
"""


def test_a_full_disk_is_said_and_what_was_kept_stays(tmp_path: Path) -> None:
    code = (
        COMMON
        + """
kept = 0
try:
    for number in range(10_000):
        add(number)
        kept += 1
except StoreError as error:
    print(error)
print(kept, Index(index.path).count())
try:
    index.rebuild(JobRow(f"{number:016d}", "n", "u", "FAILED", "local", "/jobs", 1.0) for number in range(10_000))
except StoreError as error:
    print(error)
print(len([file for file in os.listdir(sys.argv[1]) if ".new" in file]))
"""
    )
    said = mounted("-o size=512k", code, tmp_path).splitlines()
    assert said[0] == said[2] == f"{tmp_path}/index.db: the disk is full"
    kept, counted = said[1].split()
    assert kept == counted != "0"
    assert said[3] == "0"


def test_a_read_only_home_is_said(tmp_path: Path) -> None:
    code = (
        COMMON
        + """
import subprocess
add(1)
index.close()
subprocess.run(["mount", "-o", "remount,ro", sys.argv[1]], check=True)
for work in (lambda: add(2), index.page, lambda: index.rebuild([])):
    try:
        work()
    except StoreError as error:
        print(error)
"""
    )
    said = mounted("", code, tmp_path).splitlines()
    assert said == [f"{tmp_path}/index.db: cannot be written: it, or its folder, is read-only"] * 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_said(index: Index) -> None:
    index.add(row(1))
    index.close()
    os.chmod(os.path.dirname(index.path), 0o500)
    try:
        with pytest.raises(StoreError, match="read-only"):
            index.add(row(2))
    finally:
        os.chmod(os.path.dirname(index.path), 0o700)


def test_the_room_itself_loads_no_database() -> None:
    code = "import sys; from pailot.store import is_network, SecretBox; print(*({'sqlite3', 'cryptography'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_errors_of_the_room_are_pailot_errors() -> None:
    import pickle

    import pailot.store

    assert issubclass(StoreError, PailotError)
    error = NameInUse(row(1, state="RUNNING"))
    assert pickle.loads(pickle.dumps(error)).row == error.row
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pailot.store.nothing  # noqa: B018  # that is the test
    assert all(getattr(pailot.store, name) for name in pailot.store.__all__)


def test_another_connection_of_this_process_takes_no_lock_away(tmp_path: Path) -> None:
    """To close any descriptor of a database ends the process's locks on it: another process then takes its log away."""
    path = str(tmp_path / "home" / "index.db")
    look = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM jobs').fetchone()[0])"

    def seen_by_another_process() -> int:
        return int(subprocess.run([sys.executable, "-c", look, path], capture_output=True, text=True, check=True).stdout)

    with Index(path) as first:
        first.add(row(1))
        with Index(path) as second:
            second.get("1")
        assert seen_by_another_process() == 1
        first.add(row(2, name="two"))
        assert seen_by_another_process() == 2
