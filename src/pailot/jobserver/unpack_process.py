"""Uploaded code is unpacked by a process of its own, at the end of everybody's line.

Hundreds of megabytes take seconds of a processor. In a thread of the server they would hold up all who need another thread,
and all others, too, since threads take turns.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from ..data.tar import BadArchive
from ..data.unpacking import Amount, Limits, TooLarge, unpack
from ..runtime.processes import end_with_parent
from .errors import BadRequest, Unavailable

NICENESS = 10
_START = "import sys; sys.path.insert(0, sys.argv[1]); from pailot.jobserver.unpack_process import main; main(sys.argv[2])"


async def unpack_apart(archive: str, target: str, limits: Limits) -> Amount:
    """Unpack an archive into an empty folder; TooLarge or BadRequest where that is refused, and then nothing is there.

    Whoever no longer waits for it, ends it.
    """
    import asyncio

    order = {"archive": archive, "target": target, "limits": [limits.bytes, limits.places], "parent": os.getpid()}
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
        amount = unpack(order["archive"], order["target"], Limits(*order["limits"]))
        answer = {"done": [amount.bytes, amount.places]}
    except BadArchive as error:
        answer = {"refused": str(error), "large": isinstance(error, TooLarge)}
    except OSError as error:
        answer = {"problem": error.strerror or str(error)}
    sys.stdout.write(json.dumps(answer))


def _package() -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
