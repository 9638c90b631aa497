"""`Job` to `Plan`: what a plan holds, and what it never holds."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.planning import Plan, plan
from pailot.planning.environment import converted, spellings
from pailot.protocol import InvalidJob, read
from pailot.runfolder.plan_codec import decode, encode


def job(role: str = "", extras: str = "", prerequisites: str = "", name: str = "worker", more: str = "") -> str:
    return f"""
protocolVersion: 2
name: demo
type: job
prerequisites:
  - {{name: image, type: dockerimage, uri: debian}}
{prerequisites}
{more}
taskRoles:
  {name}:
    dockerImage: image
    resourcePerInstance: {{cpu: 2, memoryMB: 100, gpu: 1}}
    commands: [echo hello]
{role}
extras:
  submitFrom: test
{extras}
"""


def planned(*args: str, **kwargs: str) -> Plan:
    return plan(read(job(*args, **kwargs)), user="ann")


def test_a_plain_role_yields_a_script_a_person_would_have_written() -> None:
    role = planned().roles["worker"]
    assert role.scripts.main == "#!/bin/bash\nset -o errexit -o nounset -o pipefail\n\necho hello\n"
    assert (role.scripts.start, role.scripts.exit, role.entrypoint) == ("", "", "echo hello")


def test_both_spellings_of_a_role_are_exported() -> None:
    made = planned("    instances: 3\n    completion: {minFailedInstances: 2}", name="ps_Server")
    environment = made.roles["ps_Server"].environment
    for spelling in ("ps_Server", "psserver"):
        assert environment[f"PAI_TASK_ROLE_TASK_COUNT_{spelling}"] == "3"
        assert environment[f"PAI_RESOURCE_{spelling}"] == "1,2,100,0"
        assert environment[f"PAI_MIN_FAILED_TASK_COUNT_{spelling}"] == "2"
        assert environment[f"PAI_MIN_SUCCEEDED_TASK_COUNT_{spelling}"] == "3"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PAI_JOB_NAME", "ann~demo"),
        ("PAI_FRAMEWORK_NAME", "ann~demo"),
        ("PAI_USER_NAME", "ann"),
        ("PAI_USERNAME", "ann"),
        ("PAI_DEFAULT_FS_URI", ""),
        ("PAI_TASK_ROLE_COUNT", "1"),
        ("PAI_TASK_ROLE_LIST", "worker"),
        ("PAI_JOB_TASK_ROLE_LIST", "worker"),
        ("PAI_TASKS_NUM", "2"),
        ("PAI_JOB_TASK_COUNT", "2"),
        ("PAI_TASK_ROLE_INSTANCES", "worker:0,worker:1"),
        ("PAI_VIRTUAL_CLUSTER", "default"),
        ("PAI_CURRENT_TASK_ROLE_NAME", "worker"),
        ("FC_TASKROLE_NAME", "worker"),
        ("FC_FRAMEWORK_NAME", hashlib.md5(b"ann~demo").hexdigest()),
        ("WORLD_SIZE", "2"),
        ("PYTHONUNBUFFERED", "1"),
    ],
)
def test_shared_environment(name: str, value: str) -> None:
    assert planned("    instances: 2").roles["worker"].environment[name] == value


def test_a_job_may_let_python_keep_what_it_prints() -> None:
    job_plan = planned(extras="  pailot: {environment: {PYTHONUNBUFFERED: ''}}")
    assert job_plan.roles["worker"].environment["PYTHONUNBUFFERED"] == ""


def test_task_environment_tells_tasks_apart() -> None:
    role = planned("    instances: 2").roles["worker"]
    assert role.task_environment(1)["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"] == "1"
    assert role.task_environment(1)["RANK"] == "1"
    assert not set(role.task_environment(0)) & set(role.environment)


def test_a_role_without_gpu_sees_none() -> None:
    text = job().replace("gpu: 1", "gpu: 0")
    environment = plan(read(text)).roles["worker"].environment
    assert (environment["NVIDIA_VISIBLE_DEVICES"], environment["CUDA_VISIBLE_DEVICES"]) == ("none", "")
    assert "CUDA_VISIBLE_DEVICES" not in planned().roles["worker"].environment


def test_secrets_stay_references_everywhere() -> None:
    text = (
        job(
            prerequisites="""
  - {name: private, type: dockerimage, uri: x/y, auth: {username: u, password: <% $secrets.pw %>}}
  - name: setup
    type: script
    callbacks: [{event: containerStart, commands: ["login <% $secrets.pw %>"]}]
""",
            more="secrets: {pw: hunter2hunter2}",
            role="    prerequisites: [setup]",
        )
        .replace("dockerImage: image", "dockerImage: private")
        .replace("echo hello", '"use <%$secrets.pw%>"')
    )
    made = plan(read(text))
    shown = json.dumps(made.to_json()) + repr(made)
    assert "hunter2" not in shown
    role = made.roles["worker"]
    assert "login <% $secrets.pw %>" in role.scripts.start
    assert role.entrypoint == "use <% $secrets.pw %>"
    assert made.to_json()["taskRoles"]["worker"]["imageAuth"] == {"username": "u", "password": "******", "registryuri": ""}


def test_json_has_the_documented_keys() -> None:
    shown = planned().to_json()
    role = shown["taskRoles"]["worker"]
    documented = set("instances image entrypoint script environment resources retries completion prerequisites callbacks".split())
    assert documented <= set(role)
    assert set(role["script"]) == {"start", "main", "exit"}
    assert {"name", "taskRoles", "warnings"} <= set(shown)
    assert role["completion"] == {"minFailedInstances": 1, "minSucceededInstances": 1}


def test_ssh_and_http_ports_are_always_there() -> None:
    assert planned().roles["worker"].resources.ports == {"ssh": 1, "http": 1}


def test_runtime_plugins_come_after_prerequisites_and_only_for_their_roles() -> None:
    extras = """
  com.microsoft.pai.runtimeplugin:
    - {plugin: cmd, taskroles: [worker], parameters: {preCommands: ["echo <% $parameters.x %>"], postCommands: [echo bye]}}
    - {plugin: cmd, taskroles: [other], parameters: {preCommands: [echo other]}}
"""
    prerequisites = "  - {name: first, type: script, callbacks: [{event: taskStarts, commands: [echo first]}]}"
    second = (
        "\n  other:\n    dockerImage: image\n    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}\n    commands: ['true']"
    )
    text = job("    prerequisites: [first]", extras, prerequisites, more="parameters: {x: 7}")
    text = text.replace("\nextras:", second + "\nextras:")
    made = plan(read(text))
    assert [(each.prerequisite, each.event, each.commands) for each in made.roles["worker"].callbacks] == [
        ("first", "containerStart", ("echo first",)),
        ("cmd", "containerStart", ("echo 7",)),
        ("cmd", "taskSucceeds", ("echo bye",)),
    ]
    assert [each.commands for each in made.roles["other"].callbacks] == [("echo other",)]


def test_teamwise_storage_becomes_storages() -> None:
    extras = "  com.microsoft.pai.runtimeplugin: [{plugin: teamwise_storage, parameters: {storageConfigNames: [nfs]}}]"
    made = planned(extras=extras)
    assert [(each.name, each.mount_path) for each in made.storages] == [("nfs", "/mnt/nfs")]
    assert not made.default_storages
    bare = planned(extras="  com.microsoft.pai.runtimeplugin: [{plugin: teamwise_storage}]")
    assert (bare.storages, bare.default_storages) == ((), True)
    both = planned(extras=extras + "\n  storages: [{name: own, mountPath: /own}]")
    assert [each.mount_path for each in both.storages] == ["/own"]
    assert [each.storages_key for each in (made, bare, both)] == ["teamwise_storage", "teamwise_storage", "extras.storages"]
    assert [decode(encode(each)) for each in (made, bare, both)] == [made, bare, both]


def test_job_ssh_brings_a_key_and_needs_every_peer() -> None:
    extras = "  com.microsoft.pai.runtimeplugin: [{plugin: ssh, parameters: {jobssh: true, sshbarrier: true}}]"
    role = planned("    instances: 200", extras=extras).roles["worker"]
    assert [each.kind for each in role.provisions] == ["ssh-key"]
    assert role.peers_by_name
    assert not planned("    instances: 200").roles["worker"].peers_by_name
    assert "PAI_JOB_SSH_KEY" in role.scripts.start


def test_without_gang_allocation_job_ssh_is_off_and_says_so() -> None:
    extras = "  gangAllocation: false\n  com.microsoft.pai.runtimeplugin: [{plugin: ssh, parameters: {jobssh: true}}]"
    made = planned(extras=extras)
    assert made.roles["worker"].scripts.start == ""
    assert [problem.code for problem in made.warnings] == ["plugin-note"]


@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        ("{plugin: git}", "'repo_uri' is missing"),
        ("{plugin: git, parameters: {repo_uri: 3}}", "'repo_uri' should be a text"),
        ("{plugin: tensorboard, parameters: {logdir: [a]}}", "'logdir' should be a mapping"),
        ("{plugin: tensorboard, parameters: {logdir: {a: b}, port: x}}", "'port' should be a number"),
        ("{plugin: ssh, parameters: {userssh: key}}", "'userssh' should be a mapping"),
        ("{plugin: ssh, parameters: {jobssh: true, sshbarrier: true, sshbarrierTimeout: soon}}", "number of minutes"),
        ("{plugin: cmd, parameters: {callbacks: [{event: never, commands: [x]}]}}", "needs an 'event'"),
        ("{plugin: cmd, parameters: {callbacks: [{event: taskStarts, commands: [x]}], preCommands: [y]}}", "not both"),
        ("{plugin: fetch}", "'uri' is missing"),
        ("{plugin: fetch, parameters: {uri: a, sha256: zz}}", "64 hexadecimal digits"),
        ("{plugin: python}", "no 'callbacks'"),
    ],
)
def test_bad_plugin_parameters_are_one_error_with_a_place(plugin: str, words: str) -> None:
    text = job(extras=f"  com.microsoft.pai.runtimeplugin:\n    - {plugin}")
    with pytest.raises(InvalidJob) as caught:
        plan(read(text, file="j.yaml"))
    (problem,) = caught.value.problems
    assert problem.code == "plugin-parameters"
    assert words in problem.message
    assert text.splitlines()[problem.line - 1].strip().startswith("- {plugin")


@given(st.integers(1, 40), st.integers(0, 5), st.text("abcXYZ_09", min_size=1).filter(lambda name: not name[0].isdigit()))
def test_planning_is_deterministic(instances: int, retries: int, name: str) -> None:
    text = job(f"    instances: {instances}\n    taskRetryCount: {retries}", name=name)
    first, second = plan(read(text)), plan(read(text))
    assert first.to_json() == second.to_json()
    assert first.task_count == instances


@given(st.text())
def test_spellings_are_parts_of_variable_names(role: str) -> None:
    for spelling in spellings(role):
        assert all(c.isascii() and (c.isalnum() or c == "_") for c in spelling)
    assert converted(role) == converted(converted(role))


@pytest.mark.parametrize(
    "plugin", ["git, parameters: {repo_uri: x, clone_dir: y, ", "fetch, parameters: {uri: x, ", "python, parameters: {"]
)
def test_every_plugin_takes_callbacks_as_parameters(plugin: str) -> None:
    extras = f"  com.microsoft.pai.runtimeplugin: [{{plugin: {plugin}callbacks: [{{event: taskStarts, commands: [echo me]}}]}}}}]"
    (*_, last) = planned(extras=extras).roles["worker"].callbacks
    assert last.event == "containerStart"
    assert "echo me" in last.commands[0]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("def plugin(*, needed, **_): return Steps()", "it failed with TypeError"),
        ("def plugin(**_): return 3", "did not answer Steps"),
        ("def plugin(**_): return Steps((on('sometime', ['x']),))", "known events"),
        ("def plugin(**_): raise RuntimeError('oops')", "it failed with RuntimeError: oops"),
        ("def plugin(**_): raise PluginError('not so')", "not so"),
    ],
)
def test_a_defect_in_an_installed_plugin_is_an_error_of_the_job(
    body: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_plugin.py").write_text(f"from pailot.planning.plugins.plugin_api import PluginError, Steps, on\n{body}\n")
    metadata = tmp_path / "their_plugin-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-plugin\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[pailot.plugins]\ntheirs = their_plugin:plugin\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_plugin", raising=False)
    text = job(extras="  com.microsoft.pai.runtimeplugin: [{plugin: theirs}]")
    from pailot.planning.plugins import exists

    with pytest.raises(InvalidJob, match=words):
        plan(read(text, is_plugin=exists))
