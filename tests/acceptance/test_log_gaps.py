"""Logs that rotate faster than they are read: every follower tells how much is missing, and glues no two lines together."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import pailot
from pailot.testing.runs import PATIENCE, Home, job, role, wait_for

from ..support.servers import Server, submit

ROTATE = "0.02"  # megabytes; four such files are kept
LINES = 40_000
LINE = re.compile(r"\d{12} x{20}")
GAP = re.compile(r"pailot: main:0: (\d+) bytes of its log were rotated away before they could be read")


def chatter(gate: Path) -> str:
    """A first line, then very many once the gate is open."""
    lines = f"awk 'BEGIN {{ for (n = 1; n <= {LINES}; n++) printf \"%012d xxxxxxxxxxxxxxxxxxxx\\n\", n }}'"
    return job(role(f"printf '%012d ' 0; until [ -e {gate} ]; do sleep 0.05; done; echo xxxxxxxxxxxxxxxxxxxx; {lines}"))


def check(out: str, err: str) -> None:
    """Whole lines in their order, and not a byte that was neither shown nor told of."""
    total = (LINES + 1) * 34
    gaps = list(map(int, GAP.findall(err)))
    missing = sum(gaps)
    assert missing > 0, err
    # Of the line before a gap the reader may have had the first half, which is ended; never the second half of another.
    torn = [line for line in out.splitlines() if not LINE.fullmatch(line)]
    assert all(re.fullmatch(r"\d{0,12}( x{0,19})?", line) for line in torn), torn
    assert len(torn) <= len(gaps)
    numbers = [int(line.split()[0]) for line in out.splitlines() if LINE.fullmatch(line)]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == LINES
    assert len(out) + missing - total == len(torn)  # the ends of those halves


def halted_follower(home: Home, gate: Path) -> tuple[str, str]:
    """`logs -f` that is halted while the task prints all it has."""
    follower = home.popen([sys.executable, "-m", "pailot", "logs", "-f", "demo"])
    assert follower.stdout
    first = follower.stdout.read(13)
    assert first == f"{0:012d} "
    follower.send_signal(signal.SIGSTOP)
    gate.touch()
    assert home.pailot("wait", "demo").status == 0
    follower.send_signal(signal.SIGCONT)
    out, err = follower.communicate(timeout=PATIENCE)
    return first + out, err


def test_logs_follow(home: Home, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    assert home.run(chatter(gate), "--detach", PAILOT_LOG_ROTATE_MB=ROTATE).status == 0
    check(*halted_follower(home, gate))
    late = home.pailot("logs", "demo")
    check(late.out, late.err)


def test_the_foreground_with_a_slow_terminal(home: Home, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    process = home.start(chatter(gate), "--quiet", PAILOT_LOG_ROTATE_MB=ROTATE)
    assert process.stdout
    first = process.stdout.read(13)
    gate.touch()
    folder = home.jobs()[0]
    wait_for(lambda: list(folder.glob("attempts/0/tasks/main-0/final.json")), what="the end of the task")
    out, err = process.communicate(timeout=PATIENCE)
    check(first + out, err)


def test_logs_follow_over_a_server(tmp_path: Path) -> None:
    server = Server(tmp_path / "server", PAILOT_LOG_ROTATE_MB=ROTATE)
    try:
        me = server.client(tmp_path / "me")
        gate = tmp_path / "gate"
        gate.touch()
        submit(me, chatter(gate))
        assert me.pailot("wait", "demo").status == 0
        followed = me.pailot("logs", "-f", "demo")
        check(followed.out, followed.err)
        code = "import pailot; [print(line) for line in pailot.Client().get('demo').logs(follow=True)]"
        done = subprocess.run(
            [sys.executable, "-c", code], env=me.environment, cwd=me.cwd, capture_output=True, text=True, check=True
        )
        check(done.stdout, done.stderr.replace("RuntimeWarning: ", "pailot: "))
        me.close()
    finally:
        server.close()


def test_the_sdk_here(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    gate = tmp_path / "gate"
    gate.touch()
    assert home.run(chatter(gate), "--quiet", PAILOT_LOG_ROTATE_MB=ROTATE).status == 0
    with pytest.warns(RuntimeWarning) as caught:
        lines = list(pailot.get("demo").logs(follow=True))
    check("".join(f"{line}\n" for line in lines), "".join(f"pailot: {each.message}\n" for each in caught))
