"""Every warning, and when it stays silent."""

from __future__ import annotations

from typing import Any

import pytest

from pailot.protocol import read
from pailot.protocol.overrides import Override

from ...support.changed_jobs import BASE, changed, codes, problems

W = "taskRoles/worker"
SECOND = {**BASE["taskRoles"]["worker"], "commands": ["serve"]}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([("taskRoles/server", SECOND)], "completion-cuts-off"),
        ([(f"{W}/completion", {"minFailedInstances": 2})], "completion-unreachable"),
        ([("jobRetryCount", 2), (f"{W}/completion", {"minFailedInstances": -1})], "retry-never"),
        ([("prerequisites/4", {"name": "idle", "type": "script"})], "unused-prerequisite"),
        ([("parameters/idle", 1)], "unused-parameter"),
        ([("secrets", {"idle": "long enough"})], "unused-secret"),
        ([("deployments", [{"name": "d", "taskRoles": {"worker": {"preCommands": ["x"]}}}])], "unused-deployment"),
        (
            [
                ("deployments", [{"name": "d", "taskRoles": {"nobody": {"preCommands": ["x"]}}}]),
                ("defaults", {"deployment": "d"}),
            ],
            "deployment-unknown-role",
        ),
        ([("taskRoles/Work_er", {**SECOND, "completion": {"minSucceededInstances": -1}})], "role-collision"),
        ([(f"{W}/extraContainerOptions", {"shmMB": 4096})], "shm-above-memory"),
        ([("prerequisites/0/auth", {"username": "u", "password": "in clear"})], "secret-literal"),
        ([("parameters", {"lr": 1, "api_key": "abcdef"}), (f"{W}/commands", ["<% $parameters %>"])], "secret-literal"),
        ([(f"{W}/commands", ["git clone https://me:s3cretword@host.example/x <% $parameters.lr %>"])], "secret-literal"),
        ([(f"{W}/commands", ["x AKIAABCDEFGHIJKLMNOP <% $parameters.lr %>"])], "secret-literal"),
        ([(f"{W}/commands", ["login --password hunter22 <% $parameters.lr %>"])], "secret-literal"),
        ([("secrets", {"pin": "123"}), (f"{W}/commands", ["<% $secrets.pin %> <% $parameters.lr %>"])], "secret-short"),
        ([(f"{W}/commands", ["<% $script.uri[0] %> <% $parameters.lr %>"])], "template-string-index"),
        ([("extras", {"hivedScheduler": {"jobPriorityClass": "crit"}})], "openpai-refuses"),
        ([("extras", {"pailot": {"portBase": {"nobody": {"web": 80}}}})], "ignored-key"),
        ([("extras", {"pailot": {"environment": {"A": "<% $parameters.lr %>"}}})], "ignored-key"),
        ([("defaults", {"virtual": "x"})], "ignored-key"),
        ([(f"{W}/extraContainerOptions", {"shm": 4})], "ignored-key"),
        ([("extras", {"storages": [{"mountPath": "/x"}]})], "ignored-key"),
        ([("extras", {"com.microsoft.pai.runtimeplugin": [{"plugin": "ssh", "hook": "preTaskStarts"}]})], "ignored-key"),
        ([("extras", {"com.microsoft.pai.runtimeplugin": [{"plugin": "docker", "parameters": {}}]})], "ignored-key"),
        ([("prerequisites/1/auth", {"username": "u"})], "ignored-key"),
        ([("prerequisites/2/auth", "of whatever shape")], "ignored-key"),
        ([("prerequisites/2/auth", {"password": 1})], "ignored-key"),
        ([("prerequisites/3/auth", {"username": "u"})], "ignored-key"),
        ([("prerequisites/2/plugin", "docker")], "ignored-key"),
    ],
)
def test_warned_about(changes: list[tuple[str, Any]], code: str) -> None:
    found = problems(changed(*changes))
    assert code in [problem.code for problem in found]
    assert not any(problem.is_error for problem in found)


@pytest.mark.parametrize(
    "changes",
    [
        [("taskRoles/server", {**SECOND, "completion": {"minSucceededInstances": -1}})],
        [("jobRetryCount", 2)],
        [("prerequisites/2/plugin", "cmd")],
        [("prerequisites/4", {"name": "base", "type": "script"}), ("prerequisites/1/require", ["base"])],
        [("secrets", {"pw": "long enough"}), ("prerequisites/0/auth", {"username": "u", "password": "<% $secrets.pw %>"})],
        [("secrets", {"pw": "AKIAABCDEFGHIJKLMNOP"}), (f"{W}/commands", ["<% $secrets.pw %> <% $parameters.lr %>"])],
        [(f"{W}/commands", ["git clone https://me:$TOKEN@host.example/x <% $parameters.lr %>"])],
        [(f"{W}/commands", ["login --password $PASSWORD --token <% $parameters.lr %>"])],
        [
            (
                "deployments",
                [
                    {"name": "d", "taskRoles": {"worker": {"preCommands": ["x"]}}},
                    {"name": "e", "taskRoles": {"worker": {"preCommands": ["<% $parameters.only_here %>"]}}},
                ],
            ),
            ("defaults", {"deployment": "d"}),
            ("parameters/only_here", 1),
        ],
    ],
)
def test_not_warned_about(changes: list[tuple[str, Any]]) -> None:
    assert codes(*changes) == []


@pytest.mark.parametrize(
    ("scalar", "ambiguous"),
    [(scalar, True) for scalar in ("010", "1_000", "12:30", "2019-01-01", "0o17", "08")]
    + [(scalar, False) for scalar in ("10", "1e3", "'010'", "yes")],
)
def test_scalars_that_readers_disagree_on(scalar: str, ambiguous: bool) -> None:
    text = f"""
protocolVersion: 2
name: demo
type: job
prerequisites: [{{name: i, type: dockerimage, uri: x}}]
parameters:
  p: {scalar}
taskRoles:
  w:
    dockerImage: i
    resourcePerInstance: {{cpu: 1, memoryMB: 1, gpu: 0}}
    commands: [<% $parameters.p %>]
"""
    warnings = read(text.replace("[<%", "['<%").replace("%>]", "%>']")).warnings
    assert [problem.code for problem in warnings] == (["yaml-ambiguous"] if ambiguous else [])
    if ambiguous:
        assert (warnings[0].line, warnings[0].column) == (7, 6)


def test_a_warning_points_at_its_place() -> None:
    (problem,) = problems(changed(("parameters/idle", 1)))
    assert (problem.path, problem.source.strip()) == ("parameters.idle", '"idle": 1')
    assert problem.column == problem.source.index('"idle"') + 1


def test_a_name_used_only_in_an_override_or_the_library_is_used() -> None:
    root = changed(("parameters", {"lr": 1, "only": 2}), (f"{W}/prerequisites", ["shared"]))
    shared = "name: shared\ntype: script\ncallbacks: [{event: containerStart, commands: ['echo <% $parameters.only %>']}]\n"
    assert [problem.code for problem in problems(root, library=lambda name: (shared, "shelf/shared.yaml"))] == []
    change = Override(("taskRoles", "worker", "commands"), ["<% $parameters.lr %> <% $parameters.only %>"], "--set")
    assert [problem.code for problem in problems(changed(("parameters/only", 1)), changes=[change])] == []
