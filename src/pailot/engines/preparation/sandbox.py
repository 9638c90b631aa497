"""`--sandbox`: bubblewrap around each task: read-only root, private /tmp, its own processes, a real /ml."""

from __future__ import annotations

import os

from ..base import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_MADE_NEW = ("dev", "proc", "tmp", "ml")


def wrapper(writable: Sequence[str]) -> tuple[str, ...]:
    """The words before `bash`; an error where bubblewrap is missing or not allowed, never a silent run without."""
    words = ["bwrap", "--unshare-pid", "--die-with-parent", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108  # inside the sandbox
    for name in sorted(os.listdir("/")):
        path = f"/{name}"
        if name in _MADE_NEW:
            continue
        words += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
    for folder in writable:
        words += ["--bind", folder, folder]
    _probe(words)
    return tuple(words)


def with_ml(ml: str) -> tuple[str, ...]:
    """The words before `bash` that leave room for /ml and change nothing else; none where bubblewrap cannot show `ml` there."""
    words = ["bwrap", "--die-with-parent", "--tmpfs", "/"]
    for name in sorted(os.listdir("/")):
        path = f"/{name}"
        if name != "ml":
            words += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--dev-bind", path, path]
    try:
        _probe([*words, "--bind", ml, "/ml"])
    except EngineError:
        return ()
    return tuple(words)


def works() -> bool:
    """Whether a real /ml can be shown here."""
    from shutil import which

    return which("bwrap") is not None and bool(with_ml("/tmp"))  # noqa: S108  # any folder will do


def _probe(words: Sequence[str]) -> None:
    import subprocess

    try:
        done = subprocess.run([*words, "true"], capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        raise EngineError("--sandbox needs bubblewrap: sudo apt-get install bubblewrap") from None
    except subprocess.TimeoutExpired:
        raise EngineError("--sandbox: bubblewrap does not answer") from None
    if done.returncode:
        raise EngineError(f"--sandbox does not work here: {done.stderr.strip()}")
