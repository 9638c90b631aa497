"""Jobs written in Python: the same kind of thing as jobs read from files, and the same file."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import pailot
from pailot import Auth, Callback, Data, Deployment, DockerImage, Job, Output, Script, TaskRole

EXAMPLES = Path(__file__).parents[3] / "examples"


def full_job() -> Job:
    code = Script("code", "https://example.com/code.git", require=["tool"], failure_policy="ignore")
    tool = Script("tool", callbacks=[Callback("containerStart", "echo start"), Callback("containerExit", ["a", "b"], "ignore")])
    return Job(
        "full",
        {
            "ps": TaskRole(commands="serve <% $parameters.rate %>", image="tensorflow", ports={"grpc": 2}, min_failed=1),
            "worker": TaskRole(
                commands=["train <% $data.uri[0] %>", "save <% $output.uri %> <% $secrets.key %>"],
                image=DockerImage("torch", "pytorch:2", auth=Auth("me", "<% $secrets.key %>", "registry.example.com")),
                instances=3,
                cpu=2,
                memory_mb=4096,
                gpu=1,
                shm_mb=128,
                task_retry_count=2,
                min_succeeded=-1,
                data=Data("set", "/data/set"),
                output=Output("out", "/data/out"),
                script=code,
                prerequisites=[tool],
            ),
        },
        parameters={"rate": 0.5},
        secrets={"key": "hidden-value"},
        job_retry_count=1,
        deployments=[Deployment("here", {"worker": ["echo before"]}, {"worker": ["echo after"]})],
        deployment="here",
        virtual_cluster="gpu",
        environment={"A": "b"},
        max_run_seconds=60,
        extras={"submitFrom": "python"},
    )


def test_a_built_job_is_what_its_file_would_be_read_as() -> None:
    job = full_job()
    again = pailot.loads(job.to_yaml(with_secrets=True))
    assert type(again) is type(job) is Job
    assert again == job
    assert yaml.safe_load(job.to_yaml(with_secrets=True)) == job.to_dict(with_secrets=True)
    role = job.task_roles["worker"]
    assert (role.instances, role.docker_image, role.resources.gpu, role.resources.shm_mb) == (3, "torch", 1, 128)
    assert [each.name for each in role.prerequisites if each.type != "dockerimage"] == ["tool", "code", "set", "out"]
    assert job.task_roles["ps"].docker_image == "image2"
    assert job.extras.options.max_run_seconds == 60


def test_secrets_are_written_only_when_asked_for(tmp_path: Path) -> None:
    job = full_job()
    assert "hidden-value" not in job.to_yaml() + repr(job) + str(job.to_dict())
    job.save(tmp_path / "masked.yaml")
    assert "hidden-value" not in (tmp_path / "masked.yaml").read_text()
    job.save(tmp_path / "clear.yaml", with_secrets=True)
    assert pailot.load(tmp_path / "clear.yaml") == job
    assert (tmp_path / "clear.yaml").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*/job.yaml")), ids=lambda path: path.parent.name)
def test_a_file_that_is_read_is_written_as_it_was(file: Path) -> None:
    job = pailot.load(file, library=[str(file.parent)])
    assert job.to_yaml(with_secrets=True) == file.read_text()


def test_a_v1_file_is_written_as_v2() -> None:
    job = pailot.load(EXAMPLES / "legacy-v1" / "job.json")
    assert pailot.loads(job.to_yaml()).task_count == job.task_count


def test_a_job_can_be_changed_and_copied() -> None:
    job = full_job().changed({"parameters.rate": 2}, name="other", secrets={"key": "another-value"})
    assert job.name == "other"
    assert "serve 2" in job.plan().roles["ps"].entrypoint
    assert job.secrets.reveal() == {"key": "another-value"}
    assert pickle.loads(pickle.dumps(job)) == job
    renamed = job.replace(name="third")
    assert (renamed.name, type(renamed)) == ("third", Job)
    assert pailot.loads(renamed.to_yaml(with_secrets=True)).name == "third"


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(pailot.InvalidJob) as caught:
        Job("no good name", {"main": TaskRole(commands="<% $parameters.nothing %>", image="x", instances=0)})
    assert {problem.code for problem in caught.value.problems} >= {"bad-name", "out-of-range", "template-unresolved"}
    with pytest.raises(pailot.InvalidJob, match="is empty; at least one entry"):
        Job("empty", {})


def test_two_prerequisites_of_one_name_are_not_merged() -> None:
    roles = {
        name: TaskRole(commands="x", image=DockerImage("same", uri)) for name, uri in (("a", "debian:11"), ("b", "debian:12"))
    }
    with pytest.raises(pailot.InvalidJob, match="two dockerimage prerequisites 'same'"):
        Job("twice", roles)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,5}", fullmatch=True),
        st.lists(st.text(min_size=1), min_size=1, max_size=3),
        min_size=1,
        max_size=3,
    )
)
def test_any_command_survives(commands: dict[str, list[str]]) -> None:
    texts = {name: [text.replace("<%", "") for text in each] for name, each in commands.items()}
    try:
        job = Job("any", {name: TaskRole(commands=each, image="debian") for name, each in texts.items()})
    except pailot.InvalidJob as error:
        assert {problem.code for problem in error.problems if problem.is_error} <= {"yaml-syntax", "yaml-encoding"}  # noqa: PT017
        return
    assert {name: list(role.commands) for name, role in job.task_roles.items()} == texts


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,7}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Co", "Cn")), min_size=1, max_size=30).filter(
    lambda text: "<%" not in text and "\ufeff" not in text
)
SCALARS = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), TEXTS)
CALLBACKS = st.builds(
    Callback,
    st.sampled_from(["containerStart", "containerExit", "taskSucceeds", "taskFails"]),
    TEXTS | st.lists(TEXTS, min_size=1, max_size=2),
    st.sampled_from([None, "fail", "ignore"]),
)


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    """The arguments of any job that can be written with the builders."""
    roles = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    more: dict[str, Any] = {"version": draw(st.none() | TEXTS), "description": draw(st.none() | TEXTS)}
    image = DockerImage("img", draw(TEXTS), auth=draw(st.none() | st.builds(Auth, TEXTS, TEXTS, st.none() | TEXTS)), **more)
    tool = Script(
        "tool", callbacks=draw(st.lists(CALLBACKS, max_size=2)), more=draw(st.dictionaries(st.just("key_of_mine"), SCALARS))
    )
    data, output = Data("set", draw(st.lists(TEXTS, min_size=1, max_size=2))), Output("out", draw(TEXTS))

    def role() -> TaskRole:
        instances = draw(st.integers(1, 9))
        return TaskRole(
            commands=draw(TEXTS | st.lists(TEXTS, min_size=1, max_size=3)),
            image=draw(st.just(image) | st.sampled_from(["debian:12", "img"])),
            instances=instances,
            cpu=draw(st.integers(1, 99)),
            memory_mb=draw(st.integers(64, 9999)),
            gpu=draw(st.integers(0, 8)),
            ports=draw(st.dictionaries(NAMES, st.integers(1, 5), max_size=2)),
            shm_mb=draw(st.none() | st.integers(1, 64)),
            infiniband=draw(st.none() | st.booleans()),
            task_retry_count=draw(st.integers(0, 9)),
            min_failed=draw(st.none() | st.integers(1, instances)),
            min_succeeded=draw(st.none() | st.integers(1, instances)),
            data=draw(st.sampled_from([None, data])),
            output=draw(st.sampled_from([None, output])),
            prerequisites=draw(st.sampled_from([(), (tool,), ("tool",)])),
        )

    commands = st.dictionaries(st.sampled_from(roles), st.lists(TEXTS, min_size=1, max_size=2), min_size=1, max_size=2)
    deployment = draw(st.none() | st.builds(Deployment, st.just("there"), commands, commands))
    return {
        "name": draw(st.from_regex(r"[a-z][a-z0-9_-]{0,9}", fullmatch=True)),
        "task_roles": {name: role() for name in roles},
        "prerequisites": [image, tool],
        "parameters": draw(st.dictionaries(NAMES, SCALARS, max_size=3)),
        "secrets": draw(st.dictionaries(NAMES, TEXTS, max_size=2)),
        "job_retry_count": draw(st.integers(0, 9)),
        "deployments": [] if deployment is None else [deployment],
        "deployment": None if deployment is None else draw(st.sampled_from([None, "there"])),
        "virtual_cluster": draw(st.none() | NAMES),
        "environment": draw(st.dictionaries(st.from_regex(r"[A-Z]{1,5}", fullmatch=True), TEXTS, max_size=2)),
        "max_run_seconds": draw(st.none() | st.integers(1, 999)),
        "extras": draw(st.none() | st.dictionaries(NAMES.filter(lambda name: name != "pailot"), SCALARS, max_size=2)),
        **more,
    }


@given(jobs())
def test_any_job_is_what_its_file_is_read_as_and_the_text_is_stable(written: dict[str, Any]) -> None:
    job = Job(**written)
    text = job.to_yaml(with_secrets=True)
    again = pailot.loads(text)
    assert again == job
    assert again.to_yaml(with_secrets=True) == text
    assert Job(**written).to_yaml(with_secrets=True) == text
    assert pailot.loads(job.changed({}).to_yaml(with_secrets=True)) == job
    assert yaml.safe_load(text)["taskRoles"].keys() == written["task_roles"].keys()
    assert again.secrets.reveal() == written["secrets"]
    assert {name: again.parameters[name] for name in written["parameters"]} == written["parameters"]
