"""What a plain scalar means: js-yaml 3's safe schema, and where YAML 1.2 would disagree."""

from __future__ import annotations

import re

from ..lazy_regex import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Scalar: TypeAlias = "str | int | float | bool | bytes | Timestamp | None"

# Integers beyond this are not exact in JavaScript, where every number is a double.
MAX_SAFE_INTEGER = 2**53


class Timestamp:
    """A date as OpenPAI reads one; its text is what JavaScript's `String(date)` gives in UTC."""

    __slots__ = ("source", "text")

    def __init__(self, source: str, text: str) -> None:
        self.source = source
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Timestamp({self.source!r})"


WORDS: dict[str, Scalar] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
    ".inf": float("inf"),
    ".Inf": float("inf"),
    ".INF": float("inf"),
    "+.inf": float("inf"),
    "+.Inf": float("inf"),
    "+.INF": float("inf"),
    "-.inf": float("-inf"),
    "-.Inf": float("-inf"),
    "-.INF": float("-inf"),
    ".nan": float("nan"),
    ".NaN": float("nan"),
    ".NAN": float("nan"),
}
NUMERIC_START = frozenset("0123456789+-.")

_DECIMAL = pattern(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_INTEGER = pattern(
    r"""(?P<sign>[-+]?)(?:
        0b(?P<binary>[01_]*[01]) | 0x(?P<hex>[0-9a-fA-F_]*[0-9a-fA-F])
      | (?P<octal>0[0-7_]*[0-7]) | (?P<decimal>0|[1-9](?:[0-9_]*[0-9])?)
      | (?P<sexagesimal>[1-9][0-9_]*(?::[0-5]?[0-9])+)
    )\Z""",
    re.VERBOSE,
)
_FLOAT = pattern(r"(?:[-+]?(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9_]+(?:[eE][-+]?[0-9]+)?)(?<!_)\Z")
_SEXAGESIMAL_FLOAT = pattern(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*(?<!_)\Z")
_DATE = pattern(r"([0-9]{4})-([0-9]{2})-([0-9]{2})\Z")
_TIME = pattern(
    r"([0-9]{4})-([0-9][0-9]?)-([0-9][0-9]?)(?:[Tt]|[ \t]+)([0-9][0-9]?):([0-9]{2}):([0-9]{2})"
    r"(?:\.([0-9]*))?(?:[ \t]*(?:Z|([-+])([0-9][0-9]?)(?::([0-9]{2}))?))?\Z"
)
_YAML_1_2_NUMBER = pattern(
    r"[-+]?[0-9]+\Z|0o[0-7]+\Z|0x[0-9a-fA-F]+\Z"
    r"|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"
)


def resolve(text: str) -> Scalar:
    """The value of a plain scalar, e.g. '1e3' is 1000, '010' is 8, 'yes' is 'yes'."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in NUMERIC_START:
        return text
    if len(text) > 300:
        return _float(text) if _FLOAT.match(text) else text
    if _DECIMAL.match(text):
        return number(int(text))
    found = _INTEGER.match(text)
    if found:
        return _sexagesimal(text) if found["sexagesimal"] else number(_integer(found))
    if _FLOAT.match(text):
        return _float(text)
    if _SEXAGESIMAL_FLOAT.match(text):
        return _sexagesimal(text)
    stamp = _DATE.match(text) or _TIME.match(text)
    if stamp:
        return Timestamp(text, _javascript_date(stamp.groups("")))
    return text


def number(value: int | float) -> int | float:
    """One spelling per JavaScript number: integral values are ints, inexact integers floats."""
    if isinstance(value, int):
        if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return value
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
        return int(value)
    return value


def differs_from_yaml_1_2(text: str, value: Scalar) -> bool:
    """Whether a YAML 1.2 reader would see something else in this plain scalar."""
    if not text or text[0] not in NUMERIC_START:
        return False
    if isinstance(value, Timestamp):
        return True
    if not _YAML_1_2_NUMBER.match(text):
        return isinstance(value, int | float) and text not in WORDS
    if isinstance(value, str):
        return True
    if text[:2] in ("0o", "0x"):
        return text[1] == "o"
    return number(float(text)) != value


def is_integer(text: str) -> bool:
    """Whether `!!int` accepts the text."""
    return len(text) <= 300 and _INTEGER.match(text) is not None


def is_float(text: str) -> bool:
    """Whether `!!float` accepts the text."""
    return isinstance(WORDS.get(text), float) or any(form.match(text) for form in (_FLOAT, _SEXAGESIMAL_FLOAT))


def _integer(found: re.Match[str]) -> int:
    kind = found.lastgroup or ""
    digits = found[kind].replace("_", "")
    total = int(digits, {"binary": 2, "hex": 16, "octal": 8, "decimal": 10}[kind])
    return -total if found["sign"] == "-" else total


def _float(text: str) -> int | float | str:
    try:
        return number(float(text.replace("_", "")))
    except ValueError:  # '.___' has no digit: JavaScript reads NaN
        return float("nan")


def _sexagesimal(text: str) -> int | float:
    """'1:30.5' is 90.5; added up from the right, since that decides how the sum is rounded."""
    sign = -1.0 if text[0] == "-" else 1.0
    total, base = 0.0, 1.0
    for part in reversed(text.lstrip("+-").replace("_", "").split(":")):
        total += float(part) * base
        base *= 60
    return number(sign * total)


def _javascript_date(parts: tuple[str, ...]) -> str:
    from datetime import datetime, timedelta

    year, month, day = (int(part) for part in parts[:3])
    hour, minute, second = (int(part or 0) for part in (parts + ("",) * 7)[3:6])
    sign, off_hour, off_minute = (parts + ("",) * 10)[7:10]
    if year < 100:
        year += 1900
    # The calendar repeats after 400 years; Python's ends with the year 9999, JavaScript's goes on.
    cycle = 400 if year > 9000 else 0
    start = datetime(year - cycle + (month - 1) // 12, (month - 1) % 12 + 1, 1)  # noqa: DTZ001  # always UTC here
    moment = start + timedelta(days=day - 1, hours=hour, minutes=minute, seconds=second)
    if sign:
        offset = timedelta(hours=int(off_hour), minutes=int(off_minute or 0))
        moment = moment + offset if sign == "-" else moment - offset
    weekday = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[moment.weekday()]
    month_name = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()[moment.month - 1]
    clock = f"{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}"
    day_text = f"{weekday} {month_name} {moment.day:02d} {moment.year + cycle:04d}"
    return f"{day_text} {clock} GMT+0000 (Coordinated Universal Time)"
