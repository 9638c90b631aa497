"""Numbers of a job are finite and bounded, wherever they stand and however they are given."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pailot.planning import plan
from pailot.processor.checks import _check_numbers
from pailot.processor.errors import InvalidProcessor
from pailot.protocol import InvalidJob, read
from pailot.protocol.overrides import parse_set
from pailot.protocol.schema import DAY_SECONDS
from tests.support.job_options import Option, numbers, options

FREE = {"version", "prerequisites.0.version", "defaults.virtualCluster", "extras.pailot.environment.worker"}
"""Numbers that are taken as texts."""
BOUNDED = [each for each in numbers() if each.name not in FREE]


def _named(each: Option) -> str:
    return each.name


def _problem(text: str) -> Any:
    with pytest.raises(InvalidJob) as invalid:
        read(text, file="job.yaml")
    return invalid.value.problems[0]


@pytest.mark.parametrize("option", BOUNDED, ids=_named)
def test_every_number_has_a_bound_that_its_message_names(option: Option) -> None:
    most: Any = option.shape.most  # type: ignore[attr-defined]  # a number
    assert most is not None
    for value in (float("inf"), most + 1, 1e300):
        problem = _problem(option.text(value))
        assert problem.code == "out-of-range"
        assert str(most) in problem.message
        assert problem.line > 1
    assert _problem(option.text(float("nan"))).is_error
    assert _problem(option.text(float("-inf"))).is_error


@pytest.mark.parametrize("option", BOUNDED, ids=_named)
def test_the_bound_itself_is_allowed(option: Option) -> None:
    read(option.text(option.shape.most))  # type: ignore[attr-defined]  # a number


@pytest.mark.parametrize("option", [each for each in numbers() if each.name in FREE], ids=_named)
def test_a_number_that_is_taken_as_text_is_finite(option: Option) -> None:
    for value in (float("inf"), float("nan"), float("-inf")):
        assert "finite" in _problem(option.text(value)).message


@pytest.mark.parametrize("digits", [".inf", "-.inf", ".nan", "1e400", "1e999999999", "9" * 400])
def test_numbers_that_none_can_hold_are_refused_from_the_command_line_too(digits: str) -> None:
    text = options()[0].text(2)
    for path in ("extras.pailot.maxRunSeconds", "taskRoles.worker.instances"):
        with pytest.raises(InvalidJob):
            read(text, changes=(parse_set(f"{path}={digits}"),))


@pytest.mark.parametrize("option", options(), ids=_named)
@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_a_plan_is_json_whatever_the_file_says(option: Option, value: float) -> None:
    for given in (value, [value], {"x": value}):
        try:
            made = plan(read(option.text(given)), "me")
        except InvalidJob as invalid:
            json.dumps([each.to_json() for each in invalid.problems], allow_nan=False)
        else:
            json.dumps(made.to_json(), allow_nan=False)


@pytest.mark.parametrize("days", [30, 365])
def test_long_limits_are_honest(days: int) -> None:
    option = next(each for each in numbers() if each.name == "extras.pailot.maxRunSeconds")
    assert plan(read(option.text(days * DAY_SECONDS)), "me").options.max_run_seconds == days * DAY_SECONDS
    _check_numbers(1, days * DAY_SECONDS)


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 1e15, -1, 0, True, "3"])
def test_a_processor_has_the_same_bounds(seconds: object) -> None:
    with pytest.raises(InvalidProcessor, match="max_run_time"):
        _check_numbers(1, seconds)
    with pytest.raises(InvalidProcessor, match="instance_count"):
        _check_numbers(10**9, 1)


def test_the_tasks_of_all_roles_are_counted() -> None:
    option = next(each for each in options() if each.name == "taskRoles.worker.instances")
    roles = {f"role{number}": option.job(9_999)["taskRoles"]["worker"] for number in range(2)}
    problem = _problem(options()[0].text(2, taskRoles=roles))
    assert (problem.code, problem.message) == ("out-of-range", "should have at most 10000 tasks in all, has 19998")
