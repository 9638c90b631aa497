"""Standard streams as a command may find them: closed, full, or without a reader; and what it prints goes out spelled out.

What a job prints is written past these, as it is.
"""

from __future__ import annotations

import io
import os
import sys

from ..printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class StandardOutput(io.TextIOWrapper):
    """Standard output: a failure to write is remembered, and told at the end; the command goes on to its exit status.

    Where the reader is gone, an error cannot be shown. A command that follows something writes past this, and sees it.
    """

    failed: OSError | None = None

    def write(self, text: str) -> int:
        odd = text != "\n" and type(text) is str and not text.isprintable()  # `printable.Styled` is a kind of str
        shown = printable(text, keep="\n\t") if odd else text
        try:
            super().write(shown)
        except OSError as error:
            self._failed(error)
        return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        else:
            self.failed = error


class Errors(StandardOutput):
    """Standard error: where it cannot be written, that cannot be shown."""

    def _failed(self, error: OSError) -> None:
        self.failed = error


def prepare() -> None:
    """Open what is closed, so that no file of ours takes the number of a standard stream, and put ours in place."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115  # it stays open
    sys.stdout = sys.__stdout__ = _replaced(sys.stdout, 1, StandardOutput)  # type: ignore[misc]  # it is the program's own
    sys.stderr = sys.__stderr__ = _replaced(sys.stderr, 2, Errors)  # type: ignore[misc]  # likewise


def finish(status: int, *, about_a_job: bool) -> int:
    """The exit status, with everything written; that of a job stays whether or not it could be told."""
    sys.stdout.flush()
    failed = getattr(sys.stdout, "failed", None)
    if failed is None:
        return status
    print(f"pailot: standard output: {failed.strerror}", file=sys.stderr, flush=True)
    return status if about_a_job else status or 1


def _replaced(stream: Any, descriptor: int, kind: type[StandardOutput]) -> StandardOutput:
    options: dict[str, Any] = {"encoding": "utf-8", "line_buffering": descriptor == 2}
    if stream is None:  # it was closed when the interpreter started
        buffer: Any = open(descriptor, "wb", closefd=False)  # noqa: SIM115  # it stays open
    else:
        options |= {"encoding": stream.encoding, "line_buffering": stream.line_buffering, "write_through": stream.write_through}
        buffer = stream.detach()
    return kind(buffer, errors="backslashreplace", **options)
