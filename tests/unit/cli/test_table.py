"""Tables in windows of all widths."""

from __future__ import annotations

import pytest

from pailot.cli.table import table_lines

TITLES = ("NAME", "STATE", "SIZE", "ID")
TABLE = [TITLES, ("a-job-with-a-name-of-31-columns", "RUNNING", "1", "0123456789"), ("b", "SUCCEEDED", "22", "0123456780")]
SPARE = ("SIZE", "ID")


def test_outside_of_a_window_nothing_is_cut() -> None:
    assert table_lines(TABLE) == [
        "NAME                             STATE      SIZE  ID",
        "a-job-with-a-name-of-31-columns  RUNNING    1     0123456789",
        "b                                SUCCEEDED  22    0123456780",
    ]


def test_a_window_that_is_wide_enough_changes_nothing() -> None:
    assert table_lines(TABLE, 60, SPARE) == table_lines(TABLE)


def test_the_first_column_is_cut_before_others_are_left_out() -> None:
    assert table_lines(TABLE, 55, SPARE)[1] == "a-job-with-a-name-of-31-c…  RUNNING    1     0123456789"


def test_columns_are_left_out_in_the_order_named() -> None:
    assert table_lines(TABLE, 44, SPARE)[:2] == [
        "NAME                   STATE      ID",
        "a-job-with-a-name-of…  RUNNING    0123456789",
    ]
    assert table_lines(TABLE, 33, SPARE)[1] == "a-job-with-a-name-of-…  RUNNING"


@pytest.mark.parametrize("columns", range(1, 70))
def test_no_line_is_wider_than_the_window(columns: int) -> None:
    lines = table_lines(TABLE, columns, SPARE)
    assert len(lines) == len(TABLE)
    assert max(map(len, lines)) <= columns
