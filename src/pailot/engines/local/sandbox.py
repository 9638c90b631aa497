"""`--sandbox`: bubblewrap around each task: read-only root, private /tmp, its own processes."""

from __future__ import annotations

from ..base import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..base import Attempt


def wrapper(attempt: Attempt) -> tuple[str, ...]:
    """The words before `bash`; an error where bubblewrap is missing or not allowed, never a silent run without."""
    words = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--unshare-pid", "--die-with-parent")  # noqa: S108  # inside the sandbox
    _probe(words)
    writable = [attempt.folder, attempt.checkpoints, attempt.cwd]
    return (*words, *(word for folder in writable if folder for word in ("--bind", folder, folder)))


def _probe(words: tuple[str, ...]) -> None:
    import subprocess

    try:
        done = subprocess.run([*words, "true"], capture_output=True, text=True, timeout=10, check=False)
    except FileNotFoundError:
        raise EngineError("--sandbox needs bubblewrap: sudo apt-get install bubblewrap") from None
    except subprocess.TimeoutExpired:
        raise EngineError("--sandbox: bubblewrap does not answer") from None
    if done.returncode:
        raise EngineError(f"--sandbox does not work here: {done.stderr.strip()}")
