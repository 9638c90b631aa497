"""What the machine tells: alerts, cells, nodes and pods, label selectors."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.jobserver.alerts import Alert, Alerts, counted, seen_by
from pailot.jobserver.models import Caller, CapacityReport, Shares
from pailot.jobserver.skus import Sku, from_setting, of_machine
from pailot.scheduling.capacity import Capacity
from pailot.server.serializers.alerts import alert_json
from pailot.server.serializers.kubernetes import Selector, node_list
from pailot.settings import BadSetting


def team(*, link: bool = True) -> Any:
    queue = SimpleNamespace(never_fits=list)
    floor = SimpleNamespace(link=SimpleNamespace(open=True) if link else None, queue=queue, entries={})
    store = SimpleNamespace(outbox=SimpleNamespace(failing=list))
    return SimpleNamespace(home="/", floor=floor, store=store)


def disk(free: float, whole: float, files: tuple[int, int] = (1000, 1000)) -> Any:
    return SimpleNamespace(f_bavail=int(free), f_frsize=1, f_blocks=int(whole), f_favail=files[0], f_files=files[1])


def look(monkeypatch: pytest.MonkeyPatch, book: Alerts, of: Any, space: Any) -> list[Alert]:
    import asyncio

    monkeypatch.setattr(os, "statvfs", lambda _: space)
    return asyncio.run(book.look(of))


@pytest.mark.parametrize(
    ("space", "names"),
    [
        (disk(500e9, 1000e9), []),
        (disk(15e9, 1000e9), ["NodeDiskAlmostFull"]),
        (disk(15e9, 100e9), []),  # a small disk may have little
        (disk(0.5e9, 1000e9), ["NodeDiskFull"]),
        (disk(500e9, 1000e9, (2, 1000)), ["NodeInodesFull"]),
        (disk(500e9, 1000e9, (0, 0)), []),  # a file system that does not count them
    ],
)
def test_a_disk_that_fills(monkeypatch: pytest.MonkeyPatch, space: Any, names: list[str]) -> None:
    assert [each.name for each in look(monkeypatch, Alerts(), team(), space)] == names


def test_an_alert_has_begun_when_it_was_first_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    book, fine = Alerts(), disk(500e9, 1000e9)
    first = look(monkeypatch, book, team(link=False), fine)
    assert [(each.name, each.severity) for each in first] == [("PailotKeeperDown", "critical")]
    assert look(monkeypatch, book, team(link=False), fine)[0].since == first[0].since
    assert look(monkeypatch, book, team(), fine) == []
    assert look(monkeypatch, book, team(link=False), fine)[0].since > first[0].since


def test_alerts_are_for_whom_they_concern() -> None:
    found = [
        Alert("NodeDiskFull", "critical", "/home/pailot has 3 MB left", 1),
        Alert("NoticeUndeliverable", "warning", "…", 2, "j", "ann", detail="smtp://inside"),
        Alert("NoticeUndeliverable", "warning", "…", 3, "j", "bob"),
    ]
    assert seen_by(Caller("root", admin=True), found) == found
    assert [(each.user, each.detail) for each in seen_by(Caller("ann"), found)] == [("ann", "")]
    assert seen_by(Caller(""), found) == []
    assert {name: count for name, count in counted(found).items() if count} == {"NodeDiskFull": 1, "NoticeUndeliverable": 2}
    told = alert_json(found[1], "here", 10)
    assert told["labels"] == {
        "alertname": "NoticeUndeliverable",
        "severity": "warning",
        "service": "pailot",
        "node_name": "here",
        "job_name": "ann~j",
        "username": "ann",
    }
    assert told["startsAt"] == "1970-01-01T00:00:02.000Z"
    assert told["fingerprint"] != alert_json(found[2], "here", 10)["fingerprint"]


def test_a_full_disk_is_a_condition_of_the_node() -> None:
    report = CapacityReport(Shares(4, 8000, 0), Shares(), {}, "here")

    def pressure(*alerts: str) -> str:
        conditions = node_list(report, "x", alerts, 0)["items"][0]["status"]["conditions"]
        return next(str(each["status"]) for each in conditions if each["type"] == "DiskPressure")

    assert (pressure(), pressure("NodeDiskFull")) == ("False", "True")


def test_cells_of_a_machine() -> None:
    assert of_machine(Capacity(8, 64_000, 0), []) == {"cpu": Sku(1, 8000, 0)}
    assert of_machine(Capacity(0.5, 1000, 0), []) == {"cpu": Sku(1, 1000, 0)}
    gpus = ["NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", "Tesla V100", ""]
    cell = Sku(4, 16_000, 1)
    assert of_machine(Capacity(16, 64_000, 4), gpus) == {"A100-SXM4-40GB": cell, "Tesla-V100": cell, "GPU": cell}


def test_cells_that_are_set() -> None:
    made = from_setting({"A": {"cpu": 2, "memoryMB": 4, "gpu": 1, "virtualClusters": ["x"]}, "B": {"cpu": 1, "memoryMB": 1}})
    assert (made["A"].offered_by("x"), made["A"].offered_by("y"), made["B"].offered_by("y")) == (True, False, True)
    for bad in ({"cpu": 1}, {"cpu": "1", "memoryMB": 1}, 3, {"cpu": True, "memoryMB": 1}, {"cpu": 1, "memoryMB": 1, "x": 1}):
        with pytest.raises(BadSetting, match="sku_types: 'A'"):
            from_setting({"A": bad})
    with pytest.raises(BadSetting):
        from_setting({"A": {"cpu": 1, "memoryMB": 1, "virtualClusters": "x"}})


LABELS = {"userName": "ann", "virtualCluster": "lab-1"}


@pytest.mark.parametrize(
    ("text", "takes"),
    [
        ("", True),
        ("userName=ann", True),
        ("userName==ann,virtualCluster=lab-1", True),
        ("userName=bob", False),
        ("userName!=bob", True),
        ("missing!=x", True),
        ("missing=x", False),
        ("userName", True),
        ("missing", False),
        ("!missing", True),
        ("!userName", False),
        ("userName in (bob, ann)", True),
        ("userName notin (bob, ann)", False),
        (" userName = ann , !missing ", True),
        ("userName in (a,b),virtualCluster", False),
    ],
)
def test_label_selectors(text: str, takes: bool) -> None:
    assert Selector(text).takes(LABELS) is takes


@pytest.mark.parametrize("text", ["a(b", "a=b c", "=", ",", "a in b", "a in (b", "a,,b", "in (a)x"])
def test_what_is_no_label_selector(text: str) -> None:
    with pytest.raises(ValueError, match="no label selector"):
        Selector(text)


@given(st.text(alphabet="ab=!,() inot", max_size=30))
def test_any_label_selector_is_read_or_refused(text: str) -> None:
    try:
        assert isinstance(Selector(text).takes(LABELS), bool)
    except ValueError:
        pass
