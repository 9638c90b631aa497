"""Remove a folder with all that is in it, whichever user has filled it and however deep it is.

`shutil.rmtree` calls itself for each folder on the way and keeps a descriptor open for each, so that a task that makes a
thousand folders one below the other leaves something that cannot be removed, and its error stops the caller.
"""

from __future__ import annotations

import os

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Level:
    """A folder on the way down to where we are."""

    def __init__(self, name: str, descriptor: int, problems: list[OSError]) -> None:
        self.name = name
        found = os.fstat(descriptor)
        self.identity = found.st_dev, found.st_ino
        self.folders = _clear(descriptor, problems)
        """What is still to be removed of it: everything else has gone."""


def remove_tree(path: str, *, ignore_errors: bool = False) -> None:
    """Remove a folder; follows no link, not even one that comes to stand there meanwhile.

    What cannot be removed stays, and the first reason is raised when the rest has gone; with `ignore_errors` nothing is.
    """
    problems: list[OSError] = []
    try:
        parent, name = os.path.split(path.rstrip("/"))
        descriptor = os.open(path.rstrip("/"), _FOLDER)
    except OSError as error:
        problems.append(error)
    else:
        _empty(descriptor, problems)
        try:
            above = os.open(parent or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.rmdir(name, dir_fd=above)
            finally:
                os.close(above)
        except OSError as error:
            problems.append(error)
    if problems and not ignore_errors:
        raise problems[0]


def empty_folder(descriptor: int) -> None:
    """Remove all that is in an open folder; what cannot be removed stays."""
    _empty(os.dup(descriptor), [])


def _empty(here: int, problems: list[OSError]) -> None:
    """The same, without calling itself and with two descriptors at most; closes the one that is given."""
    try:
        levels = [_Level("", here, problems)]
        while True:
            level = levels[-1]
            if level.folders:
                name = level.folders.pop()
                try:
                    below = os.open(name, _FOLDER, dir_fd=here)
                except OSError as error:
                    _note(error, problems)
                    continue
                os.close(here)
                here = below
                levels.append(_Level(name, here, problems))
            elif len(levels) == 1:
                return
            else:
                levels.pop()
                above = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
                os.close(here)
                here = above
                found = os.fstat(here)
                if (found.st_dev, found.st_ino) != levels[-1].identity:
                    raise OSError(f"a folder was moved while it was removed: {level.name}")
                try:
                    os.rmdir(level.name, dir_fd=here)
                except OSError as error:
                    _note(error, problems)
    except OSError as error:
        problems.append(error)
    finally:
        os.close(here)


def _clear(descriptor: int, problems: list[OSError]) -> list[str]:
    """Remove what is no folder; returns the names of the folders."""
    folders: list[str] = []
    try:
        with os.scandir(descriptor) as found:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    except OSError as error:
        problems.append(error)
        return folders
    for name, is_folder in entries:
        if is_folder:
            folders.append(name)
            continue
        try:
            os.unlink(name, dir_fd=descriptor)
        except OSError as error:
            _note(error, problems)
    return folders


def _note(error: OSError, problems: list[OSError]) -> None:
    if not isinstance(error, FileNotFoundError):  # another process was quicker
        problems.append(error)
