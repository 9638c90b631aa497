"""Every option that a job file can have, found in its schema: a new one is tried by the tests from its first day."""

from __future__ import annotations

from typing import Any

from pailot.protocol import schema
from pailot.protocol.schema_types import ByKey, Constant, Flag, ListOf, Number, OneOf, Record, Shape, Table, Text, Whole
from pailot.protocol.yaml.writer import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IMAGE = {"name": "image", "type": "dockerimage", "uri": "debian"}
ROLE = {
    "dockerImage": "image",
    "resourcePerInstance": {"cpu": 0, "memoryMB": 0, "gpu": 0},
    "commands": ["true"],
}
JOB = {
    "protocolVersion": 2,
    "name": "odd",
    "type": "job",
    "prerequisites": [IMAGE],
    "taskRoles": {"worker": ROLE},
}
NAMED = "worker"
"""The key in every mapping whose keys are free; the name of the role, which some of them refer to."""


class Option:
    """One place for a value: where it is, what may stand there, and a job that is right but for it."""

    def __init__(self, path: tuple[str | int, ...], shape: Shape, build: Callable[[Any], Any]) -> None:
        self.path, self.shape, self._build = path, shape, build

    @property
    def name(self) -> str:
        return ".".join(map(str, self.path))

    def job(self, value: Any, **more: Any) -> dict[str, Any]:
        """The values of a job with this one in its place."""
        made = {**JOB, **self._build(value)}
        if made["prerequisites"] and made["prerequisites"] != JOB["prerequisites"]:
            made["prerequisites"] = [IMAGE, *made["prerequisites"]]
        return {**made, **{key: item for key, item in more.items() if self.path[0] != key}}

    def text(self, value: Any, **more: Any) -> str:
        """The same as a job file."""
        return dump(self.job(value, **more))


def options() -> list[Option]:
    """All of them."""
    return [Option(path, shape, build) for path, shape, build in _inside(schema.JOB)]


def numbers() -> list[Option]:
    return [each for each in options() if isinstance(each.shape, Whole | Number)]


def _inside(shape: Shape) -> Iterator[tuple[tuple[str | int, ...], Shape, Callable[[Any], Any]]]:
    if isinstance(shape, Record):
        base = _least(shape) if shape is not schema.JOB else {}
        for key, below in shape.fields.items():
            for path, leaf, build in _inside(below):
                yield (key, *path), leaf, _within(_under(base, key), build)
        if shape.extra is not None:
            yield ("other",), shape.extra, lambda value: {**base, "other": value}
    elif isinstance(shape, Table):
        for path, leaf, build in _inside(shape.values):
            yield (NAMED, *path), leaf, _within(lambda made: {NAMED: made}, build)
    elif isinstance(shape, ListOf):
        for path, leaf, build in _inside(shape.item):
            yield (0, *path), leaf, _within(lambda made: [made], build)
    elif isinstance(shape, OneOf):
        for each in shape.shapes:
            yield from _inside(each)
    elif isinstance(shape, ByKey):
        for each in dict.fromkeys(shape.variants.values()):
            yield from _inside(each)
    else:
        yield (), shape, lambda value: value


def _within(around: Callable[[Any], Any], build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: around(build(value))


def _under(base: dict[str, Any], key: str) -> Callable[[Any], Any]:
    return lambda made: {**base, key: made}


def _least(shape: Shape) -> Any:
    """The smallest value that a shape allows."""
    if shape is schema.TASK_ROLE:
        return ROLE
    if isinstance(shape, Record):
        return {key: _least(shape.fields[key]) for key in shape.required}
    if isinstance(shape, Table):
        return {NAMED: _least(shape.values)} if shape.least else {}
    if isinstance(shape, ListOf):
        return [_least(shape.item)] if shape.least else []
    if isinstance(shape, OneOf):
        return _least(shape.shapes[0])
    if isinstance(shape, Text):
        return shape.choices[0] if shape.choices else "other"
    if isinstance(shape, Whole | Number):
        return max(1, shape.least or 0)
    if isinstance(shape, Flag):
        return False
    return shape.values[0] if isinstance(shape, Constant) else None
