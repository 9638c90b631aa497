"""`--sandbox`: bubblewrap around each task: read-only root, private /tmp, its own processes, a real /ml."""

from __future__ import annotations

import os

from ..contract import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...runtime.rights import UnixUser

BUBBLEWRAP = "bwrap"
_MADE_NEW = ("dev", "proc", "tmp", "ml")


def wrapper(writable: Sequence[str], user: UnixUser | None = None) -> tuple[str, ...]:
    """The words before `bash`; an error where bubblewrap is missing or not allowed, never a silent run without.

    It is run by the task's own user, who must be allowed to: never by root for another.
    """
    words = [_program(), "--unshare-pid", "--die-with-parent", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108  # inside the sandbox
    for name in sorted(os.listdir("/")):
        path = f"/{name}"
        if name in _MADE_NEW:
            continue
        words += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
    for folder in writable:
        words += ["--bind", folder, folder]
    _probe(words, user)
    return tuple(words)


def with_ml(ml: str, user: UnixUser | None = None) -> tuple[str, ...]:
    """The words before `bash` that leave room for /ml and change nothing else; none where bubblewrap cannot show `ml` there."""
    words = [_program(), "--die-with-parent", "--tmpfs", "/"]
    for name in sorted(os.listdir("/")):
        path = f"/{name}"
        if name != "ml":
            words += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--dev-bind", path, path]
    try:
        # What is shown there is the user's only when it is complete: whether it works is seen with any other folder.
        _probe([*words, "--bind", ml if user is None else "/", "/ml"], user)
    except EngineError:
        return ()
    return tuple(words)


def works() -> bool:
    """Whether a real /ml can be shown here."""
    from shutil import which

    return which(BUBBLEWRAP) is not None and bool(with_ml("/tmp"))  # noqa: S108  # any folder will do


def _program() -> str:
    """Where it is, by our own path: that of a job may lead anywhere."""
    from shutil import which

    return which(BUBBLEWRAP) or BUBBLEWRAP


def _probe(words: Sequence[str], user: UnixUser | None) -> None:
    import subprocess

    try:
        done = subprocess.run(
            [*words, "true"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            user=user.uid if user else None,
            group=user.gid if user else None,
            extra_groups=user.groups if user else None,
            env={"PATH": os.defpath} if user else None,  # what we have is not the user's to see
        )
    except FileNotFoundError:
        raise EngineError("--sandbox needs bubblewrap: sudo apt-get install bubblewrap") from None
    except subprocess.TimeoutExpired:
        raise EngineError("--sandbox: bubblewrap does not answer") from None
    if done.returncode:
        raise EngineError(f"--sandbox does not work here: {done.stderr.strip()}")
