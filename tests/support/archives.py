"""Archives for tests, good ones and such as no honest program makes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable, Iterable
from typing import Any

SQUEEZE: dict[str, Callable[[bytes], bytes]] = {"plain": bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}


def entry(
    name: str, kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644, content: bytes = b"text", **pax: str
) -> Any:
    """One entry, as (header, content)."""
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode, made.mtime = kind, target, mode, 1_000_000_000
    made.size = len(content) if kind in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE) else 0
    made.pax_headers = pax
    return made, content if made.size else b""


def folder(name: str) -> Any:
    return entry(name, tarfile.DIRTYPE)


def link(name: str, target: str) -> Any:
    return entry(name, tarfile.SYMTYPE, target)


def tar(entries: Iterable[Any], format: int = tarfile.PAX_FORMAT) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=format) as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def raw(
    name: bytes,
    kind: bytes = b"0",
    size: bytes = b"00000000000",
    target: bytes = b"",
    magic: bytes = b"ustar\x0000",
    prefix: bytes = b"",
) -> bytes:
    """A header with whatever is wanted in it; its sum is right."""
    block = bytearray(512)
    fields = (
        (0, name),
        (100, b"0000644"),
        (124, size),
        (136, b"00000000000"),
        (156, kind),
        (157, target),
        (257, magic),
        (345, prefix),
    )
    for place, field in fields:
        block[place : place + len(field)] = field
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def long_header(kind: bytes, content: bytes) -> bytes:
    """A header that stands before another one."""
    return raw(b"more", kind, b"%011o" % len(content)) + padded(content)


def pax(**records: bytes) -> bytes:
    """The content of a pax header."""
    found = b""
    for key, value in records.items():
        rest = b" " + key.replace("_", ".").encode() + b"=" + value + b"\n"
        size = len(rest)
        while len(str(size)) + len(rest) != size:
            size = len(str(size)) + len(rest)
        found += str(size).encode() + rest
    return found


END = bytes(1024)


def without_end(archive: bytes) -> bytes:
    """The entries alone, so that more can follow."""
    return padded(archive.rstrip(b"\0"))
