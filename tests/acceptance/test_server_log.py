"""The log of a real server and of its keeper: one request is followed through both, and nothing secret is in either."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from pailot.jobserver import server_log
from pailot.jobserver.keeper.messages import LOG
from pailot.jobserver.server_log import LogOptions
from pailot.settings import BadSetting, Settings
from pailot.testing.runs import wait_for

from ..support.http_server import PASSWORD, Server, job

SECRET = "s3cr3t-of-a-job"
WITH_SECRET = "secrets: {word: " + SECRET + "}"


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _of(lines: list[dict[str, Any]], request: str) -> list[str]:
    return [line["message"] for line in lines if line.get("request") == request]


def test_one_request_is_followed_from_the_response_to_the_keeper_and_nothing_secret_is_written() -> None:
    with Server(None, "--stop-jobs", PAILOT_LOG_FORMAT="json", PAILOT_LOG_LEVEL="info", PAILOT_ACCESS_LOG="-") as server:
        words = "echo <% $secrets.word %>; sleep 600"
        submitted = server.submit(job("long", words, more=WITH_SECRET))
        assert submitted.status == 202, submitted
        first = submitted.headers["x-request-id"]
        server.begun("admin~long")
        eve = server.user("eve")
        stop = server.ask("PUT", "/jobs/admin~long/executionType", {"value": "STOP"})
        second = stop.headers["x-request-id"]
        server.wait("admin~long")
        wait_for(lambda: "job ended" in _of(_lines(server.home / LOG), second), what="the keeper's last line")
        told, kept = _lines(server.log), _lines(server.home / LOG)
        assert sorted(_of(told, first)) == ["job ended", "job sent to the keeper", "job submitted", "request"]
        assert _of(kept, first) == ["job started"]
        assert "job to be stopped" in _of(told, second)
        assert _of(kept, second) == ["job to be stopped", "job ended"]
        assert {line["level"] for line in told + kept} == {"info"}
        assert {line["logger"] for line in told} == {"pailot.server", "pailot.access"}
        assert [line["by"] for line in told if line["message"] == "job to be stopped"] == ["admin"]
        assert [(line["state"], line["job"]) for line in kept if line["message"] == "job ended"] == [
            ("STOPPED", next(line["job"] for line in told if line["message"] == "job submitted"))
        ]
        for secret in (SECRET, PASSWORD, server.token, eve):
            assert secret not in server.log.read_text() + (server.home / LOG).read_text()


def test_a_job_keeps_its_request_when_another_server_goes_on_with_it() -> None:
    with Server(None, "--stop-jobs", PAILOT_LOG_LEVEL="info") as server:
        number = server.submit(job("long", "sleep 600")).headers["x-request-id"]
        server.begun("admin~long")
        server.kill()
        server.start()
        server.ask("PUT", "/jobs/admin~long/executionType", {"value": "STOP"})
        server.wait("admin~long")
        ended = [line for line in server.log.read_text().splitlines() if "job ended" in line]
        assert len(ended) == 1
        assert f"request={number}" in ended[0]
        assert " info pailot.server: job ended " in ended[0]


def test_by_default_nothing_is_written_while_all_goes_well() -> None:
    with Server(None, "--stop-jobs") as server:
        server.run(job("short"))
        assert server.log.read_text() == ""
        assert (server.home / LOG).read_text() == ""


@pytest.mark.parametrize("name", ["log_level", "log_format"])
def test_a_word_that_is_not_known_is_told(name: str) -> None:
    with pytest.raises(BadSetting, match=f"{name}: should be one of .*, is 'loud'"):
        LogOptions.of(Settings({f"PAILOT_{name.upper()}": "loud"}, "/"))


def test_a_line_stays_one_line_whatever_is_in_it_and_a_full_log_goes_on_in_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "log"
    monkeypatch.setattr(server_log, "ROTATE_BYTES", 1000)
    descriptors = {number: os.dup(number) for number in (1, 2)}
    before = {
        name: (logging.getLogger(name).handlers[:], logging.getLogger(name).level) for name in ("pailot", "uvicorn", "asyncio")
    }
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(opened, 2)
        os.close(opened)
        server_log.configure(server_log.KEEPER, LogOptions("text", "info"), str(file))
        for number in range(20):
            server_log.note(server_log.KEEPER, logging.INFO, "a\nb", name=f"\x1b[31m{number} x", none=None)
    finally:
        for number, copy in descriptors.items():
            os.dup2(copy, number)
            os.close(copy)
        for name, (handlers, level) in before.items():
            logging.getLogger(name).handlers[:] = handlers
            logging.getLogger(name).setLevel(level)
        monkeypatch.setattr("pailot.runtime.defects.report", None)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log", "log.1"]
    lines = (tmp_path / "log.1").read_text().splitlines()
    assert all("a\\nb" in line and "\\x1b[31m" in line and "none" not in line for line in lines)
