"""Problems of jobs that were written in Python name attributes, since there is no file with lines."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

import pailot
from pailot import Auth, Callback, Data, Deployment, DockerImage, Job, Script, TaskRole

if TYPE_CHECKING:
    from collections.abc import Callable


def role(**changes: Any) -> TaskRole:
    return TaskRole(**{"commands": "true", "image": "debian", **changes})


def image(**changes: Any) -> DockerImage:
    return DockerImage("i", "debian", **changes)


@pytest.mark.parametrize(
    ("make", "place", "path"),
    [
        (lambda: Job("x y", {"w": role()}), "Job.name", "name"),
        (lambda: Job("x", {}), "Job.task_roles", "taskRoles"),
        (lambda: Job("x", {"w w": role()}), "TaskRole 'w w'", "taskRoles.w w"),
        (lambda: Job("x", {"worker": role(instances=0)}), "TaskRole 'worker'.instances", "taskRoles.worker.instances"),
        (lambda: Job("x", {"w": role(memory_mb=-1)}), "TaskRole 'w'.memory_mb", "taskRoles.w.resourcePerInstance.memoryMB"),
        (lambda: Job("x", {"w": role(min_failed=-5)}), "TaskRole 'w'.min_failed", "taskRoles.w.completion.minFailedInstances"),
        (lambda: Job("x", {"w": role(task_retry_count=-5)}), "TaskRole 'w'.task_retry_count", "taskRoles.w.taskRetryCount"),
        (lambda: Job("x", {"w": role(ports={"p": -1})}), "TaskRole 'w'.ports.p", "taskRoles.w.resourcePerInstance.ports.p"),
        (lambda: Job("x", {"w": role(data="no")}), "TaskRole 'w'.data", "taskRoles.w.data"),
        (lambda: Job("x", {"w": role(commands=["a", "<% $parameters.q %>"])}), "TaskRole 'w'.commands[1]", None),
        (lambda: Job("x", {"w": role()}, job_retry_count=-1), "Job.job_retry_count", "jobRetryCount"),
        (lambda: Job("x", {"w": role()}, deployment="d"), "Job.deployment", "defaults.deployment"),
        (lambda: Job("x", {"w": role()}, max_run_seconds=-1), "Job.max_run_seconds", "extras.pailot.maxRunSeconds"),
        (
            lambda: Job("x", {"w": role()}, extras={"pailot": {"maxRunSeconds": -1}}),
            "Job.extras.pailot.maxRunSeconds",
            "extras.pailot.maxRunSeconds",
        ),
        (
            lambda: Job("x", {"w": role()}, prerequisites=[Script("s", failure_policy="x")]),
            "Script 's'.failure_policy",
            "prerequisites[0].failurePolicy",
        ),
        (
            lambda: Job("x", {"w": role(data=Data("d", callbacks=[Callback("never", "a")]))}),
            "Data 'd'.callbacks[0].event",
            "prerequisites[0].callbacks[0].event",
        ),
        (
            lambda: Job("x", {"w": role(data=Data("d", callbacks=[Callback("containerExit", "a", "x")]))}),
            "Data 'd'.callbacks[0].failure_policy",
            "prerequisites[0].callbacks[0].failurePolicy",
        ),
        (
            lambda: Job("x", {"w": role(image=image(auth=Auth("u", "<% $secrets.p %>", 5)))}),  # type: ignore[arg-type]  # on purpose
            "DockerImage 'i'.auth.registry",
            "prerequisites[0].auth.registryuri",
        ),
        (
            lambda: Job("x", {"w": role()}, deployments=[Deployment("d", {"v": ["a"]}), Deployment("e", {"w": [5]})]),  # type: ignore[list-item]  # on purpose
            "Deployment 'e'.pre_commands.w[0]",
            "deployments[1].taskRoles.w.preCommands[0]",
        ),
    ],
)
def test_a_problem_names_the_attribute(make: Callable[[], Job], place: str, path: str | None) -> None:
    with pytest.raises(pailot.InvalidJob) as caught:
        make()
    found = {each.file: each for each in caught.value.problems}
    assert place in found
    problem = found[place]
    assert str(problem).startswith(f"{place}: error[{problem.code}]: ")
    assert path in (None, problem.path)
    assert "-:" not in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).problems == caught.value.problems


def test_warnings_name_attributes_too_and_changes_their_path() -> None:
    job = Job("x", {"w": role()}, parameters={"unused": 1})
    assert [str(each) for each in job.warnings] == [
        "Job.parameters.unused: warning[unused-parameter]: nothing refers to the parameter 'unused'"
    ]
    assert [each.file for each in job.plan().warnings] == ["Job.parameters.unused"]
    again = job.changed({"taskRoles.w.instances": 2})
    assert [each.file for each in again.warnings] == ["Job.parameters.unused"]
    with pytest.raises(pailot.InvalidJob, match=r"^taskRoles\.w\.instances:1:1: error"):
        job.changed({"taskRoles.w.instances": 0})


def test_a_text_still_has_lines() -> None:
    with pytest.raises(pailot.InvalidJob, match=r"^-:2:7: error"):
        pailot.loads(Job("x", {"w": role()}).to_yaml().replace("name: x", "name: x y", 1))
