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
    from collections.abc import Callable, Mapping
    from typing import Any

LARGEST_PIECE = 64 << 20
"""No record and no piece of a log is larger; what says that it is comes from no sender of ours."""
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

        def say(data: bytes) -> None:
            while data:
                data = data[os.write(writer, data) :]

        while True:
            ready, _, _ = select.select([reader], [], [], LOOK_SECONDS)
            if ready:
                data = os.read(reader, 1 << 18)
                if not data:
                    return
                self.take(data, say)
            if self.began and not self.arrived:
                orders = read_lines(os.path.join(self.folder, layout.DRIVER_ORDERS))
                for order in orders[self._ordered :]:
                    say(_line({"order": order}))
                self._ordered = len(orders)

    def take(self, data: bytes, say: Callable[[bytes], None]) -> list[str]:
        """Put what came where it belongs, and `say` what the other side has to know; returns the paths that have grown."""
        grown: list[str] = []
        self._heard += data
        if not self.began:
            _, begin, rest = self._heard.partition(BEGIN)
            if not begin:
                return grown
            self.began, self._heard = True, rest
            say(_line({"have": self._have()}))
        while True:
            if self._wanted is None:
                line, newline, rest = self._heard.partition(b"\n")
                if not newline:
                    return grown
                self._heard, self._wanted = rest, json.loads(line)
            size = int(self._wanted.get("size", 0))
            if size > LARGEST_PIECE:
                raise ValueError(f"{self._wanted.get('path')} is larger than anything that is brought")
            if len(self._heard) < size:
                return grown
            piece, self._heard = self._heard[:size], self._heard[size:]
            if "over" in self._wanted:
                self.arrived = True
                say(_line({"arrived": True}))
            else:
                put(self.folder, self._wanted["path"], self._wanted["offset"], piece)
                grown.append(self._wanted["path"])
            self._wanted = None

    def _have(self) -> dict[str, int]:
        """How much of each growing file is here."""
        sizes = {path: os.path.getsize(os.path.join(self.folder, path)) for path in Tree(self.folder).files()}
        return {path: size for path, size in sizes.items() if size or path == EVENTS}


def _line(word: Mapping[str, object]) -> bytes:
    return json.dumps(word).encode("ascii") + b"\n"
