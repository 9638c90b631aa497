"""What a plain scalar means to OpenPAI, and where a YAML 1.2 reader would see something else."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.protocol.js_semantics import to_string
from pailot.protocol.yaml import Timestamp, parse
from pailot.protocol.yaml.scalars import MAX_SAFE_INTEGER, differs_from_yaml_1_2, is_float, is_integer, number, resolve

SAME, DIFFERS = False, True
INFINITY = math.inf


@pytest.mark.parametrize(
    ("text", "value", "differs"),
    [
        # Texts that other readers take for booleans.
        *((text, text, SAME) for text in "yes no on off Yes NO y n tRue nULL".split()),
        *((text, True, SAME) for text in ("true", "True", "TRUE")),
        *((text, False, SAME) for text in ("false", "False", "FALSE")),
        *((text, None, SAME) for text in ("", "~", "null", "Null", "NULL")),
        # Decimal numbers.
        *((str(value), value, SAME) for value in (0, 1, -1, 42, MAX_SAFE_INTEGER)),
        *((text, 1000, SAME) for text in ("1e3", "1E3", "1.e3", "1e+3", "1.0e3", "+1000")),
        ("1.5e3", 1500, SAME),
        ("1.0", 1, SAME),
        ("-0", 0, SAME),
        ("1e22", 1e22, SAME),
        ("0.1e-7", 1e-8, SAME),
        ("123456789012345678901", 123456789012345680000.0, SAME),
        (".5", 0.5, SAME),
        ("1.", 1, SAME),
        ("1e999", INFINITY, SAME),
        (".inf", INFINITY, SAME),
        ("-.INF", -INFINITY, SAME),
        ("+.Inf", INFINITY, SAME),
        # Numbers that are something else, or nothing, in YAML 1.2.
        ("010", 8, DIFFERS),
        ("-017", -15, DIFFERS),
        ("0x1F", 31, SAME),
        ("-0x1F", -31, DIFFERS),
        ("0x_1_F", 31, DIFFERS),
        ("0b11", 3, DIFFERS),
        ("1_000", 1000, DIFFERS),
        ("1_000.5", 1000.5, DIFFERS),
        ("12:30", 750, DIFFERS),
        ("-1:30", -90, DIFFERS),
        ("190:20:30", 685230, DIFFERS),
        ("190:20:30.15", 685230.15, DIFFERS),
        ("0:30.5", 30.5, DIFFERS),
        ("2019-01-01", Timestamp("", "Tue Jan 01 2019 00:00:00 GMT+0000 (Coordinated Universal Time)"), DIFFERS),
        ("2019-1-1 1:02:03 -1:30", Timestamp("", "Tue Jan 01 2019 02:32:03 GMT+0000 (Coordinated Universal Time)"), DIFFERS),
        # Texts that YAML 1.2 takes for numbers.
        ("0o17", "0o17", DIFFERS),
        ("08", "08", DIFFERS),
        ("09.5", "09.5", DIFFERS),
        ("-.5", "-.5", DIFFERS),
        # Texts everywhere.
        *((text, text, SAME) for text in "1.0.0 1__0_ 0x 0b2 0x_ 1e 1e+ -- +-1 _1 1:60 12:3x . .. = << 2019-1-1 1,5".split()),
    ],
)
def test_openpais_value_and_whether_yaml_1_2_differs(text: str, value: Any, differs: bool) -> None:
    found = resolve(text)
    assert found == value
    assert type(found) is type(value)
    assert differs_from_yaml_1_2(text, found) is differs


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_not_a_number(text: str) -> None:
    value = resolve(text)
    assert isinstance(value, float)
    assert math.isnan(value)
    assert not differs_from_yaml_1_2(text, value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2019-01-01", "Tue Jan 01 2019 00:00:00"),
        ("2019-13-45", "Fri Feb 14 2020 00:00:00"),
        ("0000-00-00", "Thu Nov 30 1899 00:00:00"),
        ("0099-12-31", "Fri Dec 31 1999 00:00:00"),
        ("0100-01-01", "Fri Jan 01 0100 00:00:00"),
        ("9999-99-99", "Thu Jun 07 10007 00:00:00"),
        ("2001-12-14t21:59:43.10-05:00", "Sat Dec 15 2001 02:59:43"),
        ("2001-12-14 21:59:43 +5", "Fri Dec 14 2001 16:59:43"),
        ("2001-12-14\t21:59:43Z", "Fri Dec 14 2001 21:59:43"),
        ("9999-12-31 23:59:59 -99", "Wed Jan 05 10000 02:59:59"),
        ("2020-02-28 99:99:99", "Tue Mar 03 2020 04:40:39"),
    ],
)
def test_dates_show_as_javascript_prints_them_in_utc(text: str, shown: str) -> None:
    assert str(resolve(text)) == f"{shown} GMT+0000 (Coordinated Universal Time)"


@given(
    st.from_regex(
        r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9]{1,2}:[0-9]{2}:[0-9]{2}( ?[-+][0-9]{1,2}(:[0-9]{2})?)?)?", fullmatch=True
    )
)
def test_no_date_is_too_strange(text: str) -> None:
    assert str(resolve(text)).removesuffix(text) == "" or str(resolve(text)).endswith("(Coordinated Universal Time)")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (1 / 3, "0.3333333333333333"),
        (100.0, "100"),
        (1e20, "100000000000000000000"),
        (123456789012345678901.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (1.5e21, "1.5e+21"),
        (-1.25e22, "-1.25e+22"),
        (0.000001, "0.000001"),
        (0.0000015, "0.0000015"),
        (1e-7, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (-1.234e-10, "-1.234e-10"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (float(2**53), "9007199254740992"),
        (INFINITY, "Infinity"),
        (-INFINITY, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_print_as_javascript_prints_them(value: float, shown: str) -> None:
    assert to_string(value) == shown


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_numbers_keep_their_value(value: float) -> None:
    assert float(to_string(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_numbers_use_an_exponent_only_beyond_1e21_and_below_1e_minus_6(value: float) -> None:
    plain = value == 0 or 1e-6 <= abs(value) < 1e21
    assert ("e" not in to_string(value)) is plain


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ("", ""),
        ([1, [2.0, None], "x", True], "1,2,,x,true"),
        ([], ""),
        ({"a": 1}, "[object Object]"),
        ([{}, []], "[object Object],"),
        (b"h\xc3\xa9\xff", "hé\ufffd"),
    ],
)
def test_other_values_print_as_javascript_prints_them(value: Any, shown: str) -> None:
    assert to_string(value) == shown


@given(st.integers() | st.floats(allow_nan=False))
def test_one_spelling_for_each_javascript_number(value: float) -> None:
    found = number(value)
    assert isinstance(found, int) is (float(found).is_integer() and abs(found) <= MAX_SAFE_INTEGER)
    assert found == value or abs(value) > MAX_SAFE_INTEGER


@pytest.mark.parametrize("text", ["1", "-0x1F", "0b1", "017", "1_0", "1:30"])
def test_what_the_int_tag_accepts(text: str) -> None:
    assert is_integer(text)


@pytest.mark.parametrize("text", ["1.0", "1e3", "08", "x", "", ".inf", "1:30.5"])
def test_what_the_int_tag_refuses(text: str) -> None:
    assert not is_integer(text)


@pytest.mark.parametrize("text", ["1", "1.5", "1e3", ".inf", ".NaN", "1:30.5", "-1_0.5"])
def test_what_the_float_tag_accepts(text: str) -> None:
    assert is_float(text)


@pytest.mark.parametrize("text", ["017", "0x1F", "1:30", "x", "", "null"])
def test_what_the_float_tag_refuses(text: str) -> None:
    assert not is_float(text)


def test_ambiguous_scalars_are_kept_with_their_place_and_openpais_value() -> None:
    document = parse("a: 010\nb: [1_0, yes, 7]\nc: {d: 12:30}\ne: '010'\nf: 08\n")
    assert [(document.line_and_column(at), text, value) for at, text, value in document.ambiguous] == [
        ((1, 4), "010", "8"),
        ((2, 5), "1_0", "10"),
        ((3, 8), "12:30", "750"),
        ((5, 4), "08", "the text '08'"),
    ]
