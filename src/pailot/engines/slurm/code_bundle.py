"""The code that travels to the nodes, in a folder that all runs of a home share."""

from __future__ import annotations

import os
import py_compile
import sys

from ...runfolder.removing import remove_tree
from ..preparation.travelling_code import PACKAGE, sources

_made: dict[str, str] = {}
START = """import sys

from pailot.runtime.slurm.program import main

sys.exit(main())
"""


def code(home: str) -> str:
    """The folder with the code of this Pailot; made when it is not there yet, never changed."""
    if os.path.isdir(_made.get(home, "")):
        return _made[home]
    from hashlib import sha256

    files = sorted(sources())
    marks = [(path, os.stat(os.path.join(PACKAGE, path))) for path in files]
    text = repr([(path, found.st_size, found.st_mtime_ns) for path, found in marks] + [sys.version])
    folder = os.path.join(home, "runtime", sha256(text.encode()).hexdigest()[:16])
    if not os.path.isdir(folder):
        _make(PACKAGE, files, folder)
    _made[home] = folder
    return folder


def interpreter() -> str:
    """This Python, past the environment it may be in: a node may see the one and not the other."""
    return str(getattr(sys, "_base_executable", "") or sys.executable)


def _make(package: str, files: list[str], folder: str) -> None:
    """Completed elsewhere, then moved here: a reader never sees a part of it."""
    import shutil

    temporary = f"{folder}.{os.getpid()}.{os.urandom(4).hex()}"
    os.makedirs(os.path.join(temporary, "pailot"), mode=0o700)
    try:
        _write(os.path.join(temporary, "__main__.py"), START)
        _write(os.path.join(temporary, "pailot", "__init__.py"), "")
        for path in files:
            target = os.path.join(temporary, "pailot", path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(os.path.join(package, path), target)
        for path in ("__init__.py", *files):  # a node with the same Python need not compile them
            source = os.path.join(temporary, "pailot", path)
            py_compile.compile(source, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        try:
            os.rename(temporary, folder)
        except OSError:
            remove_tree(temporary)  # another process was faster
    except BaseException:
        remove_tree(temporary, ignore_errors=True)
        raise


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
