"""A page of the list of jobs, by any filter and in any order, out of a million in a few milliseconds.

The columns that jobs are filtered and ordered by are kept in memory; the database holds the truth and fills them when the
first list is asked for. Afterwards every change is applied as soon as it is durable. So one process at a time lists and
writes the jobs of a database: the server.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left, bisect_right

from ...values import Value
from .columns import Bits, Category, Names, Order, from_bytes, nth, places
from .records import ORDERS, BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from .database import Database
    from .records import JobQuery, JobRecord

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
"""So many jobs are rather sorted, or searched, one by one."""
KEYWORDS_KEPT = 32
MARKS_KEPT = 64
DEAD_SHARE = 4
"""When one of so many slots belongs to a job that is gone, the columns are made anew without those."""


class Found(Value):
    """The numbers of a page of jobs, and how many the query finds in all."""

    numbers: list[int]
    total: int


class Columns:
    """The jobs, column by column. Used by one thread at a time."""

    def __init__(self) -> None:
        self.numbers = array("q")
        self.alive = Bits()
        self.dead = 0
        self.latest = array("d")
        """The latest time of submission up to each slot."""
        self.early: dict[int, float] = {}
        """The time of submission of slots where the clock had gone back."""
        self.ended = array("d")
        self.names = Names()
        self.category = {name: Category() for name in CATEGORIES}
        self.orders = {name: Order(self._key(name), self.alive) for name in ("jobName", "completionTime")}
        self.keywords: dict[str, Bits] = {}
        self.marks: dict[str, Bits] = {}

    # Filling

    def load(self, chunks: Iterable[list[tuple[Any, ...]]]) -> None:
        """Everything, from rows of `LOAD`."""
        codes = {name: array("I") for name in CATEGORIES}
        for rows in chunks:
            numbers, names, submitted, ended, *categories = zip(*rows, strict=True)
            self.numbers.extend(numbers)
            self.names.extend(names)
            self._submitted(submitted)
            self.ended.extend([NEVER if end is None else end for end in ended])
            for name, values in zip(CATEGORIES, categories, strict=True):
                codes[name].extend(self.category[name].encode(values))
        for name in CATEGORIES:
            self.category[name].fill(codes.pop(name))
        self._sort()

    def without_the_dead(self) -> Columns:
        """The same jobs, without the slots of those that are gone."""
        slots = list(places(self.alive.mask))

        def rows() -> Iterable[list[tuple[Any, ...]]]:
            for start in range(0, len(slots), 20_000):
                yield [
                    (
                        self.numbers[slot],
                        self.names[slot].decode(),
                        self.early.get(slot, self.latest[slot]),
                        None if self.ended[slot] == NEVER else self.ended[slot],
                        *(category[slot] for category in self.category.values()),
                    )
                    for slot in slots[start : start + 20_000]
                ]

        fresh = Columns()
        fresh.load(rows())
        return fresh

    def _sort(self) -> None:
        """The orders, of slots that are all alive."""
        count = len(self.numbers)
        self.alive.mask = (1 << count) - 1
        self.orders["jobName"].spread(self.names, count)
        self.orders["completionTime"].spread(self.ended, count)
        for order, name in ORDERED_BY.items():
            if not self.category[name].narrow:
                self._wide(order)

    def _wide(self, order: str) -> Order:
        """The order of a column with many values, made when it has become so."""
        if order not in self.orders:
            category = self.category[ORDERED_BY[order]]
            fresh = Order(self._key(order), self.alive)
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
        self.numbers.append(number)
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

    def find(self, query: JobQuery, marked: Mapping[str, Sequence[int]]) -> Found:
        """`marked` gives the numbers of jobs for marks that are not kept here."""
        mask = self._filtered(query, marked)
        total = mask.bit_count()
        slots = self._page(query, mask, total) if query.limit > 0 and query.offset < total else []
        return Found([self.numbers[slot] for slot in slots], total)

    def _filtered(self, query: JobQuery, marked: Mapping[str, Sequence[int]]) -> int:
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
                either |= self._marked(tag_mark(tag), marked)
            mask &= either
        for key, value in query.labels.items():
            mask &= self._marked(label_mark(key, value), marked)
        for tag in query.tags_not_contain:
            mask ^= mask & self._marked(tag_mark(tag), marked)
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
                    mask &= bits.mask  # somebody goes on typing
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

    def _marked(self, mark: str, marked: Mapping[str, Sequence[int]]) -> int:
        bits = self.marks.get(mark)
        if bits is None:
            numbers = marked.get(mark, ())
            marks = bytearray(len(self.numbers))
            for number in numbers:
                slot = self.slot(number)
                if slot is not None:
                    marks[slot] = 1
            bits = Bits()
            bits.mask = from_bytes(marks)
            if len(numbers) > FEW // 4:
                while len(self.marks) >= MARKS_KEPT:
                    del self.marks[next(iter(self.marks))]
                self.marks[mark] = bits
        return bits.mask

    def _newer(self, moment: float, mask: int) -> int:
        first = bisect_right(self.latest, moment)
        mask = mask >> first << first
        late = Bits()
        for slot, submitted in self.early.items():
            late[slot] = slot >= first and submitted <= moment
        return mask ^ (mask & late.mask)


def tag_mark(tag: str) -> str:
    """A tag as one of the marks by which jobs are found."""
    return f"t:{tag}"


def label_mark(key: str, value: str) -> str:
    """A label as such a mark."""
    import json

    return f"l:{json.dumps([key, value])}"


class Listing:
    """The columns of a database: filled by the first question, then kept up with what is written. For any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._columns: Columns | None = None
        self._missed: list[Callable[[Columns], None]] | None = None
        self._lock = threading.RLock()
        self._filling = threading.Lock()

    def warm(self) -> None:
        """Fill the columns now, so that the first list need not: a few seconds for a million jobs."""
        self._ready()

    def find(self, query: JobQuery) -> Found:
        """The numbers of the jobs on a page."""
        if query.order not in ORDERS:
            raise BadValue(f"a list has no order {query.order!r}")
        columns = self._ready()
        wanted = {tag_mark(tag) for tag in (*query.tags_contain, *query.tags_not_contain)}
        wanted |= {label_mark(key, value) for key, value in query.labels.items()}
        marked: dict[str, list[int]] = {}
        for mark in wanted:  # the database is asked before the lock is taken: its writer takes ours
            if mark not in columns.marks:
                try:
                    marked[mark] = [number for (number,) in self._database.read(NUMBERS, (mark,))]
                except BadValue:
                    marked[mark] = []  # no job can have it
        with self._lock:
            assert self._columns is not None
            return self._columns.find(query, marked)

    def apply(self, change: Callable[[Columns], None]) -> None:
        """Something was written and is durable."""
        with self._lock:
            if self._columns is not None:
                change(self._columns)
                count = len(self._columns.numbers)
                if self._columns.dead > max(1000, count // DEAD_SHARE):
                    self._columns = self._columns.without_the_dead()
            elif self._missed is not None:
                self._missed.append(change)

    def _ready(self) -> Columns:
        columns = self._columns
        if columns is not None:
            return columns
        with self._filling:
            if self._columns is not None:
                return self._columns
            with self._lock:
                self._missed = []  # what is written from now on may be missing in what is read
            try:
                fresh = Columns()
                fresh.load(self._database.stream(LOAD))
                for (mark,) in self._database.read(FREQUENT, (FEW, MARKS_KEPT)):
                    numbers = [number for rows in self._database.stream(NUMBERS, (mark,)) for (number,) in rows]
                    fresh._marked(mark, {mark: numbers})
                with self._lock:
                    for change in self._missed:
                        change(fresh)
                    self._columns = fresh
                    return fresh
            finally:
                self._missed = None
