"""Changes made while a job is read: typed values, dotted paths, honest places."""

from __future__ import annotations

from typing import Any

import pytest

from pailot.protocol import InvalidJob, read
from pailot.protocol.overrides import BadOverride, Override, parse_path, parse_set

TEXT = """\
protocolVersion: 2
name: demo
type: job
prerequisites:
  - {name: i, type: dockerimage, uri: x}
taskRoles:
  w:
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}
    commands:
      - echo <% $parameters.p %>
"""


def entrypoint(*assignments: str) -> str:
    return read(TEXT, changes=[parse_set(each) for each in assignments]).task_roles["w"].entrypoint


@pytest.mark.parametrize(
    ("assignment", "rendered"),
    [
        ("parameters.p=0.10", "echo 0.1"),
        ("parameters.p=1e3", "echo 1000"),
        ("parameters.p='0.10'", "echo 0.10"),
        ("parameters.p=yes", "echo yes"),
        ("parameters.p=[1, 2]", "echo 1,2"),
        ("parameters.p=a=b", "echo a=b"),
        ("parameters={p: x}", "echo x"),
        ("taskRoles.w.commands[0]=plain", "plain"),
        ("taskRoles.w.commands=[one, two]", "one\ntwo"),
    ],
)
def test_values_are_typed_as_in_the_file(assignment: str, rendered: str) -> None:
    assert entrypoint(assignment) == rendered


def test_a_list_can_grow_by_one() -> None:
    assert entrypoint("parameters.p=1", "taskRoles.w.commands[1]=more") == "echo 1\nmore"


@pytest.mark.parametrize("text", ["no-equals", "=value", "a..b=1", "a[x]=1", "a=[1"])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(BadOverride, match="--set"):
        parse_set(text)


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("taskRoles.nobody.instances=2", "there is no task role 'nobody'"),
        ("name.first=x", "'name' has no part 'first'"),
        ("taskRoles.w.commands[5]=x", "the index 5 is too large"),
        ("prerequisites.first=x", "'prerequisites' has no part 'first'"),
    ],
)
def test_what_does_not_fit_is_one_error(assignment: str, words: str) -> None:
    with pytest.raises(InvalidJob) as caught:
        read(TEXT, changes=[parse_set("parameters.p=1"), parse_set(assignment)])
    assert any(
        problem.code == "bad-override" and words in problem.message and problem.file.startswith("--set ")
        for problem in caught.value.problems
    )


@pytest.mark.parametrize(
    ("change", "file"),
    [
        (parse_set("taskRoles.w.instances=0"), "--set taskRoles.w.instances"),
        (parse_set("taskRoles.w.resourcePerInstance={cpu: x}"), "--set taskRoles.w.resourcePerInstance"),
        (Override(("name",), "a b", "--name"), "--name"),
        (Override(("defaults", "deployment"), "none", "--deployment"), "--deployment"),
    ],
)
def test_a_problem_of_an_override_is_placed_at_the_option(change: Any, file: str) -> None:
    with pytest.raises(InvalidJob) as caught:
        read(TEXT, file="job.yaml", changes=[parse_set("parameters.p=1"), change])
    assert file in {problem.file for problem in caught.value.problems}


def test_paths() -> None:
    assert parse_path("taskRoles.w.commands[0]") == ("taskRoles", "w", "commands", 0)
    assert parse_path("extras.com") == ("extras", "com")


@pytest.mark.parametrize(
    ("assignment", "meant"),
    [
        ("p=3", "parameters.p"),
        ("key=x", "secrets.key"),
        ("w.instances=2", "taskRoles.w.instances"),
    ],
)
def test_a_path_that_lacks_its_section_is_told_with_it(assignment: str, meant: str) -> None:
    text = TEXT + "parameters: {p: 1}\nsecrets: {key: hidden-value}\n"
    with pytest.raises(InvalidJob) as caught:
        read(text, changes=[parse_set(assignment)])
    (problem,) = [each for each in caught.value.problems if each.is_error]
    assert (problem.code, problem.file) == ("unknown-key", f"--set {assignment.partition('=')[0]}")
    assert problem.message.endswith(f"; did you mean '{meant}'?")


def test_the_same_key_in_the_file_itself_has_the_usual_hint() -> None:
    with pytest.raises(InvalidJob, match="'p' is not known in a job; known are"):
        read(TEXT + "parameters: {p: 1}\np: 2\n", changes=[parse_set("parameters.p=3")])
