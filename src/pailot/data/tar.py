"""Reads tar archives that strangers have made, as a stream, in bounded memory and time.

The standard library's reader takes headers of any size into memory, calls itself for each header that stands before another,
and in older Pythons looks for some words in quadratic time. This one knows files, folders and links in the formats of POSIX
(ustar, pax), GNU tar and Version 7, plain or compressed by gzip, bzip2 or xz, and refuses all else.
"""

from __future__ import annotations

import os
from zlib import decompressobj, error

from ..values import Value
from .errors import DataError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO, Protocol

    class Decompressor(Protocol):
        """What bz2 and lzma have."""

        @property
        def eof(self) -> bool: ...
        @property
        def needs_input(self) -> bool: ...
        @property
        def unused_data(self) -> bytes: ...
        def decompress(self, data: bytes, max_length: int) -> bytes: ...

    Method = tuple[Callable[[], Decompressor], type[Exception]]
    """What makes a decompressor, and what that raises when the data is damaged."""

BLOCK_BYTES = 512
PIECE_BYTES = 1 << 18
LARGEST_HEADER_BYTES = 1 << 16
"""Of what stands before an entry to tell more about it: long names, for instance."""
MOST_HEADERS_OF_AN_ENTRY = 8
LARGEST_HEADERS_BYTES = 1 << 28
"""Of all such headers together."""
DECOMPRESSION_BYTES = 1 << 28
"""Memory that an xz archive may ask for; its highest level takes a quarter of it."""

FILE, FOLDER, LINK = "file", "folder", "link"
_KINDS = {b"0": FILE, b"\0": FILE, b"7": FILE, b"5": FOLDER, b"2": LINK}
_REFUSED = {
    b"1": "a hard link; pack with tar --hard-dereference, or send a folder",
    b"3": "a device",
    b"4": "a device",
    b"6": "a FIFO",
    b"S": "a sparse file; pack without --sparse",
}
_MORE = {b"x": "pax", b"X": "pax", b"g": "global", b"L": "name", b"K": "target"}
_EMPTY = bytes(BLOCK_BYTES)


class BadArchive(DataError):
    """An archive that is damaged, or holds what is not unpacked; the message is one line for its author."""


class TarEntry(Value):
    """A file, folder or link of an archive, as its header tells."""

    name: bytes
    kind: str
    size: int
    executable: bool
    modified: int
    target: bytes
    """Of a link."""


class TarReader:
    """The entries of an archive; the content of each is read before the next one is asked for, or left out."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = _decompressed(stream)
        self._content = self._padding = 0
        self._headers = 0

    def __iter__(self) -> Iterator[TarEntry]:
        first = True
        while True:
            self._skip()
            header = self._stream(BLOCK_BYTES)
            if header == _EMPTY or not (header or first):
                return
            if not _is_header(header):
                raise BadArchive("the archive is no tar archive" if first else "the archive is damaged")
            first = False
            yield self._entry(header)

    def read(self, size: int) -> bytes:
        """At most `size` bytes of the latest entry; nothing at its end."""
        data = self._take(min(size, self._content))
        self._content -= len(data)
        return data

    def _skip(self) -> None:
        left, self._content, self._padding = self._content + self._padding, 0, 0
        while left:
            left -= len(self._take(min(left, PIECE_BYTES)))

    def _take(self, size: int) -> bytes:
        data = self._stream(size)
        if len(data) < size:
            raise BadArchive("the archive is cut off")
        return data

    def _entry(self, header: bytes) -> TarEntry:
        more: dict[str, bytes] = {}
        for _ in range(MOST_HEADERS_OF_AN_ENTRY + 1):
            kind = header[156:157]
            if kind not in _MORE:
                return self._described(header, kind, more)
            body = self._header_body(_number(header[124:136]))
            if _MORE[kind] in ("name", "target"):
                more[_MORE[kind]] = body.split(b"\0", 1)[0]
            else:
                _add(more, body, for_all=_MORE[kind] == "global")
            header = self._take(BLOCK_BYTES)
            if not _is_header(header):
                raise BadArchive("the archive is damaged")
        raise BadArchive(f"the archive has more than {MOST_HEADERS_OF_AN_ENTRY} headers before an entry")

    def _header_body(self, size: int) -> bytes:
        self._headers += size + BLOCK_BYTES
        if size > LARGEST_HEADER_BYTES or self._headers > LARGEST_HEADERS_BYTES:
            raise BadArchive(f"the archive has a header of more than {LARGEST_HEADER_BYTES} bytes, or too many of them")
        return self._take(size + -size % BLOCK_BYTES)[:size]

    def _described(self, header: bytes, kind: bytes, more: dict[str, bytes]) -> TarEntry:
        name = header[:100].split(b"\0", 1)[0]
        prefix = header[345:500].split(b"\0", 1)[0]
        if header[257:263] == b"ustar\0" and prefix:
            name = prefix + b"/" + name
        name = more.get("name", name)
        if kind in _REFUSED or kind not in _KINDS:
            raise BadArchive(f"the archive holds {shown(name)}, {_REFUSED.get(kind, 'which is no file, folder or link')}")
        what = _KINDS[kind]
        if what == FILE and name.endswith(b"/"):
            what = FOLDER  # as Version 7 tells it
        size = _decimal(more["size"]) if "size" in more else _number(header[124:136])
        if what != FILE:
            size = 0  # some write the size of what a link leads to, and nothing follows
        self._content, self._padding = size, -size % BLOCK_BYTES
        target = more.get("target", header[157:257].split(b"\0", 1)[0])
        return TarEntry(name, what, size, bool(_mode(header[100:108]) & 0o100), _time(header[136:148]), target)


def is_archive(path: str) -> bool:
    """Whether a file begins as a tar archive does."""
    with open(path, "rb") as stream:
        try:
            header = _decompressed(stream)(BLOCK_BYTES)
        except BadArchive:
            return False
    return header == _EMPTY or _is_header(header)


def shown(name: bytes) -> str:
    """A name for a message, on one line and not too long."""
    text = repr(os.fsdecode(name[:100]))
    return f"{text}…" if len(name) > 100 else text


# Headers


def _is_header(block: bytes) -> bool:
    if len(block) < BLOCK_BYTES or block == _EMPTY:
        return False
    try:
        told = _number(block[148:156])
    except BadArchive:
        return False
    rest = block[:148] + b" " * 8 + block[156:]
    return told in (sum(rest), sum(rest) - 256 * sum(byte > 127 for byte in rest))  # some added up signed bytes


def _number(field: bytes) -> int:
    """Octal digits or, in GNU's way, a number in binary."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.split(b"\0", 1)[0].strip()
    if not digits:
        return 0
    if len(digits) > len(field) or digits.strip(b"01234567"):
        raise BadArchive("the archive is damaged: a number in a header is none")
    return int(digits, 8)


def _mode(field: bytes) -> int:
    try:
        return _number(field)
    except BadArchive:
        return 0


def _time(field: bytes) -> int:
    try:
        return min(_number(field), 1 << 33)
    except BadArchive:
        return 0  # before 1970


def _decimal(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > 18:
        raise BadArchive("the archive is damaged: a size in a header is no number")
    return int(digits)


def _add(more: dict[str, bytes], body: bytes, *, for_all: bool) -> None:
    """The records of a pax header: `LENGTH KEY=VALUE`, and the end of a line."""
    place = 0
    while place < len(body) and body[place]:
        space = body.find(b" ", place, place + 8)
        end = place + _decimal(body[place:space]) if space > place else 0
        key, equals, value = body[space + 1 : max(end - 1, 0)].partition(b"=")
        if not equals or end > len(body) or body[end - 1 : end] != b"\n" or b"\0" in key:
            raise BadArchive("the archive is damaged: a header cannot be understood")
        place = end
        if key.startswith(b"GNU.sparse."):
            raise BadArchive("the archive holds a sparse file; pack without --sparse")
        known = {b"path": "name", b"linkpath": "target", b"size": "size"}.get(key)
        if known and for_all:
            raise BadArchive(f"the archive gives all entries the same {known}")
        if known:
            more[known] = value


# Decompression


class _Gzip:
    """zlib's decompressor with the manners of the others."""

    def __init__(self) -> None:
        self._inner = decompressobj(31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        out = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self.needs_input = len(out) < max_length and not self._inner.unconsumed_tail
        return out


def _gzip() -> Method:
    return _Gzip, error


def _bzip2() -> Method:
    from bz2 import BZ2Decompressor

    return BZ2Decompressor, OSError


def _xz() -> Method:
    from lzma import LZMADecompressor, LZMAError

    return lambda: LZMADecompressor(memlimit=DECOMPRESSION_BYTES), LZMAError


_BY_BEGINNING = ((b"\x1f\x8b", _gzip), (b"BZh", _bzip2), (b"\xfd7zXZ\0", _xz), (b"\x5d\0\0", _xz))


def _decompressed(stream: BinaryIO) -> Callable[[int], bytes]:
    """Read at most `size` bytes of an archive that may be compressed.

    A plain archive begins with the name of its first file, which may look like the mark of a compression: `]`, `BZh`.
    """
    beginning = stream.read(BLOCK_BYTES)
    for magic, method in _BY_BEGINNING:
        if beginning.startswith(magic) and not _is_header(beginning):
            return _Decompressed(stream, beginning, *method()).read
    rest = bytearray(beginning)

    def read(size: int) -> bytes:
        taken = bytes(rest[:size])
        del rest[:size]
        return taken + stream.read(size - len(taken))

    return read


class _Decompressed:
    """What a compressed stream holds, never more of it in memory than is asked for."""

    def __init__(self, stream: BinaryIO, beginning: bytes, make: Callable[[], Decompressor], error: type[Exception]) -> None:
        self._stream, self._pending, self._make, self._error = stream, beginning, make, error
        self._decompressor = make()

    def read(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size and self._go_on():
            data = b""
            if self._decompressor.needs_input:
                data, self._pending = self._pending or self._stream.read(PIECE_BYTES), b""
                if not data:
                    raise BadArchive("the archive is cut off")
            try:
                found += self._decompressor.decompress(data, size - len(found))
            except self._error as error:
                raise BadArchive(f"the archive is damaged: {error}") from None
        return bytes(found)

    def _go_on(self) -> bool:
        """Whether there is more: archives may consist of several compressed parts, and end in zeros."""
        if not self._decompressor.eof:
            return True
        rest = self._decompressor.unused_data
        while not (rest := rest.lstrip(b"\0")):
            rest = self._stream.read(PIECE_BYTES)
            if not rest:
                return False
        self._pending, self._decompressor = rest, self._make()
        return True
