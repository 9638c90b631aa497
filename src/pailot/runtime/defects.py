"""Mistakes of our own. Each has a number, which the user is told, and by which the log tells the rest.

A process that serves many jobs goes on when something unforeseen happens to one of them: that job fails, with the number.
"""

from __future__ import annotations

import errno
import os
import time

from ..runfolder.masking import mask_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_OF_THE_MACHINE = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EIO, errno.EROFS)
)
_LONGEST = 300

report: Callable[[str, str, str], None] | None = None
"""Takes what a mistake is about, its number and the traceback; set by processes with a log of their own form."""


def is_of_the_machine(error: BaseException) -> bool:
    """Whether the machine lacks something, such as space, memory or descriptors: that is not a mistake, and may pass."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _OF_THE_MACHINE)


def note(error: BaseException, of: str, *, hidden: tuple[str, ...] = (), log: str = "") -> str:
    """Write a mistake down where our log goes (standard error, or the file `log`); returns the words for the caller.

    Never raises: the caller could not report it.
    """
    import traceback

    number = os.urandom(4).hex()
    try:
        lines = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        if report is not None and not log:
            report(of, number, mask_text(lines, hidden))
        else:
            text = mask_text(f"{time.strftime('%F %T')} {of}: defect {number}\n{lines}\n", hidden)
            _write(text.encode("utf-8", "backslashreplace"), log)
        what = mask_text(f"{type(error).__name__}: {error}", hidden).replace("\n", " ")
        what = "".join(each if each.isprintable() else "?" for each in what[:_LONGEST])
    except Exception as another:  # the error cannot even be printed
        what = f"{type(error).__name__}, {type(another).__name__}"
    return f"a defect of Pailot, number {number} ({what}); {os.path.basename(log) or 'the log of the server'} has more"


def _write(data: bytes, log: str) -> None:
    try:
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600) if log else 2
    except OSError:
        return
    try:
        os.write(target, data)
    except OSError:
        pass  # a full disk, or a closed pipe: the number alone must do
    finally:
        if log:
            os.close(target)
