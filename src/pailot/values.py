"""Immutable records, as frozen dataclasses are, at a tenth of the import time.

`dataclasses` costs every command 15 to 30 ms of start-up. Here a general function fills the first instances of a class. A class
with many instances gets an `__init__` of its own by `exec`.

    class Point(Value):
        x: int
        y: int = 0

    Point(1)                      # Point(x=1, y=0)
    Point(1).replace(y=2)         # Point(x=1, y=2)
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_options: object):
        return lambda cls: cls


class _Signature:
    """What `help` and editors show of a class. It is made when asked for, since `inspect` takes 10 ms to load."""

    def __get__(self, instance: object, cls: type[Value]) -> Any:
        if instance is not None:
            raise AttributeError("__signature__")
        from inspect import Parameter, Signature, signature

        made = cls.__init__
        if made.__name__ == "__init__" and "_defaults" not in made.__globals__:  # the class is made in a way of its own
            return signature(made).replace(parameters=[*signature(made).parameters.values()][1:])
        kinds = {name: kind for base in reversed(cls.__mro__) for name, kind in _annotations(base).items()}
        return Signature(
            [
                Parameter(
                    name,
                    Parameter.POSITIONAL_OR_KEYWORD,
                    default=getattr(cls, name, Parameter.empty),
                    annotation=kinds.get(name, Parameter.empty),
                )
                for name in cls._fields
            ]
        )


def _annotations(cls: type) -> dict[str, Any]:
    """The annotations that a class itself has."""
    own = cls.__dict__.get("__annotations__")
    if own is None and getattr(cls, "__annotate__", None) is not None:  # Python 3.14, in a module without the future import
        from annotationlib import Format, get_annotations  # type: ignore[import-not-found]  # not before 3.14

        own = get_annotations(cls, format=Format.FORWARDREF)
    return own or {}


@dataclass_transform(frozen_default=True, eq_default=True)
class Value:
    """Base of records: fields are the class's annotations, in order; instances cannot be changed."""

    _fields: tuple[str, ...] = ()
    _general_instances = 70
    """How many are filled by `_filled`: `exec` takes 0.15 ms for a class, and then saves 2 us for each instance."""
    __signature__ = _Signature()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = tuple(name for name in _annotations(cls) if name[0] != "_")
        inherited = tuple(name for name in cls._fields if name not in own)
        cls._fields = inherited + own
        if "__init__" in cls.__dict__:
            return  # a class may be made in a way of its own; it then has to copy itself, too

        left = cls._general_instances

        def first(self: Any, *arguments: Any, **named: Any) -> None:
            nonlocal left
            left -= 1
            values = cls._filled(arguments, named) if left > 0 else None
            if values is not None:
                self.__dict__.update(values)
                return
            cls._make_init()
            self.__init__(*arguments, **named)

        cls.__init__ = first  # type: ignore[method-assign]  # generated for the fields, once there are many instances

    @classmethod
    def _filled(cls, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any] | None:
        """Return all fields in order, or None if the arguments do not fit: the generated `__init__` then says what is wrong."""
        fields = cls._fields
        values = dict(zip(fields, arguments))  # noqa: B905  # `strict` is not in Python 3.9; the lengths are compared below
        used = 0
        for name in fields[len(arguments) :]:
            if name in named:
                values[name] = named[name]
                used += 1
            elif hasattr(cls, name):
                values[name] = getattr(cls, name)
            else:
                return None
        return values if used == len(named) and len(arguments) <= len(fields) else None

    @classmethod
    def _make_init(cls) -> None:
        defaults = {name: getattr(cls, name) for name in cls._fields if hasattr(cls, name)}
        arguments = ", ".join(f"{name}=_defaults[{name!r}]" if name in defaults else name for name in cls._fields)
        items = ", ".join(f"{name!r}: {name}" for name in cls._fields)
        scope: dict[str, Any] = {"_defaults": defaults}
        exec(f"def __init__(self, {arguments}):\n    self.__dict__.update({{{items}}})", scope)
        cls.__init__ = scope["__init__"]  # type: ignore[method-assign]

    @classmethod
    def make_all(cls) -> None:
        """Make now what is else made with many instances: before a fork, so that no child has to."""
        for each in cls.__subclasses__():
            if each.__init__.__name__ == "first":
                each._make_init()
            each.make_all()

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete {name!r}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.__dict__.values())))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
        return f"{type(self).__name__}({shown})"
