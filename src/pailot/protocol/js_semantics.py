"""How JavaScript would print, trim and test a value: OpenPAI's renderer is JavaScript."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What String.prototype.trim removes; Python's strip() has another set.
WHITE_SPACE = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)


def trim(text: str) -> str:
    """`text.trim()`."""
    return text.strip(WHITE_SPACE)


def to_string(value: Any) -> str:
    """`'' + value`: to_string(1.0) is '1', to_string([1, [2, None]]) is '1,2,'."""
    if isinstance(value, str):
        return value
    if value is True:
        return "true"
    if value is False:
        return "false"
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list | tuple):
        return ",".join("" if item is None else to_string(item) for item in value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "keys"):
        return "[object Object]"
    return str(value)


def _number(value: float) -> str:
    """Number::toString: shortest digits, plain notation from 1e-6 up to 1e21."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent_text = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    point = len(whole) - leading_zeros + int(exponent_text or 0)  # digits before the decimal point
    digits = digits.rstrip("0") or "0"
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    exponent = point - 1
    tail = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if exponent > 0 else '-'}{abs(exponent)}"
