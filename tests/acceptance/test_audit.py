"""The audit log of a real server: who did what, and what is never in it."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pailot.jobserver.audit import FILE, KEPT_FILES, AuditEntry, AuditLog, AuditQuery
from pailot.server.auditing import CHANGING, SILENT, action_of
from pailot.server.route_table import ROUTES
from pailot.server.toolkit.http import Request

from ..support.http_server import PASSWORD, Server, job


def test_who_did_what_is_written_down_and_nothing_secret() -> None:
    with Server(None, "--stop-jobs") as server:
        server.ask("POST", "/authn/basic/login", {"username": "admin", "password": "wrong-password"}, token=None)
        submitted = server.submit(job("mine"))
        number = submitted.headers["x-request-id"]
        eve = server.user("eve")
        assert server.get("/jobs/admin~mine/config", eve).status == 200
        assert server.get("/audit", eve).status == 403
        server.ask("PUT", "/jobs/admin~mine/executionType", {"value": "STOP"})
        entries = server.get("/audit?limit=1000").json
        did = {(each["user"], each["action"], each["target"], each["status"]) for each in entries}
        assert ("admin", "login", "admin", 400) in did
        assert ("admin", "submit", "admin~mine", 202) in did
        assert ("eve", "read-job-config", "admin~mine", 200) in did
        assert ("eve", "read-audit", "", 403) in did
        assert ("admin", "execution-type", "admin~mine", 202) in did
        assert [each["request"] for each in entries if each["action"] == "submit"] == [number]
        assert {each["user"] for each in server.get("/audit?user=eve").json} == {"eve"}
        assert server.get("/audit?limit=0").status == 400
        file = Path(server.home) / FILE
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        for secret in (server.token, eve, PASSWORD, "wrong-password"):
            assert secret not in file.read_text()


def test_every_request_that_changes_something_has_a_word() -> None:
    for route in ROUTES:
        if route.method in CHANGING and route.handler.__name__ not in SILENT:
            request = Request(None, {"headers": []}, None, {})  # type: ignore[arg-type]  # not asked for a changing route
            assert action_of(route, request), route.path


def _entry(number: int, user: str = "ada") -> AuditEntry:
    return AuditEntry(float(number), "00", user, "127.0.0.1", "submit", f"job{number}", 202)


def test_the_file_goes_on_in_a_new_one_and_is_read_back_in_order(tmp_path: Path) -> None:
    log = AuditLog(str(tmp_path), 0.001)
    for number in range(100):
        log.note(_entry(number))
    found = [entry.at for entry in log.entries(AuditQuery(limit=1000))]
    assert found == [float(number) for number in range(99, 99 - len(found), -1)]
    assert len(found) > 20
    assert len(list(tmp_path.iterdir())) <= KEPT_FILES + 1
    assert len(log.entries(AuditQuery(limit=3))) == 3
    assert [entry.at for entry in log.entries(AuditQuery(since=98.0, limit=9))] == [99.0, 98.0]
    log.close()


def test_half_a_line_of_a_power_cut_spoils_neither_the_next_nor_the_reading(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(json.dumps(_entry(1).to_json()).encode() + b'\n{"at": 2, "us')
    log = AuditLog(str(tmp_path), 0)
    log.note(_entry(3))
    assert [entry.at for entry in log.entries(AuditQuery())] == [3.0, 1.0]
    log.close()


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_json_is_an_entry_or_none(value: object) -> None:
    found = AuditEntry.from_json(value)
    assert found is None or AuditEntry.from_json(found.to_json()) is not None
