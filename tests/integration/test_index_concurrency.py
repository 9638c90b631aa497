"""The index under real processes: several write at once, one is killed in the middle, one makes the file anew."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pailot.store import Index, JobRow

COMMON = """
import os, sys
from pailot.store import Index, JobRow, NameInUse, new_id
path, number, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
index = Index(path)
def job(name, state="WAITING"):
    return JobRow(new_id(), name, "ann", state, "local", "/jobs", 1.0)
print("ready", flush=True)
sys.stdin.readline()
"""
WRITER = (
    COMMON
    + """
for each in range(count):
    row = job(f"writer{number}-{each}")
    index.add(row)
    assert index.update(row.id, state="RUNNING", started=2.0)
    assert index.update(row.id, state="SUCCEEDED", ended=3.0, exit_code=0)
    assert index.latest(row.name, "ann").ended == 3.0
print("done", flush=True)
"""
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "home" / "index.db")


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def start(processes: list[subprocess.Popen[str]], code: str, path: str, number: int, count: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", code, path, str(number), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    processes.append(process)
    return process


def go(processes: list[subprocess.Popen[str]]) -> None:
    """All have loaded their modules; now all begin."""
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()


def check(path: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_four_processes_write_at_once(path: str, processes: list[subprocess.Popen[str]]) -> None:
    for number in range(4):
        start(processes, WRITER, path, number, 100)
    go(processes)  # none of them finds a file
    for process in processes:
        out, errors = process.communicate(timeout=300)
        assert (out, errors, process.returncode) == ("done\n", "", 0)
    with Index(path) as index:
        rows = index.page(limit=1000)
        assert {row.name for row in rows} == {f"writer{number}-{each}" for number in range(4) for each in range(100)}
        assert {row.state for row in rows} == {"SUCCEEDED"}
        assert index.count() == 400
        assert index.unfinished() == []
    check(path)


def test_only_one_of_several_gets_a_name(path: str, processes: list[subprocess.Popen[str]]) -> None:
    code = (
        COMMON
        + """
for each in range(count):
    try:
        index.add(job(f"job{each}"), exclusive=True)
        print(each)
    except NameInUse as error:
        assert error.row.name == f"job{each}"
"""
    )
    for number in range(4):
        start(processes, code, path, number, 25)
    go(processes)
    won: list[str] = []
    for process in processes:
        out, errors = process.communicate(timeout=300)
        assert errors == ""
        won.extend(out.split())
    assert sorted(won, key=int) == [str(each) for each in range(25)]


def test_a_killed_writer_loses_nothing_it_was_told(path: str, processes: list[subprocess.Popen[str]]) -> None:
    code = (
        COMMON
        + """
for each in range(count):
    row = job(f"writer{number}-{each}")
    index.add(row)
    os.write(1, f"{row.id}\\n".encode())
    index.update(row.id, state="RUNNING", reason="x" * (each % 5000))
"""
    )
    told: list[str] = []
    for attempt in range(8):
        writer = start(processes, code, path, attempt, 100_000)
        go([writer])
        assert writer.stdout
        told.extend(writer.stdout.readline().strip() for _ in range(1 + 7 * attempt))
        writer.send_signal(signal.SIGKILL)
        out, errors = writer.communicate(timeout=300)
        assert errors == ""
        told.extend(out.splitlines())
        with Index(path) as index:
            assert all(index.get(id) for id in told if len(id) == 16)
            index.add(JobRow(f"after{attempt}", "after", "bob", "FAILED", "local", "/jobs", 1.0))
        check(path)
    assert len(told) >= 8


def test_others_go_on_while_the_file_is_made_anew(path: str, processes: list[subprocess.Popen[str]]) -> None:
    code = (
        COMMON
        + """
while not os.path.exists(path + ".stop"):
    row = job(f"writer{number}")
    index.add(row)
    index.update(row.id, state="FAILED")
    index.page()
row = job("last")
index.add(row)
assert index.get(row.id) == row
print("done")
"""
    )
    for number in range(2):
        start(processes, code, path, number, 0)
    go(processes)
    with Index(path) as index:
        for attempt in range(15):
            kept = [JobRow(f"kept{number}", "kept", "ann", "FAILED", "local", "/jobs", 1.0) for number in range(200)]
            assert index.rebuild(kept) == 200
            index.add(JobRow(f"more{attempt}", "more", "ann", "FAILED", "local", "/jobs", 1.0))
            assert index.get(f"more{attempt}")
            time.sleep(0.02)
        Path(path + ".stop").touch()
        for process in processes:
            out, errors = process.communicate(timeout=300)
            assert (out, errors) == ("done\n", "")
        assert index.latest("kept")
        assert len([row for row in index.page(limit=1000) if row.name == "last"]) == 2
    check(path)


def test_a_forked_child_has_a_connection_of_its_own(path: str, processes: list[subprocess.Popen[str]]) -> None:
    code = (
        COMMON
        + """
index.add(job("before"))
children = []
for child in range(3):
    pid = os.fork()
    if not pid:
        for each in range(count):
            index.add(job(f"child{child}"))
        sys.exit(0)
    children.append(pid)
for each in range(count):
    index.add(job("parent"))
print([os.waitpid(pid, 0)[1] for pid in children], index.count())
"""
    )
    start(processes, code, path, 0, 30)
    go(processes)
    assert processes[0].communicate(timeout=120) == ("[0, 0, 0] 121\n", "")
    check(path)
