"""Changed jobs: our verdict is that of OpenPAI's own libraries, but for the documented differences."""

from __future__ import annotations

import copy
import json
from typing import Any, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.loading import read_job
from pailot.protocol import InvalidJob

from ..support.changed_jobs import BASE

pytestmark = pytest.mark.node


class Oracle(Protocol):
    def ask(self, request: dict[str, Any]) -> dict[str, Any]: ...


FULL = copy.deepcopy(BASE) | {
    "version": "1.0",
    "contributor": "me",
    "description": "x",
    "secrets": {"pw": "long enough"},
    "jobRetryCount": 1,
    "deployments": [{"name": "prod", "taskRoles": {"worker": {"preCommands": ["a"], "postCommands": ["b"]}}}],
    "defaults": {"deployment": "prod", "virtualCluster": "default"},
    "extras": {"submitFrom": "x"},
}
FULL["taskRoles"]["worker"] |= {
    "instances": 2,
    "completion": {"minFailedInstances": 1, "minSucceededInstances": 2},
    "taskRetryCount": 0,
    "prerequisites": ["set"],
    "extraContainerOptions": {"shmMB": 64},
}
FULL["taskRoles"]["worker"]["resourcePerInstance"]["ports"] = {"web": 1}
FULL["prerequisites"][0]["auth"] = {"username": "u", "password": "<% $secrets.pw %>", "registryuri": "r"}
FULL["prerequisites"][2] |= {"plugin": "com.microsoft.pai.runtimeplugin.cmd", "require": ["set"]}

NUMBERS: list[Any] = [None, True, False, 0, 1, -1, 2, 1.5, 1.0]
TEXTS: list[Any] = ["", "2", "job", "set", "image", "a b", "x", "2019-01-01"]
COLLECTIONS: list[Any] = [[], {}, ["x"], [1], {"a": 1}, {"x": {}}]
VALUES = st.sampled_from(NUMBERS + TEXTS + COLLECTIONS)
KEYS = st.sampled_from(["name", "extra", "a-b", "commands", "uri", "instances", "type", "_x", "1x", "additional"])

# Codes of our refusals that OpenPAI's server does not have; docs/reference/openpai-differences.md explains each.
OURS = {
    "out-of-range": "bounds that the protocol text states: ports, min*Instances, negative resources and retries",
    "unknown-plugin": "plugins are checked when the job is read",
    "unknown-prerequisite": "`require` is resolved",
    "template-unresolved": "a tag that stays unresolved is an error",
    "template-malformed": "a tag that would vanish is an error",
    "require-cycle": "`require` is resolved",
    "ambiguous-prerequisite": "a listed name must mean one prerequisite",
    "missing-key": "callbacks and plugins are checked",
    "bad-value": "events and policies are checked",
    "plugin-parameters": "plugins are checked",
}


def paths(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        found += paths(value, (*path, key))
    return found


@st.composite
def changed_jobs(draw: st.DrawFn) -> dict[str, Any]:
    root = copy.deepcopy(FULL)
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(paths(root)))
        parent: Any = root
        for step in path[:-1]:
            parent = parent[step]
        action = draw(st.sampled_from(["replace", "remove", "add"]))
        if action == "remove" and isinstance(parent, dict):
            del parent[path[-1]]
        elif action == "add" and isinstance(parent, dict):
            parent[draw(KEYS)] = copy.deepcopy(draw(VALUES))
        else:
            parent[path[-1]] = copy.deepcopy(draw(VALUES))
        if not root:
            break
    return root


@given(root=changed_jobs())
def test_same_verdict_and_entry_points(oracle: Oracle, root: dict[str, Any]) -> None:
    text = json.dumps(root)
    upstream = oracle.ask({"op": "submit", "text": text})
    try:
        job = read_job(text, "job.json")
    except InvalidJob as invalid:
        if upstream["status"] == 202 and not _refused_by_us_alone(invalid):
            pytest.fail(f"refused: {[(p.path, str(p)) for p in invalid.problems]}\n{text}")
        return
    if upstream["status"] != 202:
        assert _accepted_by_us_alone(root), (upstream, text)
        return
    ours = {name: role.entrypoint for name, role in job.task_roles.items()}
    for name, entrypoint in upstream["entrypoints"].items():
        assert ours[name] == entrypoint


# Places where OpenPAI's schema says nothing and a wrong type would only break later.
UNCHECKED_BY_OPENPAI = (
    "auth", "callbacks", "failurePolicy", "taskRoles", "virtualCluster", "ports",
    "hivedScheduler", "storages", "pailot", "runtimeplugin",
)  # fmt: skip


def _refused_by_us_alone(invalid: InvalidJob) -> bool:
    errors = [problem for problem in invalid.problems if problem.is_error]
    return any(problem.code in OURS for problem in errors) or any(
        any(word in problem.path for word in UNCHECKED_BY_OPENPAI) for problem in errors
    )


def _accepted_by_us_alone(root: dict[str, Any]) -> bool:
    """A data uri that is a text, a callback in a dockerimage, a null where OpenPAI crashes."""
    for each in root.get("prerequisites") or ():
        if each.get("type") == "data" and isinstance(each.get("uri"), str):
            return True
        if each.get("type") == "dockerimage" and {"plugin", "require", "callbacks", "failurePolicy"} & set(each):
            return True
    return False
