"""`pailot run` with predecessors, without a server: the run waits for other runs of this home."""

from __future__ import annotations

from pathlib import Path

import pytest

from pailot.testing.runs import Home, job, role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.close()


def write(home: Home, name: str, command: str, more: str = "") -> str:
    (home.cwd / f"{name}.yaml").write_text(job(role(command), name=name) + more)
    return f"{name}.yaml"


def test_a_run_waits_for_another_and_says_so(home: Home, tmp_path: Path) -> None:
    gate, order = tmp_path / "gate", tmp_path / "order"
    first = write(home, "first", f"until [ -e {gate} ]; do sleep 0.05; done; echo first >> {order}")
    second = write(home, "second", f"echo second >> {order}")
    assert home.pailot("run", first, "--detach").status == 0
    assert home.pailot("run", second, "--detach", "--after", "first").status == 0
    assert "it waits for first to succeed" in home.pailot("why", "second").out
    assert home.show("second")["state"] == "WAITING"
    gate.touch()
    assert home.pailot("wait", "second").status == 0
    assert order.read_text().split() == ["first", "second"]


def test_what_a_failure_does(home: Home, tmp_path: Path) -> None:
    home.pailot("run", write(home, "breaks", "exit 3"), "--quiet")
    stopped = home.pailot("run", write(home, "follows", f"touch {tmp_path}/ran"), "--after", "breaks")
    assert stopped.status == 3
    assert "it was to start after breaks succeeded, and breaks FAILED: main:0 exited with 3" in stopped.err
    assert not (tmp_path / "ran").exists()
    assert home.show("follows")["state"] == "STOPPED"
    assert home.pailot("run", write(home, "cleans", "true"), "--after", "breaks:end").status == 0


def test_a_run_that_waits_can_be_stopped(home: Home) -> None:
    home.pailot("run", write(home, "long", "sleep 1000"), "--detach")
    assert home.pailot("run", write(home, "behind", "true"), "--detach", "--after", "long").status == 0
    assert home.pailot("stop", "behind").lines == ["behind STOPPED"]
    assert home.pailot("stop", "long", "--now").status == 0


@pytest.mark.parametrize("wish", ["nowhere", "first:later"])
def test_one_line_for_what_cannot_be_followed(home: Home, wish: str) -> None:
    done = home.pailot("run", write(home, "second", "true"), "--after", wish)
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert home.pailot("ps", "--json").out.strip() == "[]"
    file = write(home, "third", "true", f"extras: {{pailot: {{after: ['{wish}']}}}}\n")
    assert home.pailot("run", file).status == 2
