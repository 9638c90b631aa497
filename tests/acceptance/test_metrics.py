"""What a real server tells Prometheus: names by its conventions, and rules and a dashboard that name nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.openmetrics import parser as open_metrics
from prometheus_client.parser import text_string_to_metric_families

from ..support.http_server import Server, job

ROOT = Path(__file__).parents[2]
RULES, DASHBOARD = ROOT / "deploy/prometheus/rules.yaml", ROOT / "deploy/grafana/dashboard.json"
UNITS_THAT_ARE_NOT_BASE_UNITS = re.compile(r"_(mb|gb|kb|ms|milliseconds|minutes|hours|days|percent)(_|$)")
PROMETHEUS_OWN = {"up", "instance", "job", "le"}


@pytest.fixture(scope="module")
def text() -> Iterator[str]:
    with Server(None, "--stop-jobs") as server:
        server.run(job("good", "true"))
        server.run(job("bad", "false"))
        server.get("/jobs/nobody~nothing")
        yield server.get("/metrics").text


def _samples(text: str) -> dict[str, set[str]]:
    """Each name of a sample, and the labels that it has."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_names_follow_the_conventions_of_prometheus(text: str) -> None:
    families = list(text_string_to_metric_families(text))
    assert len(families) > 20
    for family in families:
        assert family.documentation.endswith("."), family
        assert family.samples, family
        assert re.fullmatch(r"pailot_[a-z]+(_[a-z]+)*", family.name), family
        assert not UNITS_THAT_ARE_NOT_BASE_UNITS.search(family.name), family
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter"), sample
            assert not {"instance", "job", "alertname"} & set(sample.labels), "labels that Prometheus sets itself"
    values = {(sample.name, *sorted(sample.labels.items())): sample.value for family in families for sample in family.samples}
    assert values["pailot_jobs_ended_total", ("state", "FAILED")] == 1
    assert values["pailot_jobs_ended_total", ("state", "SUCCEEDED")] == 1
    assert values["pailot_jobs_ended_total", ("state", "STOPPED")] == 0
    assert values["pailot_jobs", ("state", "RUNNING")] == 0
    assert values[("pailot_jobs_submitted_total",)] == 2
    assert values[("pailot_memory_bytes",)] == 16000 * 1024 * 1024


def test_the_stricter_reader_of_openmetrics_takes_it_too(text: str) -> None:
    """There the family of a counter is named without `_total`."""
    without = re.sub(r"^(# (?:HELP|TYPE) \w+)_total ", r"\1 ", text, flags=re.MULTILINE)
    read = open_metrics.text_string_to_metric_families
    assert len(list(read(without + "# EOF\n"))) > 20  # type: ignore[no-untyped-call]  # has no types


def _expressions(found: Any) -> Iterator[str]:
    """Every query in a document, whatever it lies in."""
    if isinstance(found, dict):
        for key, value in found.items():
            if key in ("expr", "definition") and isinstance(value, str):
                yield value
            else:
                yield from _expressions(value)
    elif isinstance(found, list):
        for each in found:
            yield from _expressions(each)


def _documents() -> list[str]:
    return [*_expressions(yaml.safe_load(RULES.read_text())), *_expressions(json.loads(DASHBOARD.read_text()))]


def test_rules_and_dashboard_name_only_figures_and_labels_that_a_server_has(text: str) -> None:
    known, used = _samples(text), set()
    for expression in _documents():
        bare = re.sub(r'"[^"]*"', '""', expression)
        for name, labels in re.findall(r"(pailot_\w+)(?:\{([^}]*)\})?", bare):
            assert name in known, expression
            used.add(name)
            for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", labels):
                assert label in known[name] | PROMETHEUS_OWN, expression
        labels_of_all = set().union(*(known[name] for name in re.findall(r"pailot_\w+", bare)), PROMETHEUS_OWN)
        for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", bare):
            assert {each.strip() for each in group.split(",")} <= labels_of_all, expression
    families = {name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum") for name in known}
    shown = {name.removesuffix("_bucket").removesuffix("_count") for name in used}
    assert families - shown == {"pailot_virtual_cluster_memory_used_bytes"}  # all others are shown or watched


def test_every_rule_says_how_grave_it_is_and_what_to_do() -> None:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in ("warning", "critical")
            assert set(rule["annotations"]) == {"summary", "description"}


@pytest.mark.parametrize(
    "arguments", [["check", "rules", "rules.yaml"], ["test", "rules", "rules-test.yaml"], ["check", "metrics"]]
)
def test_promtool_agrees(arguments: list[str], text: str) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("no promtool: Debian's package prometheus has it")
    given = text if arguments[-1] == "metrics" else None
    done = subprocess.run([program, *arguments], input=given, capture_output=True, text=True, cwd=RULES.parent, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr or given is None, done.stderr
