"""What placed tasks are told: every address and port under every name that OpenPAI's jobs use."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.planning import Plan, plan
from pailot.planning.environment import MAX_NAMED_PEERS, converted
from pailot.planning.placement import Placement, peers, shared_variables, task_variables
from pailot.protocol import read


def made(roles: dict[str, dict[str, Any]], pailot: dict[str, Any] | None = None, plugins: list[Any] | None = None) -> Plan:
    """A plan with these roles: instances, ports, commands."""
    job = {
        "protocolVersion": 2,
        "name": "demo",
        "type": "job",
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "debian"}],
        "taskRoles": {
            name: {
                "dockerImage": "image",
                "instances": role.get("instances", 1),
                "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0, "ports": role.get("ports") or {"ssh": 1}},
                "commands": role.get("commands", ["true"]),
            }
            for name, role in roles.items()
        },
        "extras": {"pailot": pailot or {}, "com.microsoft.pai.runtimeplugin": plugins or []},
    }
    return plan(read(json.dumps(job)), user="ann")


def placed(made_plan: Plan) -> Placement:
    """Addresses and ports that are all different."""
    number = iter(range(15000, 65536))
    tasks = [(role.name, index) for role in made_plan.roles.values() for index in range(role.instances)]
    return Placement(
        {task: f"10.0.{position // 250}.{position % 250}" for position, task in enumerate(tasks)},
        {
            (name, index): {
                label: tuple(next(number) for _ in range(count)) for label, count in made_plan.roles[name].resources.ports.items()
            }
            for name, index in tasks
        },
    )


def told(made_plan: Plan, placement: Placement, role: str, index: int) -> dict[str, str]:
    """All that a task is told."""
    shared = shared_variables(made_plan, placement)
    return {**made_plan.roles[role].environment, **shared, **task_variables(made_plan, placement, role, index)}


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(lambda name: bool(converted(name)))
roles = st.dictionaries(
    names,
    st.fixed_dictionaries(
        {
            "instances": st.integers(1, 4),
            "ports": st.dictionaries(st.sampled_from(["ssh", "http", "a", "b_c"]), st.integers(1, 3)),
        }
    ),
    min_size=1,
    max_size=4,
)


@given(roles)
def test_every_task_is_told_every_address_and_port(asked: dict[str, dict[str, Any]]) -> None:
    job = made(asked)
    placement = placed(job)
    short: dict[str, list[str]] = {}
    for name in job.roles:
        short.setdefault(converted(name), []).append(name)
    for role in job.roles.values():
        for index in range(role.instances):
            variables = told(job, placement, role.name, index)
            for (peer, number), ports in placement.ports.items():
                spelled = {peer} | ({converted(peer)} if short[converted(peer)] == [peer] else set())
                for spelling in spelled:
                    assert variables[f"PAI_HOST_IP_{spelling}_{number}"] == placement.addresses[peer, number]
                    for label, numbers in ports.items():
                        assert variables[f"PAI_PORT_LIST_{spelling}_{number}_{label}"] == ",".join(map(str, numbers))
                        assert variables[f"PAI_{spelling}_{number}_{label}_PORT"] == ",".join(map(str, numbers))
            for peer, asked_role in job.roles.items():
                hosts = variables[f"PAI_TASK_ROLE_{peer}_HOST_LIST"].split(",")
                http = [placement.ports[peer, number]["http"][0] for number in range(asked_role.instances)]
                assert hosts == [f"{placement.addresses[peer, number]}:{port}" for number, port in enumerate(http)]


@given(roles, st.data())
def test_a_task_is_told_its_own_place(asked: dict[str, dict[str, Any]], data: st.DataObject) -> None:
    job = made(asked)
    placement = placed(job)
    role = data.draw(st.sampled_from(list(job.roles.values())))
    index = data.draw(st.integers(0, role.instances - 1))
    variables, ports = told(job, placement, role.name, index), placement.ports[role.name, index]
    assert variables["PAI_CURRENT_CONTAINER_IP"] == variables["PAI_CONTAINER_HOST_IP"] == placement.addresses[role.name, index]
    assert variables["PAI_CURRENT_CONTAINER_PORT"] == variables["PAI_CONTAINER_HOST_PORT"] == str(ports["http"][0])
    assert variables["PAI_CONTAINER_SSH_PORT"] == str(ports["ssh"][0])
    assert variables["PAI_TASK_INDEX"] == variables["RANK"] == str(index)
    assert variables["WORLD_SIZE"] == str(role.instances)
    assert variables["MASTER_ADDR"] == placement.addresses[role.name, 0]
    assert variables["MASTER_PORT"] == str(placement.ports[role.name, 0]["http"][0])
    parts = variables["PAI_CONTAINER_HOST_PORT_LIST"].split(";")
    assert parts.pop() == ""
    assert dict(part.split(":") for part in parts) == {label: ",".join(map(str, each)) for label, each in ports.items()}
    for label, numbers in ports.items():
        assert variables[f"PAI_CONTAINER_HOST_{label}_PORT_LIST"] == ",".join(map(str, numbers))
    assert json.loads(variables["TF_CONFIG"]) == {
        "cluster": {name: variables[f"PAI_TASK_ROLE_{name}_HOST_LIST"].split(",") for name in job.roles},
        "task": {"type": role.name, "index": index},
    }


@given(roles)
def test_the_list_of_peers_holds_all_and_is_json(asked: dict[str, dict[str, Any]]) -> None:
    job = made(asked)
    placement = placed(job)
    listed = json.loads(json.dumps(peers(job, placement)))
    assert [(each["role"], each["index"]) for each in listed] == list(placement.addresses)
    for each in listed:
        place = each["role"], each["index"]
        assert each["address"] == placement.addresses[place]
        assert each["ports"] == {label: list(numbers) for label, numbers in placement.ports[place].items()}


def test_a_role_keeps_its_own_name_when_another_is_shortened_to_it() -> None:
    job = made({"a_b": {}, "ab": {}, "A_b": {}})
    placement = placed(job)
    for role in job.roles:
        variables = told(job, placement, role, 0)
        for name in job.roles:
            assert variables[f"PAI_HOST_IP_{name}_0"] == placement.addresses[name, 0]


def test_a_port_labelled_master_is_that_of_the_first() -> None:
    job = made({"worker": {"instances": 2, "ports": {"master": 2}}})
    placement = placed(job)
    assert told(job, placement, "worker", 1)["MASTER_PORT"] == str(placement.ports["worker", 0]["master"][0])


@pytest.mark.parametrize("name", ["MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "TF_CONFIG"])
def test_what_the_job_says_itself_stands(name: str) -> None:
    job = made({"worker": {"instances": 2}}, pailot={"environment": {name: "mine"}})
    for index in range(2):
        assert told(job, placed(job), "worker", index)[name] == "mine"


def test_a_task_without_a_place_is_left_out() -> None:
    job = made({"worker": {"instances": 3}})
    whole = placed(job)
    known = [("worker", 1), ("worker", 2)]
    partial = Placement({task: whole.addresses[task] for task in known}, {task: whole.ports[task] for task in known})
    variables = told(job, partial, "worker", 1)
    assert "PAI_HOST_IP_worker_0" not in variables
    assert "MASTER_ADDR" not in variables
    assert len(variables["PAI_TASK_ROLE_worker_HOST_LIST"].split(",")) == 2
    assert peers(job, partial)[0] == {"role": "worker", "index": 0, "address": None, "ports": {}}


MANY = MAX_NAMED_PEERS + 1


def test_in_a_large_job_a_task_is_told_of_itself_and_those_its_scripts_name() -> None:
    commands = ["echo $PAI_HOST_IP_worker_7 ${PAI_ps_server_0_http_PORT} $PAI_PORT_LIST_psserver_0_ssh", "PAI_HOST_IP_nobody_3=1"]
    job = made({"worker": {"instances": MANY, "commands": commands}, "ps_server": {}})
    placement = placed(job)
    variables = {**shared_variables(job, placement), **task_variables(job, placement, "worker", 3)}
    about = {name: value for name, value in variables.items() if any(c.isdigit() for c in name)}
    own, server = placement.ports["worker", 3], placement.ports["ps_server", 0]
    assert about == {
        "PAI_HOST_IP_worker_7": placement.addresses["worker", 7],
        "PAI_ps_server_0_http_PORT": str(server["http"][0]),
        "PAI_PORT_LIST_psserver_0_ssh": str(server["ssh"][0]),
        "PAI_HOST_IP_worker_3": placement.addresses["worker", 3],
        "PAI_PORT_LIST_worker_3_ssh": str(own["ssh"][0]),
        "PAI_PORT_LIST_worker_3_http": str(own["http"][0]),
        "PAI_worker_3_ssh_PORT": str(own["ssh"][0]),
        "PAI_worker_3_http_PORT": str(own["http"][0]),
    }
    assert len(variables["PAI_TASK_ROLE_worker_HOST_LIST"].split(",")) == MANY
    assert {"PAI_TASK_ROLE_ps_server_HOST_LIST", "PAI_TASK_ROLE_psserver_HOST_LIST"} < set(variables)
    assert "TF_CONFIG" not in variables
    other = task_variables(job, placement, "ps_server", 0)
    assert "PAI_HOST_IP_worker_7" not in other


def test_in_a_large_job_only_a_role_with_ssh_is_told_of_all() -> None:
    ssh = {"plugin": "ssh", "taskroles": ["head"], "parameters": {"jobssh": True}}
    job = made({"head": {}, "worker": {"instances": MANY}}, plugins=[ssh])
    placement = placed(job)
    assert "PAI_HOST_IP_worker_99" not in shared_variables(job, placement)
    assert task_variables(job, placement, "head", 0)["PAI_HOST_IP_worker_99"] == placement.addresses["worker", 99]
    assert "PAI_HOST_IP_worker_99" not in task_variables(job, placement, "worker", 0)


def calls_to_tell_all(instances: int) -> int:
    """How many function calls it takes to tell all tasks of a job with two roles what they are told."""
    job = made(
        {
            "ps_server": {"instances": instances, "ports": {"a": 2}},
            "worker": {"instances": instances, "commands": ["$PAI_HOST_IP_worker_0"]},
        }
    )
    placement = placed(job)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        shared_variables(job, placement)
        for role, index in placement.addresses:
            task_variables(job, placement, role, index)
        peers(job, placement)
    finally:
        sys.setprofile(None)
    return calls


def test_the_work_grows_with_the_number_of_tasks_and_not_faster() -> None:
    assert calls_to_tell_all(2000) < 4.2 * calls_to_tell_all(500)
