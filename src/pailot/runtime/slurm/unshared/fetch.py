"""Beside the driver, as a step of its job: shows the attempt's folder to the login node, and hands its orders to the driver."""

from __future__ import annotations

import os
import signal

from ....runfolder import layout
from ....runfolder.atomic_json import append_line, read_lines, read_record, write_record
from ...folder_copy.sender import Sender

TYPE_CHECKING = False


def main(words: list[str]) -> int:
    """The whole showing, as a program; `words` name the driver's folder."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # where Slurm ends the job, the last words of its tasks are still to come
    root = words[0]
    folder = os.path.join(root, "attempt")

    def is_over() -> bool:
        return any(each["event"] == "result" for each in read_lines(os.path.join(folder, layout.DRIVER_EVENTS)))

    def take_order(order: dict[str, object]) -> None:
        append_line(os.path.join(folder, layout.DRIVER_ORDERS), order)
        _wake_driver(root)

    try:
        arrived = Sender(folder, is_over, take_order).run()
    except BrokenPipeError:
        arrived = False
    if not arrived:
        return 1
    write_record(os.path.join(root, "fetched.json"), {"arrived": True}, durable=False)
    _wake_driver(root)
    return 0


def _wake_driver(root: str) -> None:
    record = read_record(os.path.join(root, "driver.json"))
    if record is not None:
        try:
            os.kill(record["pid"], signal.SIGUSR1)
        except ProcessLookupError:
            pass  # it has ended
