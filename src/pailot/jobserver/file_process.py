"""The process that reads or writes the files of a task as the task's user: a line of JSON first, then what it reads."""

from __future__ import annotations

import json
import os
import signal
import sys

from ..data.job_user import become
from ..data.task_files import Files, NotThere
from ..errors import PailotError
from ..runtime.processes import end_with_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MODULE = "pailot.jobserver.file_process"
_PIECE_BYTES = 1 << 18


def main(descriptor: int) -> None:
    """Read the order, be who it says, and do it."""
    with open(descriptor, encoding="utf-8") as stream:
        order: dict[str, Any] = json.load(stream)
    import bz2  # noqa: F401  # loaded while our Python can be read
    import encodings.idna  # noqa: F401
    import lzma  # noqa: F401
    import tarfile  # noqa: F401
    import warnings  # noqa: F401
    import zlib  # noqa: F401

    if order["user"]:
        become(order["user"])
    os.umask(0o022)
    end_with_parent(signal.SIGKILL, order["parent"])  # who changes his user is no longer told
    try:
        _do(order)
    except PailotError as error:
        _say(error=str(error), missing=isinstance(error, NotThere))
    except BrokenPipeError:
        pass  # the caller does not wait any more
    except OSError as error:
        _say(error=f"{order['path'] or '.'}: {error.strerror}", missing=isinstance(error, FileNotFoundError))


def _do(order: Mapping[str, Any]) -> None:
    files = Files(order["base"], order["steps"], order["limit"])
    path = order["path"]
    if order["do"] == "describe":
        _say(**files.describe(path, order["mark"]))
    elif order["do"] == "read":
        stream, about = files.read(path, order["offset"])
        _say(**about)
        with stream:
            left = about["size"] - order["offset"]
            while left > 0 and (piece := stream.read(min(left, _PIECE_BYTES))):
                sys.stdout.buffer.write(piece)
                left -= len(piece)
    elif order["do"] == "pack":
        about = files.describe(path)
        if about["kind"] != "folder":
            raise PailotError(f"{path}: it is no folder")
        _say(**about)
        files.pack(path, sys.stdout.buffer)
    elif order["do"] == "write":
        named = {key: order[key] for key in ("mark", "offset", "size", "mode")}
        _say(done=files.write(path, sys.stdin.buffer, **named))
    elif order["do"] == "unpack":
        files.unpack(path, sys.stdin.buffer)
        _say(done=True)
    sys.stdout.flush()


def _say(**said: Any) -> None:
    sys.stdout.buffer.write(json.dumps(said).encode() + b"\n")
    sys.stdout.flush()
