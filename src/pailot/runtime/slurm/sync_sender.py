"""Beside the driver, as a step of its job: shows the attempt's folder to the login node, and hands its orders to the driver.

Out go frames: a line of JSON (path, offset, size), then so many bytes. In come lines of JSON: what is there already, an
order for the driver, and finally that everything has arrived.
"""

from __future__ import annotations

import json
import os
import select
import signal

from ...runfolder import layout
from ...runfolder.atomic_json import append_line, read_lines, read_record, write_record
from .folder_sync import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BEGIN = b"pailot shows its folder\n"
"""What is printed before that is not ours: a prolog of the site may talk."""
SHORTEST, LONGEST = 0.05, 0.5
"""How long the folder is not looked at."""


class Fetch:
    """One showing of one folder, to the end of the attempt or of the connection."""

    def __init__(self, root: str) -> None:
        self.root, self.folder = root, os.path.join(root, "attempt")
        self.buffer = b""
        self.tree: Tree | None = None
        self.arrived = self.said_over = False

    def run(self) -> int:
        self._send(BEGIN)
        pause = SHORTEST
        while not self.arrived:
            ready, _, _ = select.select([0], [], [], pause)
            if ready and not self._hear():
                return 1
            pause = SHORTEST if self._show() else min(pause * 1.3, LONGEST)
        write_record(os.path.join(self.root, "fetched.json"), {"arrived": True}, durable=False)
        self._wake_driver()
        return 0

    def _show(self) -> bool:
        if self.tree is None or self.said_over:
            return False
        over = any(each["event"] == "result" for each in read_lines(os.path.join(self.folder, layout.DRIVER_EVENTS)))
        shown = False
        for path, offset, data in self.tree.news():
            self._frame({"path": path, "offset": offset, "size": len(data)}, data)
            shown = True
        if over:  # it was before we looked: nothing comes after it
            self.said_over = True
            self._frame({"over": True})
        return shown

    def _hear(self) -> bool:
        data = os.read(0, 1 << 16)
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            word = json.loads(line)
            if "have" in word:
                self.tree = Tree(self.folder, word["have"])
            elif "order" in word:
                append_line(os.path.join(self.folder, layout.DRIVER_ORDERS), word["order"])
                self._wake_driver()
            else:
                self.arrived = True
        return bool(data)

    def _wake_driver(self) -> None:
        record = read_record(os.path.join(self.root, "driver.json"))
        if record is not None:
            try:
                os.kill(record["pid"], signal.SIGUSR1)
            except ProcessLookupError:
                pass  # it has ended

    def _frame(self, head: dict[str, Any], data: bytes = b"") -> None:
        self._send(json.dumps(head).encode("ascii") + b"\n" + data)

    @staticmethod
    def _send(data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]


def main(words: list[str]) -> int:
    """The whole showing, as a program; `words` name the driver's folder."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # where Slurm ends the job, the last words of its tasks are still to come
    try:
        return Fetch(words[0]).run()
    except BrokenPipeError:
        return 1
