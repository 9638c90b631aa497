"""Code on its way to a job: packed once, named for its content, without what ignore files leave out."""

from __future__ import annotations

import os
import sys

from ..settings import Settings
from .errors import InvalidProcessor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SHOWN_BYTES = 20 * 1000 * 1000


def pack(folder: str) -> str:
    """The archive of a code folder (or of one file), made unless there is one with the same content; its path."""
    import shutil
    import tempfile
    import warnings

    from ..wire import pack as wire

    with tempfile.TemporaryDirectory(prefix="pailot-") as scratch:
        if not os.path.isdir(folder):
            shutil.copy2(folder, scratch)
            folder = scratch
        with wire.pack(folder, _show) as packed:
            for note in packed.notes:
                warnings.warn(note, stacklevel=6)
            kept = os.path.join(Settings().home, "code")
            target = os.path.join(kept, f"{packed.sha256}.tar.gz")
            if not os.path.exists(target):
                os.makedirs(kept, mode=0o700, exist_ok=True)
                part = os.path.join(kept, f".{os.urandom(6).hex()}.part")
                with open(part, "wb") as stream:
                    shutil.copyfileobj(packed.stream, stream)
                os.replace(part, target)
    return target


def _show(done: int, ended: bool) -> None:
    """A line for a person, when it takes long."""
    if done > SHOWN_BYTES and sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\rpacking code: {done / 1e6:.0f} MB" + ("\n" if ended else ""))
        sys.stderr.flush()


def check_source(source: str | Mapping[str, Any] | None) -> None:
    """Refuse a source that is not there, before anything else is done."""
    if isinstance(source, str) and "://" not in source and not os.path.exists(source):
        raise InvalidProcessor(f"source_dir does not exist: {source}")
    if source is not None and not isinstance(source, str):
        from . import git

        git.check(source)
