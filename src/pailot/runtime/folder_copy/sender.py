"""Where the tasks are: shows the attempt's folder to the other side, and takes its orders for the driver.

Out go frames: a line of JSON (path, offset, size), then that number of bytes. In come lines of JSON: what is there already, an
order for the driver, and finally that everything has arrived.
"""

from __future__ import annotations

import json
import os
import select

from .tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

BEGIN = b"pailot shows its folder\n"
"""What is printed before that is not ours: a prolog of the site may talk."""
SHORTEST_SECONDS, LONGEST_SECONDS = 0.05, 0.5
"""How long the folder is not looked at."""


class Sender:
    """One showing of one folder, to the end of the attempt or of the connection.

    `is_over` says that nothing more will be written; `take_order` is handed each order of the other side.
    """

    def __init__(
        self,
        folder: str,
        is_over: Callable[[], bool],
        take_order: Callable[[dict[str, object]], None],
        reader: int = 0,
        writer: int = 1,
    ) -> None:
        self.folder, self.is_over, self.take_order = folder, is_over, take_order
        self.reader, self.writer = reader, writer
        self.buffer = b""
        self.tree: Tree | None = None
        self.arrived = self.said_over = False

    def run(self) -> bool:
        """Whether everything has arrived."""
        self._send(BEGIN)
        pause = SHORTEST_SECONDS
        while not self.arrived:
            ready, _, _ = select.select([self.reader], [], [], pause)
            if ready and not self._hear():
                return False
            pause = SHORTEST_SECONDS if self._show() else min(pause * 1.3, LONGEST_SECONDS)
        return True

    def _show(self) -> bool:
        if self.tree is None or self.said_over:
            return False
        over = self.is_over()
        shown = False
        for path, offset, data in self.tree.news():
            self._frame({"path": path, "offset": offset, "size": len(data)}, data)
            shown = True
        if over:  # it was before we looked: nothing comes after it
            self.said_over = True
            self._frame({"over": True})
        return shown

    def _hear(self) -> bool:
        data = os.read(self.reader, 1 << 16)
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            word = json.loads(line)
            if "have" in word:
                self.tree = Tree(self.folder, word["have"])
            elif "order" in word:
                self.take_order(word["order"])
            else:
                self.arrived = True
        return bool(data)

    def _frame(self, head: dict[str, object], data: bytes = b"") -> None:
        self._send(json.dumps(head).encode("ascii") + b"\n" + data)

    def _send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.writer, data) :]
