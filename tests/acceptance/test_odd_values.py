"""Odd values for every option of a job, end to end on a real server, beside a neighbour's job that must not notice.

Twenty seconds of it are part of every test run, ten minutes of `make soak`.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import time
from pathlib import Path
from typing import Any

import pytest

from pailot.testing.runs import kill_all_with, no_process_left, wait_for
from tests.support.job_options import NAMED, Option, options

from ..support.http_server import Answer, Server

SECONDS = 600.0 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 15.0
TOGETHER = 40
FINAL = ("SUCCEEDED", "FAILED", "STOPPED")
INFINITE, NONE = float("inf"), float("nan")
NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 0.5, -0.5, 1.0, 7, 65_535, 65_536, 2_200_000, 31_536_000, 2**31 - 1, 2**31, 2**32, 2**53, 2**63, 2**64,
    10**15, 10**30, 10**400, 1e-300, 1e15, 1e300, INFINITE, -INFINITE, NONE,
)  # fmt: skip
TEXTS: tuple[Any, ...] = (
    "", " ", "x", "0", "-1", "1e400", ".inf", "true", "~", "null", "\0", "a\0b", "\ud800", "a\udfffb",
    "\x1b[31mred\x1b]52;c;x\x07", "\r", "\n", "a\nb", "\t", "\x7f\x80", "\u2028", "ünïcødé", "🎉", "\u202eabc",
    "-rf", "--help", "..", "../..", "/", "$(false)",
    "`false`", "${PATH}", "a b", "a=b", "a:b", "%s%n", "<%", "%>", "<% %>", "<% $secrets.no %>", "{{x}}", "'", '"', "\\", "*",
    "x" * 300, "x" * 5_000, "é" * 5_000, "x\n" * 2_000, "x" * 200_000,
)  # fmt: skip


def _deep(depth: int) -> Any:
    made: Any = "end"
    for turn in range(depth):
        made = {"a": made} if turn % 2 else [made]
    return made


OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [""],
    [None],
    ["x"] * 500,
    {"": ""},
    {"a\0": 1},
    {"x": NONE},
    _deep(20),
    _deep(400),
)
VALUES = (*NUMBERS, *TEXTS, *OTHERS)


def _text(option: Option, value: Any, name: str) -> str:
    """The job as JSON, which is YAML, too; what JSON lacks is written as YAML does."""
    text = json.dumps(option.job(value, name=name))
    return re.sub(r"(?<![\w\"])(-?)(Infinity|NaN)(?![\w\"])", lambda found: f"{found[1]}.{found[2][:3].lower()}", text)


def _submit(server: Server, token: str, option: Option, value: Any, name: str) -> Answer:
    answer = server.submit(_text(option, value, name), token)
    assert answer.status in (202, 400, 403, 409), (option.name, value, answer)
    answer.json  # noqa: B018  # it can be read
    return answer


def _let_all_end(server: Server, token: str, names: list[str]) -> None:
    """Some hold what has failed, or wait for more than the machine has: all are stopped."""
    for name in names:
        asked = server.ask("PUT", f"/jobs/odd~{name}/executionType", {"value": "STOP"}, token)
        assert asked.status in (202, 400, 404, 409), (name, asked)

    def ended() -> bool:
        time.sleep(0.05)
        listed = server.get("/jobs?limit=5000&username=odd", token)
        json.loads(listed.text, parse_constant=_no_json)
        return all(each["state"] in FINAL for each in listed.json)

    wait_for(ended)
    for name in names:
        shown = server.get(f"/jobs/odd~{name}", token)
        assert shown.status == 200, (name, shown)
        status = shown.json["jobStatus"]
        assert "defect" not in (status["appExitDiagnostics"] or ""), (name, status)


def _no_json(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


@pytest.mark.timeout(SECONDS + 600)
def test_odd_values_beside_a_neighbour(tmp_path: Path) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    chosen, go, until = random.Random(seed), tmp_path / "go", time.monotonic() + SECONDS
    every = [(option, value) for option in options() for value in VALUES]
    chosen.shuffle(every)
    tried: dict[str, tuple[str, Any]] = {}
    try:
        with Server(tmp_path / "home") as server:
            odd, neighbour = server.user("odd"), server.user("neighbour")
            waiting = f"until [ -e {go} ]; do sleep 0.05; done; echo undisturbed"
            option = next(each for each in options() if each.name == f"taskRoles.{NAMED}.commands.0")
            assert server.submit(option.text(waiting, name="calm"), neighbour).status == 202
            wait_for(lambda: server.get("/jobs/neighbour~calm", neighbour).json["jobStatus"]["state"] == "RUNNING")
            keeper, names = (server.home / "keeper.lock").read_text(), list[str]()
            # All values of all options, then again in the same order with other neighbours, until the time is over.
            for number, (option, value) in enumerate(itertools.cycle(every)):
                name = f"odd{number}"
                answer = _submit(server, odd, option, value, name)
                tried[name] = (option.name, value)
                if answer.status == 202:
                    names.append(answer.json["name"].rpartition("~")[2])
                    tried[names[-1]] = (option.name, value)
                if len(names) >= TOGETHER or time.monotonic() > until:
                    _let_all_end(server, odd, names)
                    names.clear()
                if time.monotonic() > until:
                    break
            assert server.get("/healthz", None).status == 200
            assert (server.home / "keeper.lock").read_text() == keeper
            go.touch()
            status = server.wait("neighbour~calm", neighbour)["jobStatus"]
            assert (status["state"], status["retries"]) == ("SUCCEEDED", 0)
            logs = (server.home / "keeper.log").read_text() + server.log.read_text()
            assert "defect" not in logs, logs
            assert "Traceback" not in logs, logs
        no_process_left(str(tmp_path))
    except BaseException as error:
        kill_all_with(str(tmp_path))
        shown = {name: tried[name] for name in tried if name in str(error)}
        raise AssertionError(f"seed {seed}, {len(tried)} tried, among them {str(shown)[:2000]}") from error
