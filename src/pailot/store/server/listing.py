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
from .columns import ALL_BITS, FEW, Category, Names, Order, nth
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
LISTED = frozenset((*CATEGORIES, "ended"))
LOAD = f"SELECT number, name, submitted, ended, {', '.join(CATEGORIES.values())} FROM jobs ORDER BY number"  # noqa: S608
NUMBERS = "SELECT number FROM job_marks WHERE mark = ?"
FREQUENT = "SELECT mark FROM job_marks GROUP BY mark HAVING count(*) >= ? ORDER BY count(*) DESC LIMIT ?"

NEVER = float("inf")
KEYWORDS_KEPT = 8
MARKS_KEPT = 32
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
        self.alive = bytearray()
        self.dead = 0
        self.submitted = array("d")
        self.ended = array("d")
        self.names = Names()
        self.category = {name: Category(self.alive) for name in CATEGORIES}
        self.by_name = Order(self.names.__getitem__)
        self.by_end = Order(self.ended.__getitem__)
        self.in_time = True
        """Whether each was submitted no earlier than the one before, by the clock."""
        self.keywords: dict[str, bytearray] = {}
        self.marks: dict[str, bytearray] = {}

    # Filling

    def load(self, chunks: Iterable[list[tuple[Any, ...]]]) -> None:
        """Everything, from rows of `LOAD`."""
        for rows in chunks:
            numbers, names, submitted, ended, *categories = zip(*rows, strict=True)
            self.numbers.extend(numbers)
            self.names.extend(names)
            self.submitted.extend(submitted)
            self.ended.extend([NEVER if end is None else end for end in ended])
            for category, values in zip(self.category.values(), categories, strict=True):
                category.extend(values)
        count = len(self.numbers)
        self.alive.extend(b"\1" * count)
        self.sort()

    def sort(self) -> None:
        """The orders, of slots that are all alive."""
        count = len(self.numbers)
        self.in_time = all(map(float.__le__, self.submitted, self.submitted[1:]))
        names = bytes(self.names.text).split(bytes([Names.END]))
        self.by_name = Order(self.names.__getitem__, sorted(range(count), key=names.__getitem__))
        del names
        self.by_end = Order(self.ended.__getitem__, sorted(range(count), key=self.ended.__getitem__))

    def without_the_dead(self) -> Columns:
        """The same jobs, without the slots of those that are gone."""
        from itertools import compress

        fresh = Columns()
        fresh.numbers = array("q", compress(self.numbers, self.alive))
        fresh.submitted = array("d", compress(self.submitted, self.alive))
        fresh.ended = array("d", compress(self.ended, self.alive))
        fresh.alive.extend(b"\1" * len(fresh.numbers))
        slots = list(compress(range(len(self.numbers)), self.alive))
        fresh.names.extend([self.names[slot].decode() for slot in slots])
        for name, category in self.category.items():
            fresh.category[name].extend([category.value(slot) for slot in slots])
        fresh.marks = {mark: bytearray(compress(mask, self.alive)) for mark, mask in self.marks.items()}
        fresh.sort()
        return fresh

    # Changing

    def slot(self, number: int) -> int | None:
        place = bisect_left(self.numbers, number)
        return place if place < len(self.numbers) and self.numbers[place] == number and self.alive[place] else None

    def add(self, number: int, record: JobRecord, marks: Sequence[str]) -> None:
        if self.slot(number) is not None:
            return  # it was there when the columns were filled
        self.in_time = self.in_time and (not self.submitted or record.submitted >= self.submitted[-1])
        self.numbers.append(number)
        self.alive.append(1)
        self.names.append(record.name)
        self.submitted.append(record.submitted)
        self.ended.append(NEVER if record.ended is None else record.ended)
        for name, category in self.category.items():
            category.append(getattr(record, name))
        slot = len(self.numbers) - 1
        self.by_name.add(slot)
        self.by_end.add(slot)
        for keyword, mask in self.keywords.items():
            mask.append(keyword in record.name or keyword in record.user or keyword in record.vc)
        for mark, mask in self.marks.items():
            mask.append(mark in marks)

    def change(self, number: int, changes: Mapping[str, Any]) -> None:
        slot = self.slot(number)
        if slot is None:
            return
        for name, value in changes.items():
            if name == "ended":
                self.by_end.remove(slot)
                self.ended[slot] = NEVER if value is None else value
                self.by_end.add(slot)
            elif name in CATEGORIES:
                self.category[name].set(slot, value)
        if "vc" in changes:
            for keyword, mask in self.keywords.items():
                user, vc = self.category["user"].value(slot), self.category["vc"].value(slot)
                mask[slot] = keyword.encode() in self.names[slot] or keyword in user or keyword in vc

    def mark(self, number: int, mark: str, *, wanted: bool) -> None:
        slot = self.slot(number)
        if slot is not None and mark in self.marks:
            self.marks[mark][slot] = wanted

    def remove(self, number: int) -> None:
        slot = self.slot(number)
        if slot is None:
            return
        self.by_name.remove(slot)
        self.by_end.remove(slot)
        for category in self.category.values():
            category.drop(slot)
        self.alive[slot] = 0
        self.dead += 1

    # Asking

    def find(self, query: JobQuery, marked: Mapping[str, Sequence[int]]) -> Found:
        """`marked` gives the numbers of jobs for marks that are not kept here."""
        mask = self._filtered(query, marked)
        total = len(self.numbers) - self.dead if mask is None else mask.bit_count()
        slots = self._page(query, mask, total) if total and query.limit > 0 and query.offset < total else []
        return Found([self.numbers[slot] for slot in slots], total)

    def _filtered(self, query: JobQuery, marked: Mapping[str, Sequence[int]]) -> int | None:
        """The mask of what the query finds, as a whole number; None for everything."""
        category = self.category
        masks = [
            category[name].mask(wanted)
            for name, wanted in (
                ("user", query.users),
                ("vc", query.vcs),
                ("state", query.states),
                ("priority", query.priorities),
                ("execution_type", query.types),
            )
            if wanted
        ]
        if query.seen_by is not None:
            masks.append(category["user"].mask((query.seen_by[0],)) | category["vc"].mask(query.seen_by[1]))
        if query.tags_contain:
            either = 0
            for tag in query.tags_contain:
                either |= self._marked(tag_mark(tag), marked)
            masks.append(either)
        masks += [self._marked(label_mark(key, value), marked) for key, value in query.labels.items()]
        if query.newer_than is not None:
            masks.append(self._newer(query.newer_than))
        for tag in query.tags_not_contain:
            if without := self._marked(tag_mark(tag), marked):
                masks.append(self._everything() & ~without)
        if self.dead and (masks or query.keyword):
            masks.append(int.from_bytes(self.alive, "little"))
        elif self.dead:
            return int.from_bytes(self.alive, "little")
        result = None
        for mask in masks:
            result = mask if result is None else result & mask
        return self._with_keyword(query.keyword, result) if query.keyword else result

    def _with_keyword(self, keyword: str, others: int | None) -> int:
        try:
            part = keyword.encode()
        except UnicodeEncodeError:
            return 0
        kept = self.keywords.pop(keyword, None)
        if kept is None and others is not None and (left := others.bit_count()) <= FEW:
            user, vc = self.category["user"], self.category["vc"]
            marked = bytearray(len(self.numbers))
            for slot in nth(others.to_bytes(len(self.numbers), "little"), 1, 0, left, descending=False):
                marked[slot] = part in self.names[slot] or keyword in user.value(slot) or keyword in vc.value(slot)
            return int.from_bytes(marked, "little")
        if kept is None:
            kept = self.names.containing(part)
            for name in ("user", "vc"):
                values = self.category[name].matching(lambda value: keyword in value)
                if values:
                    both = int.from_bytes(kept, "little") | self.category[name].mask(values)
                    kept = bytearray(both.to_bytes(len(kept), "little"))
            while len(self.keywords) >= KEYWORDS_KEPT:
                del self.keywords[next(iter(self.keywords))]
        self.keywords[keyword] = kept  # the latest last
        found = int.from_bytes(kept, "little")
        return found if others is None else found & others

    def _page(self, query: JobQuery, mask: int | None, total: int) -> list[int]:
        skip, limit, descending = query.offset, query.limit, query.descending
        count = len(self.numbers)
        column = ORDERED_BY.get(query.order)
        by_time = query.order == "submissionTime" or (column == "user" and len(set(query.users)) == 1)
        marked = None if mask is None else mask.to_bytes(count, "little")
        if by_time:
            return nth(self.alive if marked is None else marked, 1, skip, limit, descending=descending)
        if marked is not None and total <= FEW:
            slots = nth(marked, 1, 0, total, descending=False)
            slots.sort(key=self._key(query.order))  # equal ones stay in the order of submission
            if descending:
                slots.reverse()
            return slots[skip : skip + limit]
        if column is None:
            return (self.by_name if query.order == "jobName" else self.by_end).page(marked, skip, limit, descending=descending)
        category = self.category[column]
        if not category.narrow:
            return category.order.page(marked, skip, limit, descending=descending)
        codes = category.plane
        if marked is not None:
            kept = int.from_bytes(marked.translate(ALL_BITS), "little") & int.from_bytes(codes, "little")
            codes = bytearray(kept.to_bytes(count, "little"))
        found: list[int] = []
        ordered = category.sorted_codes()
        for code in reversed(ordered) if descending else ordered:
            if not category.counts[code]:
                continue
            here = codes.count(code)
            if skip >= here:
                skip -= here
                continue
            found += nth(codes, code, skip, limit - len(found), descending=descending)
            skip = 0
            if len(found) >= limit:
                break
        return found

    def _key(self, order: str) -> Callable[[int], Any]:
        if order == "jobName":
            return self.names.__getitem__
        if order == "completionTime":
            return self.ended.__getitem__
        value = self.category[ORDERED_BY[order]].value
        return lambda slot: ((found := value(slot)) is None, found)

    def _marked(self, mark: str, marked: Mapping[str, Sequence[int]]) -> int:
        mask = self.marks.get(mark)
        if mask is None:
            mask = bytearray(len(self.numbers))
            for number in marked.get(mark, ()):
                slot = self.slot(number)
                if slot is not None:
                    mask[slot] = 1
            if len(marked.get(mark, ())) > FEW // 4:
                while len(self.marks) >= MARKS_KEPT:
                    del self.marks[next(iter(self.marks))]
                self.marks[mark] = mask
        return int.from_bytes(mask, "little")

    def _newer(self, moment: float) -> int:
        if self.in_time:
            first = bisect_right(self.submitted, moment)
            return int.from_bytes(bytes(first) + b"\1" * (len(self.numbers) - first), "little")
        return int.from_bytes(bytes(map(moment.__lt__, self.submitted)), "little")

    def _everything(self) -> int:
        return int.from_bytes(b"\1" * len(self.numbers), "little")


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
