"""Where tasks work: one in the current directory, several in a directory each that shows it.

Such a directory holds a symbolic link to every entry of the current one: new names are the task's own, those that
were there are the user's.
"""

from __future__ import annotations

import os

from ...runfolder.careful_files import make_folders
from ..contract import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SHARED, PRIVATE = "shared", "private"
"""All tasks in the current directory; each task, also a single one, in a directory of its own."""
MAX_LINKS = 400_000  # some seconds of work


class WorkdirError(EngineError):
    """Tasks cannot work there."""


def prepare(cwd: str, folders: Sequence[str], mode: str = "", leave_out: Sequence[str] = ()) -> list[str]:
    """The working directory of each task, whose own directory would be that in `folders`.

    `mode` is empty, 'shared', 'private', or a directory in place of the current one. Entries that are one of
    the paths in `leave_out` are not shown. Without a current directory each task has an empty one of its own.
    """
    if not cwd and not mode:
        for folder in folders:
            make_folders(folder)
        return list(folders)
    base = base_of(cwd, mode)
    if not os.path.isdir(base):
        raise WorkdirError(f"{base} should be the working directory, but there is no such directory")
    if mode == SHARED or (len(folders) == 1 and mode != PRIVATE):
        return [base] * len(folders)
    names = _entries(base, leave_out)
    if len(names) * len(folders) > MAX_LINKS:
        raise WorkdirError(
            f"{base} has {len(names)} entries, too many to show them to each of {len(folders)} tasks; start the job from "
            "a directory with fewer, name one with --workdir DIR, or let all tasks share this one with --workdir shared"
        )
    try:
        _fill(base, names, folders)
    except OSError as error:
        raise WorkdirError(f"{error.filename2 or error.filename}: a working directory cannot be made: {error.strerror}") from None
    return list(folders)


def base_of(cwd: str, mode: str) -> str:
    """The directory that tasks see: the current one, or the one that `mode` names."""
    return os.path.abspath(cwd if mode in ("", SHARED, PRIVATE) else os.path.join(cwd, os.path.expanduser(mode)))


def _entries(base: str, leave_out: Sequence[str]) -> list[str]:
    hidden = {os.path.realpath(path) for path in leave_out if path}
    try:
        return [name for name in os.listdir(base) if os.path.realpath(os.path.join(base, name)) not in hidden]
    except OSError as error:
        raise WorkdirError(f"{base}, the working directory, cannot be read: {error.strerror}") from None


def _fill(base: str, names: Sequence[str], folders: Sequence[str]) -> None:
    """The first directory gets symbolic links, the others hard links to these.

    That costs a tenth of the time and nothing on the disk: on ext4, each longer symbolic link takes a block.
    """
    first = folders[0]
    for folder in folders:
        make_folders(folder)
        for name in names:
            target = f"{folder}/{name}"
            try:
                if folder is first:
                    os.symlink(f"{base}/{name}", target)
                else:
                    os.link(f"{first}/{name}", target, follow_symlinks=False)
            except FileExistsError:
                continue  # prepared before
            except OSError:
                if folder is first:
                    raise
                os.symlink(f"{base}/{name}", target)  # a file system without such links
