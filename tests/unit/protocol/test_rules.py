"""Every rule of the job file, one line each: what is refused and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from ...support.changed_jobs import BASE, REMOVE, changed, codes, job, problems

W = "taskRoles/worker"


def test_the_base_job_is_fine() -> None:
    assert codes() == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("protocolVersion", "2"),
        ("protocolVersion", 2.0),
        ("version", 1.5),
        ("version", "v1"),
        ("name", "x" * 255),
        ("name", "A_b-9"),
        ("jobRetryCount", 0),
        ("parameters", {"lr": [1, {"x": None}]}),
        (f"{W}/instances", 1.0),
        (f"{W}/completion", {"minFailedInstances": None, "minSucceededInstances": -1}),
        (f"{W}/taskRetryCount", 3),
        (f"{W}/prerequisites", ["set", "code"]),
        (f"{W}/extraContainerOptions", {"shmMB": 64, "infiniband": True}),
        (f"{W}/resourcePerInstance/ports", {"web": 2, "_x1": 1}),
        (f"{W}/resourcePerInstance/ports", None),
        (f"{W}/commands", ["", "echo <% $parameters.lr %>"]),
        (f"{W}/protocolVersion", 2),
        ("defaults", {"virtualCluster": "vc1"}),
        ("defaults", {"virtualCluster": None}),
        ("extras", {"anything": {"goes": [1]}}),
        ("extras", {"submitFrom": "portal", "gangAllocation": "maybe"}),
        ("extras", {"hivedScheduler": {"jobPriorityClass": "prod", "taskRoles": {"worker": {"skuType": None, "skuNum": 1}}}}),
        ("extras", {"hivedscheduler": {"taskRoles": {"worker": {"gpuType": "K80"}}}}),
        ("extras", {"storages": []}),
        ("extras", {"storages": [{"name": "nfs", "mountPath": "/data"}]}),
        ("extras", {"jobStatusChangeNotification": {"running": True, "failed": False}}),
        ("extras", {"pailot": {"maxRunSeconds": 3.5, "graceSeconds": 0, "holdCommand": "sleep 1", "environment": {"A": 1}}}),
        ("prerequisites/1/anything", {"more": 1}),
        ("prerequisites/0/auth", {"username": "u", "registryuri": "r"}),
        ("prerequisites/1/failurePolicy", "ignore"),
    ],
)
def test_accepted(path: str, value: Any) -> None:
    assert codes((path, value)) == []


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("protocolVersion", 1, "bad-value"),
        (f"{W}/extraContainerOptions", {"infiniband": "no"}, "wrong-type"),
        (f"{W}/extraContainerOptions", {"infiniband": 0}, "wrong-type"),
        (f"{W}/extraContainerOptions", {"infiniband": None}, "wrong-type"),
        ("protocolVersion", True, "bad-value"),
        ("protocolVersion", REMOVE, "missing-key"),
        ("name", REMOVE, "missing-key"),
        ("name", "", "bad-name"),
        ("name", "a b", "bad-name"),
        ("name", "a\n", "bad-name"),
        ("name", "x" * 256, "bad-name"),
        ("name", 12, "wrong-type"),
        ("type", "data", "bad-value"),
        ("version", None, "wrong-type"),
        ("contributor", 3, "wrong-type"),
        ("prerequisites", [], "too-few"),
        ("prerequisites", {}, "wrong-type"),
        ("parameters", None, "wrong-type"),
        ("secrets", None, "wrong-type"),
        ("secrets", [], "wrong-type"),
        ("jobRetryCount", -1, "out-of-range"),
        ("jobRetryCount", "1", "wrong-type"),
        ("jobRetryCount", 1.5, "wrong-type"),
        ("taskRoles", {}, "too-few"),
        ("taskRoles", None, "wrong-type"),
        ("taskRoles", [1], "wrong-type"),
        ("taskRoles", 3, "wrong-type"),
        ("taskRoles", REMOVE, "missing-key"),
        ("unknown", 1, "unknown-key"),
        ("deployments", [], "too-few"),
        ("defaults", [], "wrong-type"),
        ("extras", None, "wrong-type"),
        (f"{W}/instances", 0, "out-of-range"),
        (f"{W}/instances", "1", "wrong-type"),
        (f"{W}/instances", 1.5, "wrong-type"),
        (f"{W}/instances", None, "wrong-type"),
        (f"{W}/instances", True, "wrong-type"),
        (f"{W}/completion", {"minFailedInstances": 0}, "out-of-range"),
        (f"{W}/completion", {"minSucceededInstances": -2}, "out-of-range"),
        (f"{W}/completion", {"minFailed": 1}, "unknown-key"),
        (f"{W}/taskRetryCount", -1, "out-of-range"),
        (f"{W}/dockerImage", REMOVE, "missing-key"),
        (f"{W}/commands", REMOVE, "missing-key"),
        (f"{W}/commands", [], "too-few"),
        (f"{W}/commands", "echo", "wrong-type"),
        (f"{W}/commands", ["echo", 1], "wrong-type"),
        (f"{W}/resourcePerInstance", REMOVE, "missing-key"),
        (f"{W}/resourcePerInstance/gpu", REMOVE, "missing-key"),
        (f"{W}/resourcePerInstance/cpu", -1, "out-of-range"),
        (f"{W}/resourcePerInstance/memoryMB", -1, "out-of-range"),
        (f"{W}/resourcePerInstance/gpu", 0.5, "wrong-type"),
        (f"{W}/resourcePerInstance/disk", 1, "unknown-key"),
        (f"{W}/resourcePerInstance/ports", {}, "too-few"),
        (f"{W}/resourcePerInstance/ports", {"web": 0}, "out-of-range"),
        (f"{W}/resourcePerInstance/ports", {"1a": 1}, "bad-name"),
        (f"{W}/resourcePerInstance/ports", ["web"], "wrong-type"),
        (f"{W}/extraContainerOptions", {"shmMB": -1}, "out-of-range"),
        (f"{W}/extraContainerOptions", {"shmMB": "64"}, "wrong-type"),
        (f"{W}/prerequisites", "set", "wrong-type"),
        (f"{W}/prerequisites", ["sett"], "unknown-prerequisite"),
        (f"{W}/dockerImage", "set", "unknown-prerequisite"),
        (f"{W}/dockerImage", "toString", "unknown-prerequisite"),
        (f"{W}/data", "code", "unknown-prerequisite"),
        (f"{W}/comands", ["x"], "unknown-key"),
        ("taskRoles/bad-name", changed()["taskRoles"]["worker"], "bad-name"),
        ("prerequisites/0/uri", REMOVE, "missing-key"),
        ("prerequisites/0/more", 1, "unknown-key"),
        ("prerequisites/0/auth", {"password": 1}, "wrong-type"),
        ("prerequisites/0/auth", {"password": "x", "extra": 1}, "wrong-type"),
        ("prerequisites/1/type", "dta", "bad-value"),
        ("prerequisites/1/type", REMOVE, "missing-key"),
        ("prerequisites/1/name", REMOVE, "missing-key"),
        ("prerequisites/1/uri", [1], "wrong-type"),
        ("prerequisites/2/uri", ["a"], "wrong-type"),
        ("prerequisites/1/require", "x", "wrong-type"),
        ("prerequisites/1/require", ["nothing"], "unknown-prerequisite"),
        ("prerequisites/1/plugin", "cmdd", "unknown-plugin"),
        ("prerequisites/1/failurePolicy", "Ignore", "bad-value"),
        ("prerequisites/1/callbacks", [{"event": "containerStarts", "commands": ["x"]}], "bad-value"),
        ("prerequisites/1/callbacks", [{"event": "containerStart"}], "missing-key"),
        ("prerequisites/1/callbacks", [{"event": "containerStart", "commands": ["<% $nope.x %>"]}], "template-unresolved"),
        ("prerequisites/4", {"name": "set", "type": "data", "uri": ["x"]}, "duplicate-prerequisite"),
        ("deployments", [{"name": "a"}], "missing-key"),
        ("deployments", [{"name": "a", "taskRoles": {}}], "too-few"),
        ("deployments", [{"name": "a", "taskRoles": {"worker": {"preCommands": []}}}], "too-few"),
        ("deployments", [{"name": "a", "taskRoles": {"worker": {"commands": ["x"]}}}], "unknown-key"),
        ("defaults", {"deployment": "none"}, "unknown-deployment"),
        ("defaults", {"deployment": 1}, "wrong-type"),
        ("extras", {"com.microsoft.pai.runtimeplugin": {}}, "wrong-type"),
        ("extras", {"com.microsoft.pai.runtimeplugin": [{"plugin": "sssh"}]}, "unknown-plugin"),
        ("extras", {"com.microsoft.pai.runtimeplugin": [{"plugin": "ssh", "failurePolicy": "maybe"}]}, "bad-value"),
        ("extras", {"com.microsoft.pai.runtimeplugin": [{"plugin": "ssh", "taskroles": ["nobody"]}]}, "unknown-role"),
        ("extras", {"hivedScheduler": {"jobPriorityClass": "high"}}, "bad-value"),
        ("extras", {"hivedScheduler": {"taskRoles": {"nobody": {}}}}, "unknown-role"),
        ("extras", {"hivedScheduler": {"taskRoles": {"worker": {"skuType": "a", "pinnedCellId": "b"}}}}, "hived-conflict"),
        ("extras", {"hivedscheduler": {"taskRoles": {"worker": {"gpuType": "a", "reservationId": "b"}}}}, "hived-conflict"),
        ("extras", {"storages": {"name": "x"}}, "wrong-type"),
        ("extras", {"pailot": {"maxRunSecond": 3}}, "unknown-key"),
        ("extras", {"pailot": {"graceSeconds": -1}}, "out-of-range"),
        ("extras", {"pailot": {"environment": {"1A": "x"}}}, "bad-name"),
        ("extras", {"pailot": {"environment": {"A": "x\0\n"}}}, "bad-name"),
        ("extras", {"pailot": {"outputDir": "x\0"}}, "bad-name"),
    ],
)
def test_refused(path: str, value: Any, code: str) -> None:
    found = codes((path, value))
    assert code in found


def test_all_problems_come_at_once() -> None:
    found = codes(("name", "a b"), (f"{W}/instances", 0), (f"{W}/comands", []), ("typ", 1), ("prerequisites/1/uri", 3))
    assert sorted(found) == ["bad-name", "out-of-range", "unknown-key", "unknown-key", "wrong-type"]


def test_errors_of_structure_do_not_hide_the_others() -> None:
    second = {**BASE["taskRoles"]["worker"], "data": "sett", "commands": ["<% $parameters.rate %>"]}
    found = codes(
        ("name", "a b"),
        (f"{W}/instances", 0),
        (f"{W}/resourcePerInstance", REMOVE),
        ("taskRoles/other", second),
        ("extras", {"com.microsoft.pai.runtimeplugin": [{"plugin": "sssh"}]}),
        ("defaults", {"deployment": "none"}),
    )
    assert sorted(found) == [
        "bad-name",
        "missing-key",
        "out-of-range",
        "template-unresolved",
        "unknown-deployment",
        "unknown-plugin",
        "unknown-prerequisite",
    ]


@pytest.mark.parametrize(
    ("faults", "hidden"),
    [
        ([(f"{W}/dockerImage", REMOVE), (f"{W}/dockerimage", "image")], {"template-unresolved"}),
        ([(f"{W}/dockerImage", "imgae"), (f"{W}/instances", 0)], {"unknown-prerequisite", "template-unresolved"}),
        ([("prerequisites/1/uri", 3), (f"{W}/prerequisites", ["nope"])], {"unknown-prerequisite", "template-unresolved"}),
        ([("prerequisites/0/uri", REMOVE), (f"{W}/script", "cod")], {"unknown-prerequisite", "template-unresolved"}),
        ([("prerequisites/2/callbacks", [{"event": "containerStrat", "commands": ["x"]}])], {"template-unresolved"}),
        ([("prerequisites/4", {"name": "lone", "type": "script", "require": ["nothing"]}), ("typ", 1)], {"unknown-prerequisite"}),
        ([(f"{W}/completion", {"minFailedInstances": "x"})], {"template-unresolved"}),
        ([("parameters", {"lr": 1, "other": 2}), ("secrets", 3)], {"template-unresolved"}),
        ([("taskRoles/bad-name", BASE["taskRoles"]["worker"]), (f"{W}/data", "sett")], {"unknown-prerequisite"}),
        ([("extras", {"pailot": {"grace": 1}}), ("defaults", {"deployment": "none"})], {"unknown-deployment"}),
    ],
)
def test_a_fault_hides_no_reference_that_is_wrong(faults: list[tuple[str, Any]], hidden: set[str]) -> None:
    found = codes(*faults, (f"{W}/commands", ["<% $parameters.rate %>"]))
    assert hidden <= set(found), found


@pytest.mark.parametrize(
    ("faults", "commands"),
    [
        ([("prerequisites/1/uri", {"a": 1})], "<% $data.uri[0] %>"),
        ([("prerequisites/1/name", REMOVE)], "echo"),
        ([("parametres", {"lr": 1}), ("parameters", REMOVE)], "<% $parameters.lr %>"),
        ([("prerequisite", []), ("prerequisites", REMOVE)], "echo"),
        ([(f"{W}/prerequisites", "set"), (f"{W}/data", REMOVE)], "<% $set.uri %>"),
        ([("prerequisites/2", "code")], "<% $script.uri %>"),
        ([("prerequisites/1/name", "my set"), (f"{W}/data", "my set")], "<% $data.uri %>"),
    ],
)
def test_what_may_be_right_is_not_called_wrong(faults: list[tuple[str, Any]], commands: str) -> None:
    found = codes(*faults, (f"{W}/commands", [commands]))
    assert {"template-unresolved", "unknown-prerequisite"}.isdisjoint(found), found


@pytest.mark.parametrize(
    "faults",
    [
        [("prerequisites/1/type", "dta")],
        [("prerequisites/0/uri", REMOVE)],
        [("parameters", 3)],
        [(f"{W}/dockerImage", 3)],
        [(f"{W}/commands", "echo")],
        [("taskRoles/bad-name", BASE["taskRoles"]["worker"])],
        [("taskRoles/other", None)],
        [("deployments", [{"name": "a"}]), ("defaults", {"deployment": "a"})],
        [("secrets", 3), (f"{W}/commands", ["<% $secrets.x %> <% $parameters.lr %>"])],
    ],
)
def test_one_fault_is_not_reported_twice(faults: list[tuple[str, Any]]) -> None:
    assert len(codes(*faults)) == 1


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (f"{W}/comands", ["x"], "did you mean 'commands'?"),
        ("prerequisites/1/type", "dta", "did you mean 'data'?"),
        (f"{W}/data", "sett", "did you mean 'set'?"),
        (f"{W}/commands", ["<% $parameters.lrr %>"], "did you mean 'lr'?"),
        (f"{W}/commands", ["<% $paramaters.lr %>"], "did you mean '$parameters'?"),
        ("prerequisites/1/plugin", "gitt", "did you mean 'git'?"),
        ("extras", {"pailot": {"graceSecond": 3}}, "did you mean 'graceSeconds'?"),
        ("defaults", {"deployment": "prd"}, "there is no deployment 'prd'"),
    ],
)
def test_the_nearest_name_is_suggested(path: str, value: Any, words: str) -> None:
    assert any(words in problem.message for problem in problems(changed((path, value))))


def test_defaults_are_filled_in() -> None:
    role = job().task_roles["worker"]
    assert (role.instances, role.task_retry_count, role.completion.min_failed, role.completion.min_succeeded) == (1, 0, 1, 1)
    assert role.resources.shm_mb is None
    assert role.resources.ports == {"ssh": 1, "http": 1}
    assert job().virtual_cluster == "default"
    assert job((f"{W}/instances", 5)).task_roles["worker"].completion.min_succeeded == 5
    off = job((f"{W}/completion", {"minFailedInstances": -1, "minSucceededInstances": -1})).task_roles["worker"].completion
    assert (off.min_failed, off.min_succeeded) == (None, None)


def test_a_missing_version_renders_as_latest() -> None:
    assert job((f"{W}/commands", ["<% $script.version %>"])).task_roles["worker"].entrypoint == "latest"


def test_a_data_uri_may_be_a_string() -> None:
    commands = ["<% $data.uri[0] %> <% $data.uri %> <% $parameters.lr %>"]
    changes = (("prerequisites/1/uri", "https://one.example/x"), (f"{W}/commands", commands))
    assert job(*changes).task_roles["worker"].entrypoint == "https://one.example/x https://one.example/x 0.1"
    assert codes(*changes) == ["data-uri-string"]


def test_a_masked_copy_asks_for_its_secrets() -> None:
    assert "masked-secrets" in codes(("secrets", "******"))


def test_same_name_under_two_types_is_fine_until_it_is_listed() -> None:
    twin = ("prerequisites/4", {"name": "image", "type": "script", "uri": "x"})
    assert codes(twin, (f"{W}/script", "image"), ("prerequisites/2", {"name": "z", "type": "script"})) == ["unused-prerequisite"]
    assert "ambiguous-prerequisite" in codes(twin, (f"{W}/prerequisites", ["image"]))


def test_circles_of_requirements_are_refused_once() -> None:
    changes = (("prerequisites/1/require", ["code"]), ("prerequisites/2/require", ["set"]))
    found = [problem for problem in problems(changed(*changes)) if problem.code == "require-cycle"]
    assert len(found) == 1
    assert "set -> code -> set" in found[0].message or "code -> set -> code" in found[0].message


def test_listed_prerequisites_are_reachable_by_name_and_as_the_only_one_of_their_type() -> None:
    unselected = ((f"{W}/data", REMOVE), (f"{W}/prerequisites", ["set"]))
    commands = (f"{W}/commands", ["<% $data.name %> <% $set.uri[0] %> <% $prerequisites.set.name %> <% $parameters.lr %>"])
    assert job(*unselected, commands).task_roles["worker"].entrypoint == "set https://data.example/set.tgz set 0.1"
    other = ("prerequisites/4", {"name": "other", "type": "data", "uri": ["x"]})
    two = (other, (f"{W}/data", REMOVE), (f"{W}/prerequisites", ["set", "other"]))
    assert "template-unresolved" in codes(*two, (f"{W}/commands", ["<% $data.name %> <% $parameters.lr %>"]))


def test_a_dockerimage_may_have_callbacks_although_openpai_refuses() -> None:
    callbacks = [{"event": "containerStart", "commands": ["echo"]}]
    extended = job(("prerequisites/0/callbacks", callbacks), ("prerequisites/0/require", ["code"]))
    assert [each.name for each in extended.task_roles["worker"].prerequisites] == ["code", "image", "set", "model"]
    assert [each.code for each in extended.warnings] == ["openpai-refuses", "openpai-refuses"]


def test_lenient_keeps_unresolved_tags_in_openpais_spelling() -> None:
    entrypoint = job((f"{W}/commands", ["<%$nope.x[0]%> <% $parameters.lr %>"]), lenient=True).task_roles["worker"].entrypoint
    assert entrypoint == "<% $nope.x.0 %> 0.1"
