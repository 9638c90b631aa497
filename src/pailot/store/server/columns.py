"""Columns of the list of jobs, in memory: one byte a job for what is filtered by, sorted slots for what is ordered by.

A job has a *slot*, counted from 0 in the order of submission. A set of jobs is a *mask*: one byte a slot, 1 for a member.
Masks are made by `bytes.translate`, joined as whole numbers and counted by `bytes.count`, all of which take less than a
millisecond for a million jobs; there is no loop over jobs but where few are left or most of an order must be walked.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from itertools import chain, compress, islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any

BLOCK = 1024
NARROW = 255
"""So many values have codes of one byte, of which 0 is none."""
FEW = 20_000
"""So many slots are rather handled one by one."""
ONLY_ONE = bytes(code == 1 for code in range(256))
ALL_BITS = bytes(255 if code else 0 for code in range(256))


def nth(marked: bytes | bytearray, byte: int, skip: int, limit: int, *, descending: bool) -> list[int]:
    """Where a byte stands: `limit` places after the first `skip`, from the front or from the back."""
    low, high = 0, len(marked)
    if skip:
        if skip >= marked.count(byte):
            return []
        while high - low > 4096:  # halve what holds the place to begin at
            middle = (low + high) // 2
            inside = marked.count(byte, middle, high) if descending else marked.count(byte, low, middle)
            if skip >= inside:
                skip -= inside
                low, high = (low, middle) if descending else (middle, high)
            elif descending:
                low = middle
            else:
                high = middle
    found: list[int] = []
    place = high if descending else low - 1
    while len(found) < limit:
        place = marked.rfind(byte, 0, place) if descending else marked.find(byte, place + 1)
        if place < 0:
            break
        if skip:
            skip -= 1
        else:
            found.append(place)
    return found


class Order:
    """Slots in the order of a key, then of their numbers; in blocks, so that one more costs little."""

    def __init__(self, key: Callable[[int], Any], slots: Sequence[int] = ()) -> None:
        self._key = key
        self._blocks = [array("I", slots[start : start + BLOCK]) for start in range(0, len(slots), BLOCK)]

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._blocks)

    def add(self, slot: int) -> None:
        """The slot, at the place of its present key."""
        if not self._blocks:
            self._blocks.append(array("I", [slot]))
            return
        number = min(self._block_of(slot), len(self._blocks) - 1)
        block = self._blocks[number]
        insort(block, slot, key=self._full)
        if len(block) > 2 * BLOCK:
            self._blocks[number : number + 1] = [block[:BLOCK], block[BLOCK:]]

    def remove(self, slot: int) -> None:
        """Called while the slot still has the key that it was added with."""
        number = self._block_of(slot)
        block = self._blocks[number]
        del block[bisect_left(block, self._full(slot), key=self._full)]
        if not block:
            del self._blocks[number]

    def page(self, mask: bytes | None, skip: int, limit: int, *, descending: bool) -> list[int]:
        """The members of a mask from a place on; all where there is none."""
        blocks: Iterable[Sequence[int]] = reversed(self._blocks) if descending else self._blocks
        if mask is None:
            found: list[int] = []
            for block in blocks:
                if skip >= len(block):
                    skip -= len(block)
                    continue
                found += (block[::-1] if descending else block)[skip : skip + limit - len(found)]
                skip = 0
                if len(found) >= limit:
                    break
            return found
        if descending:
            blocks = (block[::-1] for block in blocks)
        first, second = chain.from_iterable(blocks), self._walk(descending=descending)
        return list(islice(compress(first, map(mask.__getitem__, second)), skip, skip + limit))

    def equal(self, key: Any, count: int) -> Iterator[int]:
        """The first `count` slots from this key on."""
        number = bisect_left(self._blocks, (key, -1), key=self._last)
        if number == len(self._blocks):
            return iter(())
        start = bisect_left(self._blocks[number], (key, -1), key=self._full)
        return islice(chain.from_iterable(self._blocks[number:]), start, start + count)

    def _walk(self, *, descending: bool) -> Iterator[int]:
        if descending:
            return chain.from_iterable(block[::-1] for block in reversed(self._blocks))
        return iter(self)

    def _block_of(self, slot: int) -> int:
        return bisect_left(self._blocks, self._full(slot), key=self._last)

    def _full(self, slot: int) -> tuple[Any, int]:
        return self._key(slot), slot

    def _last(self, block: array[int]) -> tuple[Any, int]:
        return self._full(block[-1])


class Category:
    """A column of few different values, as codes of a byte each; of two or more where there are many values."""

    def __init__(self, alive: bytearray) -> None:
        self._alive = alive
        self.values: list[Any] = [None]  # by code, from 1 on
        self.counts = [0]
        self._codes: dict[Any, int] = {}
        self._planes = [bytearray()]
        self._order: Order | None = None

    def __len__(self) -> int:
        return len(self._planes[0])

    @property
    def narrow(self) -> bool:
        return len(self.values) <= NARROW + 1

    @property
    def plane(self) -> bytearray:
        """The codes, of a narrow one."""
        return self._planes[0]

    @property
    def order(self) -> Order:
        """The slots by value, of one that is not narrow."""
        if self._order is None:
            buckets: list[array[int]] = [array("I") for _ in self.values]
            for slot, code in compress(enumerate(self._all_codes()), self._alive):
                buckets[code].append(slot)
            codes = sorted(self._codes.values(), key=lambda code: _rank(self.values[code]))
            self._order = Order(self._key, array("I", chain.from_iterable(buckets[code] for code in codes)))
        return self._order

    def value(self, slot: int) -> Any:
        return self.values[self._code(slot)]

    def extend(self, values: Sequence[Any]) -> None:
        """Many more slots, all alive, before anything else is asked."""
        for value in dict.fromkeys(values):
            self._code_of(value)
        codes = list(map(self._codes.__getitem__, values))
        for place, plane in enumerate(self._planes):
            plane.extend(codes if self.narrow else (code >> 8 * place & 255 for code in codes))
        if len(self.values) <= 64:
            for code in range(1, len(self.values)):
                self.counts[code] += codes.count(code)
        else:
            for code in codes:
                self.counts[code] += 1

    def append(self, value: Any) -> None:
        code = self._code_of(value)
        for place, plane in enumerate(self._planes):
            plane.append(code >> 8 * place & 255)
        self.counts[code] += 1
        if self._order is not None:
            self._order.add(len(self) - 1)

    def set(self, slot: int, value: Any) -> None:
        old = self._code(slot)
        if self.values[old] == value:
            return
        code = self._code_of(value)
        if self._order is not None:
            self._order.remove(slot)
        for place, plane in enumerate(self._planes):
            plane[slot] = code >> 8 * place & 255
        self.counts[old] -= 1
        self.counts[code] += 1
        if self._order is not None:
            self._order.add(slot)

    def drop(self, slot: int) -> None:
        """The job is gone; its code stays where it is."""
        self.counts[self._code(slot)] -= 1
        if self._order is not None:
            self._order.remove(slot)

    def sorted_codes(self) -> list[int]:
        """Codes in the order of their values, none last."""
        return sorted(self._codes.values(), key=lambda code: _rank(self.values[code]))

    def matching(self, test: Callable[[Any], bool]) -> list[Any]:
        """The values that pass."""
        return [value for value, code in self._codes.items() if self.counts[code] and test(value)]

    def mask(self, values: Iterable[Any]) -> int:
        """The slots with one of these values (and perhaps some whose job is gone), as a whole number."""
        codes = [code for value in dict.fromkeys(values) if (code := self._codes.get(value)) and self.counts[code]]
        if not codes:
            return 0
        if self.narrow:
            return self._among(0, codes)
        if len(codes) > len(self.values) // 2:
            rest = set(range(1, len(self.values))).difference(codes)
            everything = int.from_bytes(b"\1" * len(self), "little")
            return everything ^ self._wide(list(rest))
        return self._wide(codes)

    def _wide(self, codes: list[int]) -> int:
        few = [code for code in codes if self.counts[code] <= FEW]
        result = 0
        for code in codes:
            if self.counts[code] > FEW:
                one = self._among(0, [code & 255])
                for place in range(1, len(self._planes)):
                    one &= self._among(place, [code >> 8 * place & 255])
                result |= one
        if sum(self.counts[code] for code in few) > 10 * FEW:
            for high in {code >> 8 for code in few}:
                one = self._among(0, [code & 255 for code in few if code >> 8 == high])
                for place in range(1, len(self._planes)):
                    one &= self._among(place, [high >> 8 * (place - 1) & 255])
                result |= one
        elif few:
            marked = bytearray(len(self))
            for code in few:
                for slot in self.order.equal(_rank(self.values[code]), self.counts[code]):
                    marked[slot] = 1
            result |= int.from_bytes(marked, "little")
        return result

    def _among(self, place: int, codes: Collection[int]) -> int:
        table = bytearray(256)
        for code in codes:
            table[code] = 1
        return int.from_bytes(self._planes[place].translate(table), "little")

    def _code(self, slot: int) -> int:
        code = 0
        for place, plane in enumerate(self._planes):
            code |= plane[slot] << 8 * place
        return code

    def _all_codes(self) -> Iterable[int]:
        codes: Iterable[int] = self._planes[0]
        for place, plane in enumerate(self._planes[1:], 1):
            codes = [low | high << 8 * place for low, high in zip(codes, plane, strict=True)]
        return codes

    def _code_of(self, value: Any) -> int:
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = len(self.values)
            self.values.append(value)
            self.counts.append(0)
            if code >> 8 * len(self._planes):
                self._planes.append(bytearray(len(self)))
        return code

    def _key(self, slot: int) -> Any:
        return _rank(self.value(slot))


def _rank(value: Any) -> Any:
    """None behind everything."""
    return (value is None, value)


class Names:
    """The names of the jobs, end to end: one text to search through for a part of a name."""

    END, HIT = 0xFF, 0xFE  # bytes that no text in UTF-8 has

    def __init__(self) -> None:
        self.text = bytearray()
        self._starts = array("Q", [0])

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, slot: int) -> bytes:
        return bytes(self.text[self._starts[slot] : self._starts[slot + 1] - 1])

    def append(self, name: str) -> None:
        self.text += name.encode()
        self.text.append(self.END)
        self._starts.append(len(self.text))

    def extend(self, names: Sequence[str]) -> None:
        for name in names:
            self.append(name)

    def containing(self, part: bytes) -> bytearray:
        """The mask of names with this part."""
        text, count = self.text, len(self)
        sample = min(len(text), 1 << 18)
        if sample and text.count(part, 0, sample) * (len(text) / sample) <= FEW:
            marked = bytearray(count)
            place = text.find(part)
            while place >= 0:
                slot = bisect_left(self._starts, place + 1) - 1
                marked[slot] = 1
                place = text.find(part, self._starts[slot + 1])
            return marked
        # Hits become one byte each, everything else but the ends goes, several hits of a name become one.
        left = text.replace(part, bytes([self.HIT]) + bytes(len(part) - 1)).translate(None, KEPT_OUT)
        while HITS in left:
            left = left.replace(HITS, HITS[:1])
        return left.replace(HITS[:1] + bytes([self.END]), b"\1").translate(ONLY_ONE)

    def among(self, part: bytes, slots: Iterable[int]) -> list[int]:
        """Of some slots those whose names have this part."""
        return [slot for slot in slots if part in self[slot]]


HITS = bytes([Names.HIT, Names.HIT])
KEPT_OUT = bytes(code for code in range(256) if code not in (Names.END, Names.HIT))
