"""The public names: all there, and no more."""

from __future__ import annotations

import pickle

import pytest

import pailot
from pailot.values import Value


@pytest.mark.parametrize("name", pailot.__all__)
def test_every_exported_name_is_there(name: str) -> None:
    assert getattr(pailot, name) is not None
    assert name in dir(pailot)


def test_a_name_that_is_not_there_is_said_plainly() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pailot.nothing  # noqa: B018  # that is the test


class Point(Value):
    x: int
    y: int = 0


class Named(Point):
    name: str = ""


def test_values_are_immutable_records() -> None:
    point = Point(1)
    assert repr(point) == "Point(x=1, y=0)"
    assert point == Point(x=1, y=0) != Point(2)
    assert point.replace(y=5) == Point(1, 5)
    assert hash(point) == hash(Point(1))
    assert pickle.loads(pickle.dumps(point)) == point
    assert Named(1, 2, "n").name == "n"
    with pytest.raises(AttributeError, match="cannot set 'x'"):
        point.x = 2  # type: ignore[misc]  # that is the test
    with pytest.raises(AttributeError, match="cannot delete 'x'"):
        del point.x
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]  # that is the test


def test_a_job_survives_pickling() -> None:
    text = (
        "protocolVersion: 2\nname: x\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: u}]\n"
        "parameters: {p: 1}\n"
        "taskRoles: {w: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [x]}}\n"
    )
    job = pailot.loads(text)
    again = pickle.loads(pickle.dumps(job))
    assert again == job
    assert [str(problem) for problem in again.warnings] == [str(problem) for problem in job.warnings] != []
