"""Uploaded code is unpacked by a process of its own, at the end of everybody's line.

Hundreds of megabytes take seconds of a processor. In a thread of the server they would hold up all who need another thread,
and all others, too, since threads take turns.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

from ..data.job_user import become
from ..data.tar import BadArchive
from ..data.unpacking import Amount, Limits, TooLarge, unpack_below
from ..runtime import rights
from ..runtime.processes import end_with_parent
from .errors import BadRequest, Unavailable

NICENESS = 10
_START = "import sys; sys.path.insert(0, sys.argv[1]); from pailot.jobserver.unpack_process import main; main(sys.argv[2])"


async def unpack_apart(archive: str, target: str, limits: Limits, run_as: str = "") -> Amount:
    """Unpack an archive into an empty folder; TooLarge or BadRequest where that is refused, and then nothing is there.

    `run_as` is the Unix user who does it; without one it is ours. Whoever no longer waits for it, ends it.
    """
    order = {"archive": archive, "target": target, "limits": [limits.bytes, limits.places], "user": run_as, "parent": os.getpid()}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", _START, _package(), json.dumps(order)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.defpath},
        cwd="/",
    )
    try:
        told, problems = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    try:
        answer = json.loads(told)
    except ValueError:
        last = problems.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise Unavailable(
            f"the archive could not be unpacked: {last or f'its process ended with {process.returncode}'}"
        ) from None
    if "refused" in answer:
        raise TooLarge(answer["refused"]) if answer["large"] else BadRequest(answer["refused"])
    if "problem" in answer:
        raise Unavailable(f"the archive could not be unpacked: {answer['problem']}")
    return Amount(*answer["done"])


def main(words: str) -> None:
    """The process: does as it is told and says what came of it."""
    order = json.loads(words)
    end_with_parent(signal.SIGKILL, order["parent"])
    os.nice(NICENESS)
    answer: dict[str, object]
    try:
        with open(order["archive"], "rb") as stream:
            folder = os.open(order["target"], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            if order["user"]:
                _be(order["user"], folder)
            amount = unpack_below(stream, folder, Limits(*order["limits"]))
        answer = {"done": [amount.bytes, amount.places]}
    except BadArchive as error:
        answer = {"refused": str(error), "large": isinstance(error, TooLarge)}
    except OSError as error:
        answer = {"problem": error.strerror or str(error)}
    sys.stdout.write(json.dumps(answer))


def _be(user: str, folder: int) -> None:
    """Give a folder to a Unix user and be that one for good: what they can reach by name no longer matters, both are open."""
    import bz2  # noqa: F401  # these are loaded while our Python can be read
    import lzma  # noqa: F401
    import zlib  # noqa: F401

    rights.give_open(folder, rights.unix_user(user))
    become(user)
    os.umask(0o022)


def _package() -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
