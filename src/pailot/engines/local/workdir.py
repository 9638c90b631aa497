"""Where tasks work: one in the current directory, several in a directory each that shows it."""

from __future__ import annotations

import os

from ..base import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_ENTRIES = 1_000


def prepare(cwd: str, folders: Sequence[str], mode: str, leave_out: Sequence[str] = ()) -> list[str]:
    """The working directory of each task; `mode` is empty, 'shared', or a directory in place of the current one."""
    base = cwd if mode in ("", "shared") else os.path.abspath(os.path.join(cwd, mode))
    if not os.path.isdir(base):
        raise EngineError(f"--workdir: there is no directory '{mode}'")
    if len(folders) == 1 or mode == "shared":
        return [base] * len(folders)
    hidden = {os.path.realpath(path) for path in leave_out if path}
    entries = [entry for entry in sorted(os.listdir(base)) if os.path.realpath(os.path.join(base, entry)) not in hidden]
    if len(entries) > MAX_ENTRIES:
        raise EngineError(f"{base} has {len(entries)} entries, too many to show each task; use --workdir shared or another directory")
    for folder in folders:
        os.makedirs(folder)
        for entry in entries:
            os.symlink(os.path.join(base, entry), os.path.join(folder, entry))
    return list(folders)
