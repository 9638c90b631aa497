"""A page of the list of jobs, by any filter and in any order, out of a million in a few milliseconds.

The columns that jobs are filtered and ordered by are kept in memory; the database holds the truth and fills them. Afterwards
every change is applied as soon as it is durable. So one process at a time lists and writes the jobs of a database: the
server. Until the columns are there the database itself is asked.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left, bisect_right

from . import sql_listing
from .bitmap_columns import Bits, Category, Names, SlotOrder, extended, from_bytes, nth, places
from .models import ORDERS, BadValue, label_mark, marks_of, tag_mark
from .sql_listing import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from .database import Database
    from .models import JobQuery, JobRecord

CATEGORIES = {
    "user": "username",
    "vc": "vc",
    "state": "state",
    "priority": "priority",
    "execution_type": "execution_type",
    "retries": "retries",
    "tasks": "tasks",
    "gpus": "gpus",
}
ORDERED_BY = {
    "username": "user",
    "vc": "vc",
    "retries": "retries",
    "totalTaskNumber": "tasks",
    "totalGpuNumber": "gpus",
    "state": "state",
    "jobPriority": "priority",
}
MOVED_BY = {"completionTime": "ended", **ORDERED_BY}
"""Which change moves a job in which order."""
LISTED = frozenset((*CATEGORIES, "ended"))
LOAD = f"SELECT number, name, submitted, ended, {', '.join(CATEGORIES.values())} FROM jobs ORDER BY number"  # noqa: S608
NUMBERS = "SELECT number FROM job_marks WHERE mark = ?"
FREQUENT = "SELECT mark FROM job_marks GROUP BY mark HAVING count(*) >= ? ORDER BY count(*) DESC LIMIT ?"

NEVER = float("inf")
FEW = 8_000
"""Up to this many jobs, sorting or searching one by one is faster."""
KEYWORDS_KEPT = 32
MARKS_KEPT = 64
DEAD_KEPT, DEAD_SHARE = 1_000, 4
"""When more slots belong to jobs that are gone, and one of so many, the columns are filled anew."""


class Columns:
    """The jobs, column by column. Used by one thread at a time."""

    def __init__(self) -> None:
        self.numbers = array("I")
        self.alive = Bits()
        self.dead = 0
        self.latest = array("d")
        """The latest time of submission up to each slot."""
        self.early: dict[int, float] = {}
        """The time of submission of slots where the clock had gone back."""
        self.ended = array("d")
        self.names = Names()
        self.category = {name: Category() for name in CATEGORIES}
        self.orders = {name: SlotOrder(self._key(name), self.alive) for name in ("jobName", "completionTime")}
        self.keywords: dict[str, Bits] = {}
        self.marks: dict[str, Bits] = {}
        self.mark_changes = 0
        """How often a job got or lost a mark: what was read of marks before is then not to be kept."""

    # Filling

    def load(self, chunks: Iterable[list[tuple[Any, ...]]]) -> None:
        """Everything, from rows of `LOAD`."""
        codes = {name: array("B") for name in CATEGORIES}
        for rows in chunks:
            numbers, names, submitted, ended, *categories = zip(*rows, strict=True)
            self.numbers = extended(self.numbers, numbers)
            self.names.extend(names)
            self._submitted(submitted)
            self.ended.extend([NEVER if end is None else end for end in ended])
            for name, values in zip(CATEGORIES, categories, strict=True):
                codes[name] = extended(codes[name], self.category[name].encode(values))
        for name in CATEGORIES:
            self.category[name].fill(codes.pop(name))
        self._sort()

    def _sort(self) -> None:
        """The orders, of slots that are all alive."""
        count = len(self.numbers)
        self.alive.mask = (1 << count) - 1
        self.orders["jobName"].spread(self.names, count)
        self.orders["completionTime"].spread(self.ended, count)
        for order, name in ORDERED_BY.items():
            if not self.category[name].narrow:
                self._wide(order)

    def _wide(self, order: str) -> SlotOrder:
        """The order of a column with many values, made when it has become so."""
        if order not in self.orders:
            category = self.category[ORDERED_BY[order]]
            fresh = SlotOrder(self._key(order), self.alive)
            fresh.fill(category.by_value(self.alive.mask, len(self.numbers)))
            self.orders[order] = fresh
        return self.orders[order]

    def _submitted(self, moments: Sequence[float]) -> None:
        latest = self.latest[-1] if self.latest else -NEVER
        for slot, moment in enumerate(moments, len(self.latest)):
            if moment < latest:
                self.early[slot] = moment
            else:
                latest = moment
            self.latest.append(latest)

    # Changing

    def slot(self, number: int) -> int | None:
        place = number - self.numbers[0] if self.numbers else 0  # right at once where no job is gone
        if not (0 <= place < len(self.numbers) and self.numbers[place] == number):
            place = bisect_left(self.numbers, number)
        return place if place < len(self.numbers) and self.numbers[place] == number and self.alive[place] else None

    def add(self, number: int, record: JobRecord, marks: Sequence[str]) -> None:
        if self.numbers and self.numbers[-1] >= number:
            return  # it was there when the columns were filled
        slot = len(self.numbers)
        self.numbers = extended(self.numbers, (number,))
        self.alive[slot] = 1
        self.names.extend((record.name,))
        self._submitted((record.submitted,))
        self.ended.append(NEVER if record.ended is None else record.ended)
        for name, category in self.category.items():
            category[slot] = getattr(record, name)
        for order in self.orders.values():
            order.add(slot)
        for keyword, bits in self.keywords.items():
            bits[slot] = keyword in record.name or keyword in record.user or keyword in record.vc
        self.mark_changes += bool(marks)
        for mark, bits in self.marks.items():
            bits[slot] = mark in marks

    def change(self, number: int, changes: Mapping[str, Any]) -> None:
        slot = self.slot(number)
        if slot is None:
            return
        moved = [self.orders[order] for order in self.orders if MOVED_BY.get(order) in changes]
        for order in moved:
            order.remove(slot)
        for name, value in changes.items():
            if name == "ended":
                self.ended[slot] = NEVER if value is None else value
            elif name in CATEGORIES:
                self.category[name][slot] = value
        for order in moved:
            order.add(slot)
        if "vc" in changes:
            for keyword, bits in self.keywords.items():
                bits[slot] = self._has(keyword, keyword.encode(), slot)

    def mark(self, number: int, mark: str, *, wanted: bool) -> None:
        slot = self.slot(number)
        self.mark_changes += 1
        if slot is not None and mark in self.marks:
            self.marks[mark][slot] = wanted

    def remove(self, number: int) -> None:
        slot = self.slot(number)
        if slot is None:
            return
        for order in self.orders.values():
            order.remove(slot)
        self.alive[slot] = 0
        self.dead += 1

    # Asking

    def find(self, query: JobQuery, marked: Mapping[str, Sequence[int]], *, keep: bool = True) -> Found:
        """`marked` gives the numbers of jobs for marks that are not kept here, and may be from now on."""
        wanted = marks_of(query)
        masks = {mark: self.marks[mark].mask for mark in wanted if mark in self.marks}
        masks |= {mark: self.note(mark, marked[mark], keep=keep) for mark in wanted.difference(masks)}
        mask = self._filtered(query, masks)
        total = mask.bit_count()
        if query.before is not None:
            mask = self._following(query.before, mask, descending=query.descending)
        slots = self._page(query, mask, mask.bit_count()) if query.limit > 0 and mask and query.offset < total else []
        return Found([self.numbers[slot] for slot in slots], total)

    def _filtered(self, query: JobQuery, marked: Mapping[str, int]) -> int:
        category = self.category
        mask = self.alive.mask
        for name, wanted in (
            ("state", query.states),
            ("user", query.users),
            ("vc", query.vcs),
            ("priority", query.priorities),
            ("execution_type", query.types),
        ):
            if wanted:
                mask = category[name].mask(wanted, mask)
        if query.seen_by is not None:
            user, vcs = query.seen_by
            mask = category["user"].mask((user,), mask) | category["vc"].mask(vcs, mask)
        if query.newer_than is not None:
            mask = self._newer(query.newer_than, mask)
        if query.tags_contain:
            either = 0
            for tag in query.tags_contain:
                either |= marked[tag_mark(tag)]
            mask &= either
        for key, value in query.labels.items():
            mask &= marked[label_mark(key, value)]
        for tag in query.tags_not_contain:
            mask ^= mask & marked[tag_mark(tag)]
        return self._with_keyword(query.keyword, mask) if query.keyword and mask else mask

    def _with_keyword(self, keyword: str, mask: int) -> int:
        try:
            part = keyword.encode()
        except UnicodeEncodeError:
            return 0
        kept = self.keywords.pop(keyword, None)
        if kept is None:
            for shorter, bits in self.keywords.items():
                if shorter in keyword:
                    mask &= bits.mask  # the user goes on typing
        if kept is None and mask.bit_count() <= FEW:
            few = Bits()
            for slot in places(mask):
                few[slot] = self._has(keyword, part, slot)
            return few.mask
        if kept is None:
            kept = Bits()
            kept.mask = self.names.containing(part)
            for name in ("user", "vc"):
                values = self.category[name].matching(lambda value: keyword in value)
                kept.mask |= self.category[name].mask(values, self.alive.mask)
            while len(self.keywords) >= KEYWORDS_KEPT:
                del self.keywords[next(iter(self.keywords))]
        self.keywords[keyword] = kept  # the latest last
        return mask & kept.mask

    def _has(self, keyword: str, part: bytes, slot: int) -> bool:
        return part in self.names[slot] or keyword in self.category["user"][slot] or keyword in self.category["vc"][slot]

    def _page(self, query: JobQuery, mask: int, total: int) -> list[int]:
        skip, limit, descending = query.offset, query.limit, query.descending
        column = ORDERED_BY.get(query.order)
        if query.order == "submissionTime" or (column == "user" and len(set(query.users)) == 1):
            return nth(mask, skip, limit, descending=descending)
        if total <= FEW:
            slots = sorted(places(mask), key=self._key(query.order))  # equal ones stay in the order of submission
            if descending:
                slots.reverse()
            return slots[skip : skip + limit]
        if column is not None and self.category[column].narrow:
            return self.category[column].page(mask, skip, limit, descending=descending)
        return self._wide(query.order).page(mask, skip, limit, descending=descending)

    def _key(self, order: str) -> Callable[[int], Any]:
        if order == "jobName":
            return self.names.__getitem__
        if order == "completionTime":
            return self.ended.__getitem__
        return self.category[ORDERED_BY[order]].key

    def note(self, mark: str, numbers: Sequence[int], *, keep: bool) -> int:
        """The mask of jobs that have a mark; kept, if they are many and it is not out of date already."""
        marks = bytearray(len(self.numbers))
        for number in numbers:
            slot = self.slot(number)
            if slot is not None:
                marks[slot] = 1
        bits = Bits()
        bits.mask = from_bytes(marks)
        if keep and len(numbers) > FEW // 4:
            while len(self.marks) >= MARKS_KEPT:
                del self.marks[next(iter(self.marks))]
            self.marks[mark] = bits
        return bits.mask

    def _following(self, number: int, mask: int, *, descending: bool) -> int:
        """Those of the slots that follow the job of a number in the order of submission."""
        if descending:
            return mask & ((1 << bisect_left(self.numbers, number)) - 1)
        first = bisect_right(self.numbers, number)
        return mask >> first << first

    def _newer(self, moment: float, mask: int) -> int:
        first = bisect_right(self.latest, moment)
        mask = mask >> first << first
        late = Bits()
        for slot, submitted in self.early.items():
            late[slot] = slot >= first and submitted <= moment
        return mask ^ (mask & late.mask)


class Listing:
    """The columns of a database: filled when a server has started, then kept up with what is written. For any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._columns: Columns | None = None
        self._missed: list[Callable[[Columns], None]] | None = None
        self._lock = threading.RLock()
        self._filling = threading.Lock()

    def warm(self) -> None:
        """Fill the columns, a few seconds for a million jobs; once they are there only where many jobs are gone since.

        Whoever asks or writes meanwhile does not wait.
        """
        with self._filling:
            columns = self._columns
            if columns is not None and columns.dead <= max(DEAD_KEPT, len(columns.numbers) // DEAD_SHARE):
                return
            with self._lock:
                self._missed = []  # what is written from now on may be missing in what is read
            try:
                fresh = Columns()
                fresh.load(self._database.stream(LOAD))
                for (mark,) in self._database.read(FREQUENT, (FEW, MARKS_KEPT)):
                    numbers = [number for rows in self._database.stream(NUMBERS, (mark,)) for (number,) in rows]
                    fresh.note(mark, numbers, keep=True)
                with self._lock:
                    for change in self._missed:
                        change(fresh)
                    self._columns = fresh
            finally:
                self._missed = None

    def find(self, query: JobQuery) -> Found:
        """The numbers of the jobs on a page."""
        if query.order not in ORDERS:
            raise BadValue(f"a list has no order {query.order!r}")
        if query.before is not None and query.order != "submissionTime":
            raise BadValue("a list goes on from a cursor in the order of submission only")
        wanted = marks_of(query)
        while (columns := self._columns) is not None:
            marked: dict[str, list[int]] = {}
            changes = columns.mark_changes
            for mark in wanted.difference(tuple(columns.marks)):
                try:  # the database is asked before the lock is taken: its writer takes ours
                    marked[mark] = [number for (number,) in self._database.read(NUMBERS, (mark,))]
                except BadValue:
                    marked[mark] = []  # no job can have it
            with self._lock:
                known = wanted.issubset((*columns.marks, *marked))
                if columns is self._columns and known:  # else another thread has put something in their place
                    return columns.find(query, marked, keep=columns.mark_changes == changes)
        return sql_listing.find(self._database, query)

    def apply(self, change: Callable[[Columns], None]) -> None:
        """Something was written and is durable."""
        with self._lock:
            if self._columns is not None:
                change(self._columns)
            if self._missed is not None:
                self._missed.append(change)
