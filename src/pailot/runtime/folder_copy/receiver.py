"""Where the run was started: keeps a copy of the attempt's folder, and hands orders to the other side (see `sender`)."""

from __future__ import annotations

import json
import os
import select

from ...runfolder import layout
from ...runfolder.atomic_json import read_lines
from .sender import BEGIN
from .tree import EVENTS, Tree, put

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LOOK_SECONDS = 0.2
"""How long new orders may lie in the folder."""


class Receiver:
    """One connection to a sender; the next one goes on where this one was interrupted."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.began = self.arrived = False
        self._ordered = 0
        self._heard = b""
        self._wanted: Mapping[str, Any] | None = None

    def talk(self, writer: int, reader: int) -> None:
        """To the end of the connection; `arrived` says whether that was the end of everything."""
        while True:
            ready, _, _ = select.select([reader], [], [], LOOK_SECONDS)
            if ready:
                data = os.read(reader, 1 << 18)
                if not data:
                    return
                self._take(data, writer)
            if self.began and not self.arrived:
                orders = read_lines(os.path.join(self.folder, layout.DRIVER_ORDERS))
                for order in orders[self._ordered :]:
                    _say(writer, {"order": order})
                self._ordered = len(orders)

    def _take(self, data: bytes, writer: int) -> None:
        self._heard += data
        if not self.began:
            _, begin, rest = self._heard.partition(BEGIN)
            if not begin:
                return
            self.began, self._heard = True, rest
            _say(writer, {"have": self._have()})
        while True:
            if self._wanted is None:
                line, newline, rest = self._heard.partition(b"\n")
                if not newline:
                    return
                self._heard, self._wanted = rest, json.loads(line)
            size = int(self._wanted.get("size", 0))
            if len(self._heard) < size:
                return
            piece, self._heard = self._heard[:size], self._heard[size:]
            if "over" in self._wanted:
                self.arrived = True
                _say(writer, {"arrived": True})
            else:
                put(self.folder, self._wanted["path"], self._wanted["offset"], piece)
            self._wanted = None

    def _have(self) -> dict[str, int]:
        """How much of each growing file is here."""
        sizes = {path: os.path.getsize(os.path.join(self.folder, path)) for path in Tree(self.folder).files()}
        return {path: size for path, size in sizes.items() if size or path == EVENTS}


def _say(writer: int, word: Mapping[str, object]) -> None:
    data = json.dumps(word).encode("ascii") + b"\n"
    while data:
        data = data[os.write(writer, data) :]
