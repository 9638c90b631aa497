"""How far something is that moves bytes: one count, and one bar for every place where progress is shown.

On a terminal the bar is a line that is drawn again, in a notebook a cell's output, in a log file a line now and then. Work in
another process sends its progress by `to_dict`, and the process that shows it makes a bar of that.
"""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module

from .printable import Styled, printable
from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, Self

WIDTH = 16
"""Of a bar: a line with a name, sizes and times fits into 80 columns."""
TELL_SECONDS = 0.25
"""How often a count is told at most."""
LINE_SECONDS = 10.0
"""How often there is a new line at least, where none can be drawn again; sooner with each tenth."""
QUICK_SECONDS = 1.0
"""What takes less has no line before its last."""


class Progress(Value):
    """Bytes moved, bytes in all, and seconds passed."""

    what: str
    done: int
    total: int | None
    seconds: float
    ended: bool = False

    @property
    def rate(self) -> float:
        """Bytes in a second."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def share(self) -> float:
        """From 0 to 1; 0 where the size is not known."""
        return min(1.0, self.done / self.total) if self.total else float(self.ended)

    def line(self) -> str:
        """One line: what, a bar, how much, how fast, how long it will take."""
        what = printable(self.what)
        if self.ended:
            return f"{what}: {size(self.done)} in {duration(self.seconds)}, {size(self.rate)}/s"
        if self.total is None:
            return f"{what} · {size(self.done)} · {size(self.rate)}/s"
        parts = [f"{what} {bar(self.share)} {int(100 * self.share)} %", f"{size(self.done)} of {size(self.total)}"]
        if self.rate:
            left = max(0.0, self.total - self.done) / self.rate
            parts += [f"{size(self.rate)}/s", f"{duration(left)} left"]
        return " · ".join(parts)

    def html(self) -> str:
        """The same for a notebook."""
        from html import escape

        drawn = "" if self.total is None or self.ended else f"<progress value='{self.share:.3f}' max='1'></progress> "
        return f"<div>{drawn}{escape(self.line())}</div>"

    def to_dict(self) -> dict[str, object]:
        """As an event tells it."""
        ended = {"ended": True} if self.ended else {}
        return {"what": self.what, "done": self.done, "total": self.total, "seconds": round(self.seconds, 3), **ended}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Progress:
        return cls(told["what"], told["done"], told.get("total"), told["seconds"], bool(told.get("ended")))


class Meter:
    """Counts bytes, from any thread, and tells how far it is, a few times a second at most and at the end."""

    def __init__(
        self,
        what: str,
        total: int | None,
        tell: Callable[[Progress], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from threading import Lock

        self.what, self.total, self.done = what, total, 0
        self._tell, self._clock, self._lock = tell, clock, Lock()
        self._began = self._told = clock()

    def add(self, count: int) -> None:
        with self._lock:
            self.done += count
            now = self._clock()
            if now - self._told < TELL_SECONDS:
                return
            self._told = now
            self._tell(self._progress(now))

    def end(self) -> None:
        """It is done."""
        with self._lock:
            self._tell(self._progress(self._clock()).replace(ended=True))

    def _progress(self, now: float) -> Progress:
        return Progress(self.what, self.done, self.total, now - self._began)


class Pace:
    """Says when a new line is worth it: after a tenth, but not each second; after ten seconds; at the end of what took long."""

    def __init__(self) -> None:
        self._shown: Progress | None = None

    def is_due(self, now: Progress) -> bool:
        before = self._shown if self._shown is not None and self._shown.what == now.what else None
        if now.ended:
            self._shown = None
            return before is not None or now.seconds >= QUICK_SECONDS
        since = now.seconds - (before.seconds if before else 0.0)
        further = before is None or now.share - before.share >= 0.1
        if since < QUICK_SECONDS or not (further or since >= LINE_SECONDS):
            return False
        self._shown = now
        return True


class Display:
    """Where progress is shown; this one shows nothing."""

    def show(self, progress: Progress) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None) -> None:
        self.close()


class RedrawnLine:
    """One line of a terminal that is drawn again and again, and taken away at the end."""

    def __init__(self) -> None:
        self.is_drawn = False

    def draw(self, text: str) -> None:
        to_terminal(f"\r{text[: width() - 1]}\033[K")
        self.is_drawn = True

    def clear(self, last: str = "") -> None:
        """Take it away; `last` is a line that stays in its place."""
        if last or self.is_drawn:
            to_terminal(f"\r{last}\033[K" + ("\n" if last else ""))
            self.is_drawn = False


class Terminal(Display):
    """One line that is drawn again; what took long leaves its last line."""

    def __init__(self) -> None:
        self._pace, self._line = Pace(), RedrawnLine()

    def show(self, progress: Progress) -> None:
        last = self._pace.is_due(progress) and progress.ended
        if progress.ended:
            self._line.clear(f"pailot: {progress.line()}" if last else "")
        else:
            self._line.draw(progress.line())

    def close(self) -> None:
        self._line.clear()


class Notebook(Display):
    """The output of a cell, drawn again."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, progress: Progress) -> None:
        if self._handle is None:
            self._handle = display_html(progress.html())
        else:
            self._handle.update(as_html(progress.html()))


class Lines(Display):
    """A line now and then, for a log file."""

    def __init__(self) -> None:
        self._pace = Pace()

    def show(self, progress: Progress) -> None:
        if self._pace.is_due(progress):
            to_terminal(f"pailot: {progress.line()}\n")


def display(*, quiet: bool = False) -> Display:
    """For the place where this process shows progress; none, if quiet."""
    if quiet or sys.stderr is None:
        return Display()
    return Notebook() if in_notebook() else Terminal() if is_terminal() else Lines()


# Words and figures


def bar(share: float) -> str:
    """A bar of fixed width."""
    filled = int(WIDTH * min(1.0, max(0.0, share)))
    return "█" * filled + "░" * (WIDTH - filled)


def size(count: float) -> str:
    """A number of bytes in a unit that people read."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 999.5 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def duration(seconds: float) -> str:
    """A number of seconds as hours, minutes and seconds."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


# Where progress is shown


def in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and "kernel" in str(getattr(shell, "config", {})).lower() + type(shell).__name__.lower().replace(
        "zmq", "kernel"
    )


def display_html(html: str) -> Any:
    """Show it below the cell; return what can update it."""
    return import_module("IPython.display").display(as_html(html), display_id=True)


def as_html(text: str) -> Any:
    return import_module("IPython.display").HTML(text)


def is_terminal() -> bool:
    try:
        return os.isatty(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):
        return False  # a notebook's stream, or none


def to_terminal(text: str) -> None:
    """Write what moves the cursor; whatever is in it of others has been made printable."""
    try:
        sys.stderr.write(Styled(text))
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # the terminal went away


def width() -> int:
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80
