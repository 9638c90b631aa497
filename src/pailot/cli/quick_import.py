"""Our own modules are found where they lie. A run loads a hundred of them, and Python makes eleven system calls for each.

Only a compiled file that belongs to the source as it is now is taken: its header has the time and size of the source, as Python
itself checks them. In any other case, and for modules of others, Python's own way is taken.
"""

from __future__ import annotations

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec, SourceFileLoader
    from types import CodeType, ModuleType
else:
    # The same classes, without loading `importlib`.
    ModuleSpec, SourceFileLoader = type(__spec__), type(__loader__)

_OURS = f"{__name__.partition('.')[0]}."
_HEADER_BYTES = 16
_MAX_BYTES = 1 << 16
"""Larger files are rare, and are left to Python."""


class _Loader(SourceFileLoader):
    """A loader with the code at hand; all else (sources, resources) is as usual."""

    code: CodeType

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)  # noqa: S102  # that is what loading a module means


class QuickFinder:
    """Finds compiled modules of this package. Stands before Python's own finders in `sys.meta_path`."""

    def __init__(self, magic: bytes) -> None:
        self._beginning = magic + bytes(4)  # no flags: the header has time and size
        self._suffix = f".{sys.implementation.cache_tag}.pyc"

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Return where a module is found, or None: the next finder is asked."""
        del target
        if path is None or not name.startswith(_OURS):
            return None
        folder = path[0]
        tail = name.rpartition(".")[2]
        found = self._spec(name, folder, tail)
        if found is None:
            inside = f"{folder}/{tail}"
            found = self._spec(name, inside, "__init__")
            if found is not None:
                found.submodule_search_locations = [inside]
        return found

    def _spec(self, name: str, folder: str, stem: str) -> ModuleSpec | None:
        source = f"{folder}/{stem}.py"
        compiled = f"{folder}/__pycache__/{stem}{self._suffix}"
        try:
            descriptor = os.open(compiled, os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = os.read(descriptor, _MAX_BYTES)
            finally:
                os.close(descriptor)
            status = os.stat(source)
        except OSError:
            return None
        seconds, size = int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF
        if len(data) == _MAX_BYTES or data[:_HEADER_BYTES] != self._beginning + (size << 32 | seconds).to_bytes(8, "little"):
            return None
        code = marshal.loads(memoryview(data)[_HEADER_BYTES:])  # noqa: S302  # the file that Python itself would load
        if code.co_filename != source:  # compiled elsewhere, probably all of them; Python corrects that
            sys.meta_path[:] = [each for each in sys.meta_path if each is not self]
            return None
        loader = _Loader(name, source)
        loader.code = code
        found = ModuleSpec(name, loader, origin=source)
        found.has_location = True
        found.cached = compiled
        return found


def install() -> None:
    """Find our own modules in this way from now on, where compiled files lie beside the sources."""
    magic = getattr(sys.modules.get(SourceFileLoader.__module__), "MAGIC_NUMBER", None)
    usual = SourceFileLoader.__name__ == "SourceFileLoader" and sys.pycache_prefix is None and not sys.flags.optimize
    if usual and isinstance(magic, bytes):
        sys.meta_path.insert(0, QuickFinder(magic))
