"""A program on a terminal, and what the screen shows: a pty, read by an emulator."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from fcntl import ioctl
from pathlib import Path

import pyte


class Screen:
    """A terminal of this width with a program on it."""

    def __init__(self, words: Sequence[str], cwd: Path, environment: Mapping[str, str], columns: int = 80) -> None:
        self.master, slave = pty.openpty()
        self.screen = pyte.Screen(columns, 24)
        self.stream = pyte.ByteStream(self.screen)
        self.data = b""
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        known = {"TERM": "xterm", **environment}
        self.process = subprocess.Popen(
            words, cwd=cwd, env=known, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)

    def resize(self, columns: int) -> None:
        ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.screen.resize(24, columns)
        self.process.send_signal(signal.SIGWINCH)

    @property
    def lines(self) -> list[str]:
        """What the screen shows, without empty lines."""
        return [line.rstrip() for line in self.screen.display if line.strip()]

    def colour_of(self, word: str) -> str:
        """The colour of the first place where a word stands."""
        row = next(number for number, line in enumerate(self.screen.display) if word in line)
        return str(self.screen.buffer[row][self.screen.display[row].index(word)].fg)

    def until(self, seen: Callable[[list[str]], bool], seconds: float = 60) -> list[str]:
        """Read on until the screen shows something; return its lines."""
        deadline = time.monotonic() + seconds
        while not seen(self.lines):
            assert time.monotonic() < deadline, self.lines
            if not self._read(deadline - time.monotonic()):
                assert seen(self.lines), self.lines
        return self.lines

    def end(self, status: int = 0) -> list[str]:
        """What the screen shows when the program has ended."""
        while self._read(60):
            pass
        os.close(self.master)
        assert self.process.wait() == status
        return self.lines

    def _read(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:  # the terminal's last user has gone
            return False
        self.data += data
        self.stream.feed(data)
        return bool(data)
