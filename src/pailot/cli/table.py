"""A table in a window: what does not fit is left out or cut, because a line that wraps cannot be read as a line of a table."""

from __future__ import annotations

import os

from ..printable import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

GAP = "  "
SHORTEST_COLUMNS = 20
"""To what the first column may be cut before another one is left out."""


def window_columns() -> int | None:
    """The width of the terminal that standard output leads to; None where it leads elsewhere, so that nothing is cut."""
    try:
        return os.get_terminal_size(1).columns or None
    except OSError:
        return None


def table_lines(table: Sequence[Sequence[str]], columns: int | None = None, spare: Sequence[str] = ()) -> list[str]:
    """The lines of a table whose first row holds the titles.

    In a window of `columns`, the columns named in `spare` are left out one after the other until the rest fits, and the first
    column is cut.
    """
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    shown = list(range(len(widths)))
    if columns is not None:
        for title in spare:
            if _width(widths, shown) - widths[0] + min(widths[0], SHORTEST_COLUMNS) <= columns:
                break
            shown.remove(table[0].index(title))
        widths[0] = max(1, min(widths[0], columns - _width(widths, shown) + widths[0]))
    lines = (GAP.join(cut(row[each], widths[each]).ljust(widths[each]) for each in shown).rstrip() for row in table)
    return [line if columns is None else cut(line, columns) for line in lines]


def _width(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[each] for each in shown) + len(GAP) * (len(shown) - 1)
