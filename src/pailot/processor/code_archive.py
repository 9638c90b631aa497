"""Code on its way to a job: packed once, named for its content, without what ignore files leave out."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import warnings
from hashlib import sha256

from ..client.ignore import walk
from ..progress import display
from ..settings import Settings
from ..values import Value
from . import git
from .errors import InvalidProcessor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO, Any


class PackedCode(Value):
    """The archive of a code folder."""

    path: str
    sha256: str
    size: int
    is_new: bool
    """Whether anything had to be packed."""


def pack(folder: str, *, quiet: bool = False) -> PackedCode:
    """The archive of a code folder (or of one file), made unless there is one with the same content."""
    from ..client import code_archive as wire  # loads tarfile, which a Processor without code does not need

    kept = os.path.join(Settings().home, "code")
    try:
        look = _look(folder)
    except OSError:
        look = ""  # what is wrong with it is said below
    known = _known(kept, look)
    if known is not None:
        return known
    with tempfile.TemporaryDirectory(prefix="pailot-") as scratch:
        source = folder
        if not os.path.isdir(folder):
            shutil.copy2(folder, scratch)
            source = scratch
        with display(quiet=quiet) as shown, wire.pack(source, shown.show) as packed:
            for note in packed.notes:
                warnings.warn(note, stacklevel=6)
            target = os.path.join(kept, f"{packed.sha256}.tar.gz")
            is_new = not os.path.exists(target)
            if is_new:
                os.makedirs(kept, mode=0o700, exist_ok=True)
                _place(target, packed.stream)
            if look and not packed.notes and _look(folder) == look:  # unchanged since then; its notes are repeated
                _place(os.path.join(kept, f"{look}.look"), io.BytesIO(packed.sha256.encode()))
            return PackedCode(target, packed.sha256, packed.size, is_new)


def _place(target: str, stream: IO[bytes]) -> None:
    part = os.path.join(os.path.dirname(target), f".{os.urandom(6).hex()}.part")
    try:
        with open(part, "wb") as out:
            shutil.copyfileobj(stream, out)
        os.replace(part, target)
    except OSError as error:
        if os.path.exists(part):
            os.unlink(part)
        raise InvalidProcessor(f"the code cannot be kept: {target}: {error.strerror}") from None


def _look(folder: str) -> str:
    """What a folder looks like from outside: names, sizes, times. While that is the same, so is what is in it."""
    digest = sha256(os.path.realpath(folder).encode(errors="surrogateescape"))
    entries = walk(os.path.realpath(folder)) if os.path.isdir(folder) else ()
    for path, found in ((path, entry.stat(follow_symlinks=False)) for path, entry in entries):
        look = (path, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_dev, found.st_ino)
        digest.update(repr(look).encode(errors="surrogateescape"))
    if not entries:
        found = os.stat(folder)
        digest.update(repr((found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)).encode())
    return digest.hexdigest()


def _known(kept: str, look: str) -> PackedCode | None:
    try:
        with open(os.path.join(kept, f"{look}.look"), encoding="ascii") as stream:
            digest = stream.read()
        path = os.path.join(kept, f"{digest}.tar.gz")
        return PackedCode(path, digest, os.stat(path).st_size, is_new=False)
    except (OSError, ValueError):
        return None


def check_source(source: str | Mapping[str, Any] | None) -> None:
    """Refuse a source that is not there, before anything else is done."""
    if isinstance(source, str) and "://" not in source and not os.path.exists(source):
        raise InvalidProcessor(f"source_dir does not exist: {source}")
    if source is not None and not isinstance(source, str):
        git.check(source)
