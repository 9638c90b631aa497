"""Processes beside the server that do something for a task's owner, with the owner's rights: a shell, or a copy of files.

A fork of the server itself would have its threads' locks and its keys. A new one is told what to do over a descriptor.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_START = "import sys; sys.path.insert(0, sys.argv[1]); from {module} import main; main(int(sys.argv[2]))"


async def start(module: str, order: Mapping[str, Any], **options: Any) -> asyncio.subprocess.Process:
    """A new Python whose function `main` in a module of ours is given a descriptor with the order in it."""
    told = os.memfd_create("order", os.MFD_CLOEXEC)
    try:
        data = memoryview(json.dumps({**order, "parent": os.getpid()}).encode())
        while data:
            data = data[os.write(told, data) :]
        os.lseek(told, 0, os.SEEK_SET)
        words = (sys.executable, "-P", "-c", _START.format(module=module), _package(), str(told))
        return await asyncio.create_subprocess_exec(*words, pass_fds=(told,), env={"PATH": os.defpath}, cwd="/", **options)
    finally:
        os.close(told)


def _package() -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
