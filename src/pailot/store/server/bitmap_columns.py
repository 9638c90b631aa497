"""Columns of the list of jobs, in memory, as bits: a set of jobs is one whole number with a bit for each.

A job has a *slot*, counted from 0 in the order of submission, and a *mask* is a number whose bit n stands for slot n. With a
million jobs two masks are joined in a hundredth of a millisecond and counted in a twentieth. A column of codes is kept as
one mask for each bit of the codes, so that the jobs with a code, or with the codes of a range, are a few joins away.
Loops over jobs are only made where few thousand are left.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate, chain, compress, repeat
from sys import byteorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

NARROW = 128
"""Values of a column up to which its order is found value by value."""
SMALLEST_BUCKET, BUCKETS, MOST_BUCKETS = 4096, 64, 255
"""An order is cut into buckets of about a 64th of all slots, or of this size where that is more."""
SAMPLED = 64
"""Slots for each bucket that are looked at to find its bounds."""
FIRST_TRIED = 4
"""Codes that are tried before all are counted."""

PLACES = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]
NOT_ZERO = bytes(byte > 0 for byte in range(256))
DIGITS = bytes(49 if byte else 48 for byte in range(256))
ONLY_DIGIT = bytes(byte == 49 for byte in range(256))
HAS_BIT = [bytes(byte >> bit & 1 for byte in range(256)) for bit in range(8)]
LITTLE = byteorder == "little"


WIDER = {"B": "H", "H": "I", "I": "Q"}


def extended(numbers: array[int], more: Sequence[int]) -> array[int]:
    """The array with more numbers behind it: the same one, or one of wider items where they are too large for it."""
    count = len(numbers)
    try:
        numbers.extend(more)
    except OverflowError:
        del numbers[count:]
        return extended(array(WIDER[numbers.typecode], numbers), more)
    return numbers


def places(mask: int) -> Iterator[int]:
    """The slots of a mask, in their order."""
    data = mask.to_bytes((mask.bit_length() + 7) // 8, "little")
    found = data.translate(NOT_ZERO)
    byte = found.find(1)
    while byte >= 0:
        for bit in PLACES[data[byte]]:
            yield 8 * byte + bit
        byte = found.find(1, byte + 1)


def nth(mask: int, skip: int, limit: int, *, descending: bool) -> list[int]:
    """`limit` slots of a mask after the first `skip`, from the front or from the back."""
    total = mask.bit_count()
    first = max(0, total - skip - limit) if descending else skip
    last = total - skip if descending else min(total, skip + limit)
    if first >= last:
        return []
    low, high = 0, mask.bit_length()
    before, inside = 0, total
    while high - low > 4096 and inside > 4 * limit:  # narrow it down to what holds the page
        middle = (low + high) // 2
        left = (mask & ((1 << middle - low) - 1)).bit_count()
        if last <= before + left:
            mask &= (1 << middle - low) - 1
            high, inside = middle, left
        elif first >= before + left:
            mask >>= middle - low
            low, before, inside = middle, before + left, inside - left
        else:
            break
    found: list[int] = []
    for number, place in enumerate(places(mask), before):
        if number >= last:
            break
        if number >= first:
            found.append(low + place)
    return found[::-1] if descending else found


def from_bytes(marked: bytes | bytearray) -> int:
    """The mask of the places where a byte is not 0."""
    return int(marked[::-1].translate(DIGITS), 2) if marked else 0


def to_bytes(mask: int, count: int) -> bytes:
    """A byte for each slot: 1 for those of the mask, else 0."""
    return f"{mask:0{count}b}"[::-1].encode().translate(ONLY_DIGIT) if count else b""


class Bits:
    """A mask that is changed bit by bit."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._mask: int | None = 0

    @property
    def mask(self) -> int:
        if self._mask is None:
            self._mask = int.from_bytes(self._data, "little")
        return self._mask

    @mask.setter
    def mask(self, mask: int) -> None:
        self._data = bytearray(mask.to_bytes((mask.bit_length() + 7) // 8, "little"))
        self._mask = mask

    def __getitem__(self, slot: int) -> int:
        byte = slot >> 3
        return self._data[byte] >> (slot & 7) & 1 if byte < len(self._data) else 0

    def __setitem__(self, slot: int, bit: object) -> None:
        byte = slot >> 3
        if byte >= len(self._data):
            if not bit:
                return
            self._data.extend(bytes(byte + 1 - len(self._data)))
        if bit:
            self._data[byte] |= 1 << (slot & 7)
        else:
            self._data[byte] &= ~(1 << (slot & 7))
        self._mask = None


class Codes:
    """A small number for each slot, kept as one mask for each of its bits."""

    def __init__(self) -> None:
        self._planes: list[Bits] = []

    def __setitem__(self, slot: int, code: int) -> None:
        while code >> len(self._planes):
            self._planes.append(Bits())
        for place, plane in enumerate(self._planes):
            plane[slot] = code >> place & 1

    def fill(self, codes: array[int] | bytes | bytearray) -> None:
        """All slots at once."""
        size = codes.itemsize if isinstance(codes, array) else 1
        data = codes.tobytes() if isinstance(codes, array) else codes
        self._planes = []
        for place in range(max(codes, default=0).bit_length()):
            byte, bit = divmod(place, 8)
            lane = data[byte if LITTLE else size - 1 - byte :: size]
            plane = Bits()
            plane.mask = from_bytes(lane.translate(HAS_BIT[bit]))
            self._planes.append(plane)

    def equal(self, code: int, within: int) -> int:
        """Of a mask what has this code."""
        if code >> len(self._planes):
            return 0
        for place, plane in enumerate(self._planes):
            with_it = within & plane.mask
            within = with_it if code >> place & 1 else within ^ with_it
            if not within:
                break
        return within

    def among(self, codes: Iterable[int], within: int) -> int:
        """Of a mask what has one of these codes."""
        wanted = {code for code in codes if not code >> len(self._planes)}
        if len(wanted) <= 2:
            found = 0
            for code in wanted:
                found |= self.equal(code, within)
            return found
        return self._among(wanted, len(self._planes), within)

    def _among(self, wanted: set[int], width: int, within: int) -> int:
        if not wanted or not within or len(wanted) == 1 << width:
            return within if wanted else 0
        width -= 1
        ones = {code ^ 1 << width for code in wanted if code >> width}
        zeros = {code for code in wanted if not code >> width}
        with_it = within & self._planes[width].mask
        return self._among(ones, width, with_it) | self._among(zeros, width, within ^ with_it)

    def counts(self, within: int) -> dict[int, int]:
        """How often each code is in a mask, those that are."""
        found: dict[int, int] = {}
        self._count(found, len(self._planes), 0, within)
        return found

    def _count(self, found: dict[int, int], width: int, code: int, within: int) -> None:
        if not within:
            return
        if not width:
            found[code] = within.bit_count()
            return
        width -= 1
        with_it = within & self._planes[width].mask
        self._count(found, width, code | 1 << width, with_it)
        self._count(found, width, code, within ^ with_it)

    def page(
        self,
        within: int,
        order: Sequence[int],
        skip: int,
        limit: int,
        pick: Callable[[int, int, int], list[int]],
    ) -> list[int]:
        """Slots code by code; `pick(mask, skip, count)` returns `count` slots of a code's mask after the first `skip`."""
        found: list[int] = []
        counts: dict[int, int] | None = None
        for tried, code in enumerate(order):
            if tried == FIRST_TRIED:
                counts = self.counts(within)
            if counts is None:
                mask = self.equal(code, within)
                here = mask.bit_count()
            else:
                here = counts.get(code, 0)
                mask = self.equal(code, within) if skip < here else 0
            if skip < here:
                found += pick(mask, skip, limit - len(found))
                if len(found) >= limit:
                    break
            skip = max(0, skip - here)
        return found


class Category:
    """A column of values that repeat, each with a code; the codes are kept both as masks and one by one."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._ranks: list[Any] = []
        self._known: dict[Any, int] = {}
        self._codes = Codes()
        self._flat = array("B")
        """The code of each slot, up to the last one that is not 0: a value that all jobs have takes no room."""

    @property
    def narrow(self) -> bool:
        return len(self._values) <= NARROW

    def __getitem__(self, slot: int) -> Any:
        return self._values[self._at(slot)]

    def __setitem__(self, slot: int, value: Any) -> None:
        code = self._code(value)
        self._codes[slot] = code
        if slot >= len(self._flat):
            if code:
                self._flat.extend(bytes(slot - len(self._flat)))
                self._flat = extended(self._flat, (code,))
            return
        while code >> 8 * self._flat.itemsize:
            self._flat = array(WIDER[self._flat.typecode], self._flat)
        self._flat[slot] = code

    def key(self, slot: int) -> Any:
        """What the value is sorted by, None behind all others."""
        return self._ranks[self._at(slot)]

    def fill(self, codes: array[int]) -> None:
        """All slots at once, as codes that `encode` gave."""
        self._codes.fill(codes)
        self._flat = codes if len(self._values) > 1 else array("B")

    def encode(self, values: Sequence[Any]) -> list[int]:
        try:
            return list(map(self._known.__getitem__, values))
        except KeyError:
            return list(map(self._code, values))

    def matching(self, test: Callable[[Any], bool]) -> list[Any]:
        """The values that pass."""
        return [value for value in self._values if test(value)]

    def mask(self, values: Iterable[Any], within: int) -> int:
        """Of a mask what has one of these values."""
        codes = [self._known[value] for value in values if value in self._known]
        return self._codes.among(codes, within)

    def by_value(self, alive: int, count: int) -> array[int]:
        """All slots of a mask, by value, None behind all others."""
        buckets = [array("I") for _ in self._values]
        for slot, code in compress(enumerate(chain(self._flat, repeat(0))), to_bytes(alive, count)):
            buckets[code].append(slot)
        ordered = array("I")
        for code in sorted(self._known.values(), key=self._ranks.__getitem__):
            ordered += buckets[code]
        return ordered

    def page(self, within: int, skip: int, limit: int, *, descending: bool) -> list[int]:
        """By value, None behind all others."""
        order = sorted(self._known.values(), key=self._ranks.__getitem__, reverse=descending)

        def pick(mask: int, skip: int, limit: int) -> list[int]:
            return nth(mask, skip, limit, descending=descending)

        return self._codes.page(within, order, skip, limit, pick)

    def _at(self, slot: int) -> int:
        return self._flat[slot] if slot < len(self._flat) else 0

    def _code(self, value: Any) -> int:
        code = self._known.get(value)
        if code is None:
            code = self._known[value] = len(self._values)
            self._values.append(value)
            self._ranks.append((value is None, value))
        return code


class SlotOrder:
    """The slots by a key, cut into buckets of neighbours; each bucket is sorted when it is looked at."""

    def __init__(self, key: Callable[[int], Any], alive: Bits) -> None:
        self._key = key
        self._alive = alive
        self._codes = Codes()
        self._order = [0]
        """The codes of the buckets, in the order of what is in them."""
        self._first: list[Any] = [None]
        """The lowest key of each bucket, in the same order; the first has none."""
        self._sizes = [0]
        self._count = 0

    def fill(self, ordered: Sequence[int]) -> None:
        """All slots at once, sorted by the key."""
        self._count = len(ordered)
        size = max(SMALLEST_BUCKET, len(ordered) // (2 * BUCKETS))
        starts = range(0, len(ordered), size)
        codes = bytearray(max(ordered, default=-1) + 1)
        for code, start in enumerate(starts):
            for slot in ordered[start : start + size]:
                codes[slot] = code
        self._codes.fill(codes)
        self._order = list(range(len(starts))) or [0]
        self._first = [None, *(self._full(ordered[start]) for start in starts[1:])]
        self._sizes = [min(size, len(ordered) - start) for start in starts] or [0]

    def spread(self, keys: Iterable[Any], count: int) -> None:
        """All slots at once, in the order of submission; a sample of them tells where to cut. Sorts nothing else."""
        size = max(SMALLEST_BUCKET, count // (2 * BUCKETS))
        buckets = max(1, count // size)
        sample = sorted(self._full(slot) for slot in range(0, count, max(1, count // (SAMPLED * buckets))))
        self._first = [None, *(sample[len(sample) * number // buckets] for number in range(1, buckets))]
        first = self._first
        codes = bytes([bisect_right(first, (key, slot), 1) - 1 for slot, key in enumerate(keys)])
        self._codes.fill(codes)
        self._order = list(range(buckets))
        self._sizes = [codes.count(code) for code in self._order]
        self._count = count

    def add(self, slot: int) -> None:
        """The slot, which is alive, at the place of its present key."""
        place = bisect_right(self._first, self._full(slot), lo=1) - 1
        self._codes[slot] = self._order[place]
        self._sizes[place] += 1
        self._count += 1
        if self._sizes[place] > 2 * max(SMALLEST_BUCKET, self._count // BUCKETS):
            self._split(place)

    def remove(self, slot: int) -> None:
        """Called while the slot still has the key that it was added with. Its bits stay."""
        self._sizes[bisect_right(self._first, self._full(slot), lo=1) - 1] -= 1
        self._count -= 1

    def page(self, within: int, skip: int, limit: int, *, descending: bool) -> list[int]:
        def pick(mask: int, skip: int, limit: int) -> list[int]:
            slots = sorted(places(mask), key=self._key)  # equal ones stay in the order of submission
            if descending:
                slots.reverse()
            return slots[skip : skip + limit]

        return self._codes.page(within, self._order[::-1] if descending else self._order, skip, limit, pick)

    def _split(self, place: int) -> None:
        if len(self._order) >= MOST_BUCKETS:
            pairs = [self._sizes[number] + self._sizes[number + 1] for number in range(len(self._sizes) - 1)]
            smallest = min(range(len(pairs)), key=pairs.__getitem__)
            self._merge(smallest)
            place -= smallest < place
        code = next(code for code in range(len(self._order) + 1) if code not in self._order)
        members = sorted(self._members(place), key=self._full)
        upper = members[len(members) // 2 :]
        for slot in upper:
            self._codes[slot] = code
        self._order.insert(place + 1, code)
        self._first.insert(place + 1, self._full(upper[0]))
        self._sizes[place : place + 1] = [len(members) - len(upper), len(upper)]

    def _merge(self, place: int) -> None:
        """A bucket and the next one."""
        for slot in self._members(place + 1):
            self._codes[slot] = self._order[place]
        self._sizes[place] += self._sizes.pop(place + 1)
        del self._order[place + 1], self._first[place + 1]

    def _members(self, place: int) -> list[int]:
        return list(places(self._codes.equal(self._order[place], self._alive.mask)))

    def _full(self, slot: int) -> tuple[Any, int]:
        return self._key(slot), slot


class Names:
    """The names of the jobs, end to end: one text to search through for a part of a name."""

    def __init__(self) -> None:
        self.text = bytearray()
        self._starts = array("I", [0])

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, slot: int) -> bytes:
        return bytes(self.text[self._starts[slot] : self._starts[slot + 1] - 1])

    def extend(self, names: Iterable[str]) -> None:
        encoded = [name.encode() for name in names]
        starts = list(accumulate((len(name) + 1 for name in encoded), initial=len(self.text)))
        self._starts = extended(self._starts, starts[1:])
        encoded.append(b"")
        self.text += END.join(encoded)

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self), 10_000):
            end = self._starts[min(start + 10_000, len(self))]
            yield from bytes(self.text[self._starts[start] : end - 1]).split(END)

    def containing(self, part: bytes) -> int:
        """The mask of names with this part."""
        text = self.text
        sample = text.count(part, 0, SAMPLE)
        if sample * (len(text) // SAMPLE + 1) <= SPARSE:
            found = Bits()
            place = text.find(part)
            while place >= 0:
                slot = bisect_right(self._starts, place) - 1
                found[slot] = 1
                place = text.find(part, self._starts[slot + 1])
            return found.mask
        # A hit becomes one byte, everything else but the ends goes; the last hit of a name and its end become a 1.
        left = text.replace(part, HIT + bytes(len(part) - 1)).translate(None, NEITHER)
        return from_bytes(left.replace(HIT + END, b"\1\0").translate(None, HIT + b"\0").translate(ONLY_ONE))


HIT, END = b"\xfe", b"\xff"  # bytes that no text in UTF-8 has
NEITHER = bytes(byte for byte in range(256) if bytes([byte]) not in (HIT, END))
ONLY_ONE = bytes(byte == 1 for byte in range(256))
SAMPLE = 1 << 18
SPARSE = 50_000
"""Hits up to which each is looked at."""
