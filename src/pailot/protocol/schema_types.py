"""A small vocabulary to say what a document may hold; it checks values and prints JSON Schema.

A check returns nothing when all is well, and otherwise findings with paths relative to the value.
"""

from __future__ import annotations

from ..printable import cut
from . import lazy_regex
from .problems import Finding, Near, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


_INFINITE = float("inf")
_LARGEST = 2.0**1000
"""Whole numbers beyond that are none that a float can hold."""


class Shape:
    """Any value at all; the base of the others."""

    doc = ""
    nullable = False

    def check(self, value: Any) -> Sequence[Finding]:
        return ()

    def schema(self) -> dict[str, object]:
        """This shape as JSON Schema."""
        return {"description": self.doc} if self.doc else {}

    def _typed(self, name: str) -> dict[str, Any]:
        return {"type": [name, "null"] if self.nullable else name, **Shape.schema(self)}


class Anything(Shape):
    def __init__(self, doc: str = "") -> None:
        self.doc = doc


class Text(Shape):
    def __init__(
        self,
        doc: str = "",
        *,
        pattern: str = "",
        hint: str = "",
        longest: int = 0,
        shortest: int = 0,
        choices: Sequence[str] = (),
        nullable: bool = False,
    ) -> None:
        self.doc, self.choices, self.nullable = doc, tuple(choices), nullable
        self.pattern = lazy_regex.pattern(pattern + r"\Z") if pattern else None
        self.source, self.hint, self.longest, self.shortest = pattern, hint, longest, shortest
        self.plain = not (pattern or longest or shortest or choices)

    def check(self, value: Any) -> Sequence[Finding]:
        if type(value) is not str:
            if value is None and self.nullable:
                return ()
            return (Finding("wrong-type", f"should be a text, is {describe(value)}{_quote_it(value)}"),)
        if self.plain:
            return ()
        if self.choices and value not in self.choices:
            known = ", ".join(self.choices)
            return (Finding("bad-value", f"'{cut(value)}' is not one of {known}", near=Near(value, self.choices)),)
        # Length first: the pattern would look at every character of a text that may be there many times.
        if self.longest and len(value) > self.longest:
            return (Finding("bad-name", f"has {len(value)} characters, at most {self.longest} are allowed"),)
        if self.pattern and not self.pattern.match(value):
            return (Finding("bad-name", f"{describe(value)} is not allowed; {self.hint}"),)
        if len(value) < self.shortest:
            return (Finding("bad-value", "is empty"),)
        return ()

    def schema(self) -> dict[str, Any]:
        out = self._typed("string")
        if self.choices:
            out["enum"] = [*self.choices, *([None] if self.nullable else [])]
        if self.source:
            out["pattern"] = f"^{self.source}$"
        if self.longest:
            out["maxLength"] = self.longest
        if self.shortest:
            out["minLength"] = self.shortest
        return out


class Whole(Shape):
    """A whole number; 1.0 is one, '1' and 1.5 are not."""

    def __init__(
        self,
        doc: str = "",
        *,
        least: int | None = None,
        most: int | None = None,
        never: int | None = None,
        nullable: bool = False,
    ) -> None:
        self.doc, self.least, self.most, self.never, self.nullable = doc, least, most, never, nullable

    def check(self, value: Any) -> Sequence[Finding]:
        if type(value) is not int:
            if value is None and self.nullable:
                return ()
            if isinstance(value, float) and (value.is_integer() or abs(value) == _INFINITE):
                return (Finding("out-of-range", _too_large(value, self.most)),)
            return (Finding("wrong-type", f"should be a whole number, is {describe(value)}"),)
        if self.least is not None and value < self.least:
            return (Finding("out-of-range", f"should be at least {self.least}, is {value}"),)
        if self.most is not None and value > self.most:
            return (Finding("out-of-range", _too_large(value, self.most)),)
        if value == self.never:
            return (Finding("out-of-range", f"should not be {value}; use -1 to switch it off, or 1 and more"),)
        return ()

    def schema(self) -> dict[str, object]:
        out = self._typed("integer")
        if self.least is not None:
            out["minimum"] = self.least
        if self.most is not None:
            out["maximum"] = self.most
        if self.never is not None:
            out["not"] = {"const": self.never}
        return out


class Number(Shape):
    """A finite number; JSON has no others."""

    def __init__(self, doc: str = "", *, least: float | None = None, most: float | None = None) -> None:
        self.doc, self.least, self.most = doc, least, most

    def check(self, value: Any) -> Sequence[Finding]:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return (Finding("wrong-type", f"should be a number, is {describe(value)}"),)
        if value != value:
            return (Finding("out-of-range", "should be a finite number, is NaN"),)
        if self.least is not None and value < self.least:
            return (Finding("out-of-range", f"should be at least {self.least}, is {describe(value)[11:]}"),)
        if abs(value) > _LARGEST or (self.most is not None and value > self.most):
            return (Finding("out-of-range", _too_large(value, self.most)),)
        return ()

    def schema(self) -> dict[str, object]:
        bounds = {"minimum": self.least, "maximum": self.most}
        return {**self._typed("number"), **{name: bound for name, bound in bounds.items() if bound is not None}}


class Flag(Shape):
    def __init__(self, doc: str = "") -> None:
        self.doc = doc

    def check(self, value: Any) -> Sequence[Finding]:
        if isinstance(value, bool):
            return ()
        return (Finding("wrong-type", f"should be true or false, is {describe(value)}"),)

    def schema(self) -> dict[str, object]:
        return self._typed("boolean")


class OneOf(Shape):
    """The first of several shapes that fits; `expected` names them in a message."""

    def __init__(self, expected: str, *shapes: Shape, doc: str = "") -> None:
        self.expected, self.shapes, self.doc = expected, shapes, doc

    def check(self, value: Any) -> Sequence[Finding]:
        nearest: Sequence[Finding] = ()
        for shape in self.shapes:
            findings = shape.check(value)
            if not findings:
                return ()
            if findings[0].path or findings[0].code != "wrong-type":
                nearest = findings
        return nearest or (Finding("wrong-type", f"should be {self.expected}, is {describe(value)}"),)

    def schema(self) -> dict[str, object]:
        return {"anyOf": [shape.schema() for shape in self.shapes], **Shape.schema(self)}


class Constant(Shape):
    """One of a few fixed values."""

    def __init__(self, *values: Any, doc: str = "") -> None:
        self.values, self.doc = values, doc

    def check(self, value: Any) -> Sequence[Finding]:
        if type(value) is not bool and isinstance(value, str | int) and value in self.values:
            return ()
        wanted = " or ".join(str(each) for each in dict.fromkeys(str(each) for each in self.values))
        return (Finding("bad-value", f"should be {wanted}, is {describe(value)}"),)

    def schema(self) -> dict[str, object]:
        return {"enum": list(self.values), **Shape.schema(self)}


class ListOf(Shape):
    def __init__(self, item: Shape, doc: str = "", *, least: int = 0, expected: str = "a list") -> None:
        self.item, self.doc, self.least, self.expected = item, doc, least, expected
        self.plain_text = isinstance(item, Text) and item.plain and not item.nullable

    def check(self, value: Any) -> Sequence[Finding]:
        if not isinstance(value, list):
            return (Finding("wrong-type", f"should be {self.expected}, is {describe(value)}"),)
        if len(value) < self.least:
            return (Finding("too-few", "is an empty list; at least one item is needed"),)
        if self.plain_text and all(type(item) is str for item in value):
            return ()
        check = self.item.check
        return [found.below(index) for index, item in enumerate(value) for found in check(item)]

    def schema(self) -> dict[str, object]:
        out = {**self._typed("array"), "items": self.item.schema()}
        if self.least:
            out["minItems"] = self.least
        return out


class Record(Shape):
    """A mapping with known keys; `extra` says what the others may be (None: there are none)."""

    def __init__(
        self,
        fields: Mapping[str, Shape],
        doc: str = "",
        *,
        required: Sequence[str] = (),
        extra: Shape | None = None,
        what: str = "here",
        nullable: bool = False,
    ) -> None:
        self.fields, self.doc, self.required, self.extra = dict(fields), doc, tuple(required), extra
        self.what, self.nullable = what, nullable
        self.free = type(extra) is Anything
        self._known = ""

    def check(self, value: Any) -> Sequence[Finding]:
        if not isinstance(value, dict):
            if value is None and self.nullable:
                return ()
            return (Finding("wrong-type", f"should be a mapping, is {describe(value)}"),)
        findings: list[Finding] = []
        fields = self.fields
        for key, item in value.items():
            shape = fields.get(key)
            if shape is not None:
                found = shape.check(item)
                if found:
                    findings += [each.below(key) for each in found]
            elif self.extra is None:
                findings.append(self._unknown(key))
            elif not self.free:
                findings += [each.below(key) for each in self.extra.check(item)]
        for key in self.required:
            if key not in value:
                findings.append(Finding("missing-key", f"'{key}' is missing {self.what}", at_key=True))
        return findings

    def schema(self) -> dict[str, Any]:
        out = self._typed("object")
        out["properties"] = {key: shape.schema() for key, shape in self.fields.items()}
        if self.required:
            out["required"] = list(self.required)
        out["additionalProperties"] = False if self.extra is None else self.extra.schema() or True
        return out

    def _unknown(self, key: str) -> Finding:
        if not self._known:
            self._known = f"; known are {', '.join(sorted(self.fields))}"
        near = Near(key, tuple(self.fields), otherwise=self._known)
        return Finding("unknown-key", f"'{cut(key)}' is not known {self.what}", (key,), at_key=True, near=near)


class Table(Shape):
    """A mapping from names of one's own choice to values of one shape."""

    def __init__(
        self,
        values: Shape,
        doc: str = "",
        *,
        pattern: str = "",
        hint: str = "",
        but: str = "",
        but_hint: str = "",
        least: int = 0,
        nullable: bool = False,
    ) -> None:
        self.values, self.doc, self.least, self.nullable = values, doc, least, nullable
        self.pattern = lazy_regex.pattern(pattern + r"\Z") if pattern else None
        self.but = lazy_regex.pattern(but + r"\Z") if but else None
        """Names that fit the pattern and are refused all the same."""
        self.source, self.hint, self.but_source, self.but_hint = pattern, hint, but, but_hint

    def check(self, value: Any) -> Sequence[Finding]:
        if not isinstance(value, dict):
            if value is None and self.nullable:
                return ()
            return (Finding("wrong-type", f"should be a mapping, is {describe(value)}"),)
        findings: list[Finding] = []
        for key, item in value.items():
            if self.pattern and not self.pattern.match(key):
                message = f"the name '{cut(key)}' is not allowed; {self.hint}"
                findings.append(Finding("bad-name", message, (key,), at_key=True))
            elif self.but and self.but.match(key):
                findings.append(Finding("bad-name", f"'{key}' is not the job's to set: {self.but_hint}", (key,), at_key=True))
            findings += [each.below(key) for each in self.values.check(item)]
        if len(value) < self.least:
            findings.append(Finding("too-few", "is empty; at least one entry is needed"))
        return findings

    def schema(self) -> dict[str, object]:
        out = self._typed("object")
        out["additionalProperties"] = self.values.schema()
        if self.source:
            out["propertyNames"] = {"pattern": f"^{self.source}$"}
        if self.but_source:
            out["propertyNames"] = {**out.get("propertyNames", {}), "not": {"pattern": f"^{self.but_source}$"}}
        if self.least:
            out["minProperties"] = self.least
        return out


class ByKey(Shape):
    """One of several records, chosen by the value of a key."""

    def __init__(self, key: str, variants: Mapping[str, Shape]) -> None:
        self.key, self.variants = key, dict(variants)

    def check(self, value: Any) -> Sequence[Finding]:
        if not isinstance(value, dict):
            return (Finding("wrong-type", f"should be a mapping, is {describe(value)}"),)
        chosen = value.get(self.key)
        shape = self.variants.get(chosen) if isinstance(chosen, str) else None
        if shape is not None:
            return shape.check(value)
        known = ", ".join(self.variants)
        if self.key not in value:
            return (Finding("missing-key", f"'{self.key}' is missing; it is one of {known}"),)
        near = Near(chosen, tuple(self.variants)) if isinstance(chosen, str) else None
        return (Finding("bad-value", f"{describe(chosen)} is not one of {known}", (self.key,), near=near),)

    def schema(self) -> dict[str, object]:
        grouped: dict[int, tuple[Shape, list[str]]] = {}
        for name, shape in self.variants.items():
            grouped.setdefault(id(shape), (shape, []))[1].append(name)
        return {"oneOf": [shape.schema() for shape, _ in grouped.values()]}


def _too_large(value: float, most: float | None) -> str:
    said = describe(value).removeprefix("the number ")
    if most is not None and value > 0:
        return f"should be at most {most}, is {said}"
    return f"should be a finite number, is {said}" if abs(value) == _INFINITE else f"{said} is too large"


def _quote_it(value: Any) -> str:
    return "; put it in quotes" if isinstance(value, bool | int | float) else ""
