"""Values: what `inspect`, `help` and editors see of them."""

from __future__ import annotations

import inspect
import sys
import types
from typing import Any

import pytest

import pailot
from pailot.values import Value


class Point(Value):
    x: int
    y: int = 0


class Place(Point):
    name: str = "here"


class Odd(Value):
    x: int

    def __init__(self, text: str) -> None:
        self.__dict__["x"] = int(text)


def test_a_class_shows_its_signature_before_and_after_its_first_instance() -> None:
    for _ in range(2):
        assert str(inspect.signature(Point)) == "(x: 'int', y: 'int' = 0)"
        assert str(inspect.signature(Place)) == "(x: 'int', y: 'int' = 0, name: 'str' = 'here')"
        assert str(inspect.signature(Odd)) == "(text: 'str') -> 'None'"
        assert (Point(1), Place(1, 2), Odd("3").x) == (Point(1, 0), Place(1, 2, "here"), 3)
    assert next(iter(inspect.signature(pailot.TaskRole).parameters)) != "arguments"
    assert not hasattr(Point(1), "__signature__")


def test_annotations_that_are_worked_out_later_are_fields() -> None:
    """As on Python 3.14 without the future import: the class has a function for them."""
    late: Any
    if sys.version_info >= (3, 14):
        scope: dict[str, Any] = {"Value": Value}
        exec("class Late(Value):\n    x: Unknown\n    y: int = 0", scope)
        late = scope["Late"]
    else:
        late = types.new_class("Late", (Value,), {}, lambda body: body.update(__annotations__={"x": int, "y": int}, y=0))
    assert late._fields == ("x", "y")
    assert vars(late(1)) == {"x": 1, "y": 0}


def test_a_wrong_argument_of_a_class_for_users_is_told_with_the_right_one() -> None:
    for _ in range(2):  # before the first instance and after it
        with pytest.raises(TypeError, match=r"^TaskRole\(\) has no argument 'instance'; did you mean 'instances'\?$"):
            pailot.TaskRole(instance=2)  # type: ignore[call-arg]  # that is the point
        with pytest.raises(TypeError, match=r"^DockerImage\(\) has no argument 'autho'; did you mean 'auth'\?$"):
            pailot.DockerImage("name", "uri", autho=None)  # type: ignore[call-arg]  # likewise
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'image'"):
            pailot.TaskRole("true")  # type: ignore[call-arg]  # likewise
        assert pailot.TaskRole("true", "debian").replace(gpu=1).gpu == 1
    assert "instances" in inspect.signature(pailot.TaskRole).parameters


def test_an_instance_is_the_same_however_many_were_made_before() -> None:
    class Fresh(Value):
        _general_instances = 3
        x: int
        y: int = 0
        z: tuple[int, ...] = ()

    made = []
    for _ in range(5):
        made.append(Fresh(1, z=(2,)))
        assert vars(made[-1]) == {"x": 1, "y": 0, "z": (2,)}
        assert list(vars(made[-1])) == ["x", "y", "z"], "the hash follows the order"
    assert len(set(made)) == 1
    assert Fresh.__init__.__name__ == "__init__", "after some instances the class has one of its own"


@pytest.mark.parametrize(
    ("arguments", "named", "words"),
    [
        ((), {}, "missing 1 required positional argument: 'x'"),
        ((1, 2, 3), {}, "takes from 2 to 3 positional arguments but 4 were given"),
        ((1,), {"x": 2}, "got multiple values for argument 'x'"),
        ((1,), {"other": 2}, "got an unexpected keyword argument 'other'"),
    ],
)
def test_a_first_instance_refuses_arguments_that_do_not_fit(
    arguments: tuple[Any, ...], named: dict[str, Any], words: str
) -> None:
    class Fresh(Value):
        x: int
        y: int = 0

    for _ in range(2):
        with pytest.raises(TypeError, match=words):
            Fresh(*arguments, **named)
    assert vars(Fresh(1)) == {"x": 1, "y": 0}
