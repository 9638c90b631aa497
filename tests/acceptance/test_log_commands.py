"""`pailot logs` with times, last lines, search and download: the same here and through a server."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import zipfile
from pathlib import Path

import pytest

from pailot.testing.runs import Home, job, role

from ..support.servers import Server, submit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PRINTS = "for i in 1 2 3; do echo line $i; sleep 0.1; echo oops $i >&2; sleep 0.1; done; [ $FC_TASK_ATTEMPT_ID = 1 ]"
JOB = job(role(PRINTS, instances=2, retries=1), name="prints")
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}"


@pytest.fixture(scope="module", params=["here", "server"])
def home(request: pytest.FixtureRequest) -> Iterator[Home]:
    """A place where the job has run."""
    folder = Path(tempfile.mkdtemp(prefix="pailot-logs-"))
    server = Server(folder / "server") if request.param == "server" else None
    (folder / "mine").mkdir()
    made = server.client(folder / "mine") if server else Home(folder / "mine")
    if server:
        submit(made, JOB)
        assert made.pailot("wait", "prints").status == 0
    else:
        assert made.run(JOB).status == 0
    yield made
    made.close()
    if server:
        server.close()
    shutil.rmtree(folder)


def test_times_and_streams(home: Home) -> None:
    lines = home.pailot("logs", "prints", "main", "0", "--task-attempt", "1", "-t").lines
    assert [re.sub(TIME, "T", line) for line in lines] == [
        f"T {stream} {word} {number}" for number in (1, 2, 3) for stream, word in (("stdout", "line"), ("stderr", "oops"))
    ]
    assert lines == sorted(lines)
    both = home.pailot("logs", "prints", "--timestamps").lines
    assert len(both) == 24
    assert all(re.fullmatch(rf"\[main:[01]\] {TIME} (stdout|stderr) \w+ \d", line) for line in both)
    only = home.pailot("logs", "prints", "main", "0", "--task-attempt", "1", "-t", "--stream", "stderr").lines
    assert only == [line for line in lines if "stderr" in line]
    assert home.pailot("logs", "prints", "main", "1", "-t", "-f").lines == home.pailot("logs", "prints", "main", "1", "-t").lines


def test_the_last_lines(home: Home) -> None:
    assert home.pailot("logs", "prints", "main", "0", "--tail", "2").lines == ["line 3", "oops 3"]
    assert home.pailot("logs", "prints", "main", "0", "--tail", "99").lines[:2] == ["line 1", "oops 1"]
    assert home.pailot("logs", "prints", "main", "0", "--tail", "0").lines == []
    assert sorted(home.pailot("logs", "prints", "--tail", "1").lines) == ["[main:0] oops 3", "[main:1] oops 3"]
    assert home.pailot("logs", "prints", "main", "0", "--tail", "1", "-f").lines == ["oops 3"]
    assert home.pailot("logs", "prints", "--tail", "-1").status == 2


def test_lines_since_a_time(home: Home) -> None:
    assert len(home.pailot("logs", "prints", "--since", "1h").lines) == 24
    assert home.pailot("logs", "prints", "--since", "2222-01-01").lines == []
    assert len(home.pailot("logs", "prints", "--since", "2020-01-01T10:00", "--tail", "3").lines) == 6
    third = home.pailot("logs", "prints", "main", "0", "--task-attempt", "0", "-t").lines[4]
    assert home.pailot("logs", "prints", "--since", third[:19]).status == 0
    refused = home.pailot("logs", "prints", "--since", "soon\x1b[31m")
    assert (refused.status, "\x1b" in refused.err) == (2, False)


def test_lines_that_match(home: Home) -> None:
    found = home.pailot("logs", "prints", "--grep", "oops [12]").lines
    assert [re.sub(TIME, "T", line) for line in found] == [
        f"[main:{index} 0.{attempt}] {number * 2} T oops {number}" for index in (0, 1) for attempt in (0, 1) for number in (1, 2)
    ]
    assert home.pailot("logs", "prints", "--grep", "OOPS").err == "pailot: no line matches\n"
    assert len(home.pailot("logs", "prints", "main", "1", "--grep", "OOPS", "-i").lines) == 6
    told = json.loads(home.pailot("logs", "prints", "--grep", "oops 3", "--json").out)
    assert [(each["index"], each["taskAttempt"], each["line"], each["stderr"]) for each in told] == [
        (index, attempt, 6, True) for index in (0, 1) for attempt in (0, 1)
    ]
    assert "regular expression" in home.pailot("logs", "prints", "--grep", "(").err
    assert home.pailot("logs", "prints", "--grep", "x", "-f").status == 2


def test_all_logs_in_one_file(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    assert home.pailot("logs", "prints", "--download", str(path)).status == 0
    with zipfile.ZipFile(path) as file:
        names = sorted(name.partition("/")[2] for name in file.namelist())
        assert file.read(file.namelist()[0]).startswith(b"line 1\noops 1\n")
    assert names == [f"attempt-0/main-{index}/try-{number}.log" for index in (0, 1) for number in (0, 1)]
    assert [each.name for each in tmp_path.iterdir()] == ["all.zip"]
    assert home.pailot("logs", "prints", "--download", str(tmp_path / "no" / "all.zip")).status == 2
