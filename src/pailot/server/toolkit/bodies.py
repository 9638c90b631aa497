"""Bodies of requests as values, and whether they hold what a route asks for."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qsl

from ...protocol.problems import path_text
from ...protocol.schema_types import Flag, Number, Record, Whole
from .errors import HttpError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...protocol.schema_types import Shape

_DEEPEST = 64
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_MOST_FIELDS = 10_000


def parse_body(body: bytes, content_type: str) -> Any:
    """JSON, JSON sent as text, or a form with nested keys; None for an empty body."""
    if not body:
        return None
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return parse_form(decode(body, content_type))
    text = decode(body, content_type)
    if not text.strip():
        return None
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise HttpError(400, "InvalidParametersError", f"the body is not JSON: {error}") from None


def parse_form(text: str) -> dict[str, object]:
    """`a[b]=1&a[c][]=2` as `{"a": {"b": "1", "c": ["2"]}}`, as OpenPAI's clients nest what they send as a form."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except (ValueError, UnicodeDecodeError) as error:
        raise HttpError(400, "InvalidParametersError", f"the form cannot be read: {error}") from None
    root: dict[str, object] = {}
    for key, value in pairs:
        steps = _steps(key)
        node = root
        for step in steps[:-1]:
            step = str(len(node)) if step == "" else step
            below = node.setdefault(step, {})
            if not isinstance(below, dict):
                below = node[step] = {"0": below}
            node = below
        last = steps[-1]
        node[str(len(node)) if last == "" else last] = value
    return {key: _lists(value) for key, value in root.items()}


def check(value: Any, shape: Shape) -> Any:
    """The value itself, or 400 with everything that is wrong with it.

    Where a number or a switch is wanted its text is taken, too: forms have no others, and OpenPAI's server took them.
    """
    findings = shape.check(value)
    if findings:
        meant = _meant(value, shape)
        if meant != value and not shape.check(meant):
            return meant
        told = "; ".join(f"{path_text(each.path)}: {each.text()}" if each.path else each.text() for each in findings[:20])
        if len(findings) > 20:
            told += f"; and {len(findings) - 20:,} more"
        raise HttpError(400, "InvalidParametersError", told)
    return value


def _meant(value: Any, shape: Shape | None) -> Any:
    if isinstance(shape, Record) and isinstance(value, dict):
        return {key: _meant(item, shape.fields.get(key)) for key, item in value.items()}
    if isinstance(shape, Flag) and value in ("true", "false"):
        return value == "true"
    if isinstance(shape, Whole | Number) and isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value) if "." not in value else float(value)
    return value


def _steps(key: str) -> list[str]:
    """`a[b][]` as `a`, `b` and nothing; what is not nested well stands for itself."""
    head, bracket, rest = key.partition("[")
    if not bracket or not head or not rest.endswith("]"):
        return [key]
    steps = [head, *rest[:-1].split("][")]
    return steps if len(steps) <= _DEEPEST else [key]


def _lists(value: Any) -> Any:
    """Mappings with the keys 0, 1, 2, … as the lists they stand for."""
    if not isinstance(value, dict):
        return value
    if value and list(value) == [str(number) for number in range(len(value))]:
        return [_lists(each) for each in value.values()]
    return {key: _lists(each) for key, each in value.items()}


def _finite(digits: str) -> float:
    """A number that a float can hold; `1e999` would come back as Infinity, which no JSON reader takes."""
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{digits[:40]} is too large a number")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def decode(body: bytes, content_type: str) -> str:
    """A body as text; a character set that we do not know is 415, as with OpenPAI."""
    charset = "utf-8"
    for part in content_type.split(";")[1:]:
        key, _, value = part.strip().partition("=")
        if key.lower() == "charset" and value:
            charset = value.strip("\"'").lower()
    if charset not in ("utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "utf-16", "utf-16le", "utf-16be"):
        raise HttpError(415, "UnsupportedCharsetError", f'unsupported charset "{charset[:40].upper()}"')
    try:
        return body.decode(charset)
    except UnicodeDecodeError as error:
        raise HttpError(400, "InvalidParametersError", f"the body is not {charset}: byte {error.start} is wrong") from None
