"""No problem, message or repr shows a secret, and none sends control characters to a terminal."""

from __future__ import annotations

import pytest

from pailot.protocol import InvalidJob, Problem, read

JOB = """\
protocolVersion: 2
name: demo
type: job
prerequisites:
  - {name: i, type: dockerimage, uri: x}
taskRoles:
  w: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [x]}
"""
CLEAR = "hunter2"


def found(text: str) -> tuple[Problem, ...]:
    try:
        return read(text).warnings
    except InvalidJob as invalid:
        return invalid.problems


@pytest.mark.parametrize(
    "section",
    [
        f"secrets: {CLEAR}\n",
        f"secrets: [{CLEAR}]\n",
        f"secrets:\n  a: {CLEAR}\n",
        f"secrets:\n  a: {CLEAR}\n  a: other\n",
        f"secrets:\n  a: {CLEAR}: x\n",
        f'secrets:\n  a: "{CLEAR}\n',
        "secrets:\n  a: 0177\n  b: 2020-01-01\n  c: h2\n",
        f'"secrets": {{a: {CLEAR}, b: [}}\n',
        f"secrets: {{a: {CLEAR}}}; \n",
    ],
)
def test_a_problem_in_the_secrets_does_not_show_them(section: str) -> None:
    problems = found(JOB + section)
    assert problems
    shown = "".join(str(problem) + problem.source + repr(problem) for problem in problems)
    for secret in (CLEAR, "0177", "2020-01-01", "h2"):
        assert secret not in shown


def test_one_line_of_json_does_not_show_the_secrets_beside_a_problem() -> None:
    import json

    root = {"protocolVersion": 2, "name": "a b", "secrets": {"pw": CLEAR}, "type": "job", "taskRoles": {}}
    problems = found(json.dumps(root))
    assert {problem.code for problem in problems} >= {"bad-name", "too-few"}
    assert all(CLEAR not in problem.source for problem in problems)
    assert any("******" in problem.source for problem in problems)


def test_credentials_of_a_registry_are_confidential_too() -> None:
    text = JOB.replace("uri: x}", "uri: x, auth: {password: 1234567}}")
    (problem,) = found(text)
    assert problem.code == "wrong-type"
    assert "1234567" not in str(problem) + problem.source


def test_control_characters_are_not_echoed() -> None:
    (problem,) = found("name: \x1b[31mred\n")
    assert "\x1b" not in problem.source + problem.message


def test_a_masked_copy_takes_its_secrets_back() -> None:
    from pailot.protocol.overrides import Override

    masked = JOB.replace("[x]", "['<% $secrets.a %>']") + 'secrets: "******"\n'
    assert [problem.code for problem in found(masked)] == ["masked-secrets"]
    job = read(masked, changes=[Override(("secrets", "a"), "again", "--secret a")])
    assert job.secrets.reveal() == {"a": "again"}
