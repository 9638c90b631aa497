"""What a person sees of a run: its logs as they come, a word on every retry, one status line on a terminal."""

from __future__ import annotations

import os
import select
import stat
import time

from ..printable import printable
from ..progress import Pace, Progress, to_terminal, width
from ..runfolder import journal, layout, logs
from ..userruns.driver import Watcher
from .terminal_lines import Label, has_colours, is_screen, replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..planning import Plan
    from ..runfolder.journal import Event
    from ..runfolder.records import VerdictRecord
    from ..userruns.run_folder import JobFolder

CHUNK = 1 << 16
_NEW_LINE = 10


class Live(Watcher):
    """Prints logs and events; a slow or closed terminal never holds up the run."""

    def __init__(self, folder: JobFolder, plan: Plan, *, quiet: bool = False, to_stderr: bool = False) -> None:
        self.folder, self.plan, self.quiet = folder, plan, quiet
        self.single = plan.task_count == 1
        self.out, self.err = (2, 2) if to_stderr else (1, 2)
        self.sources: dict[tuple[int, str, int, int, str], Source] = {}
        self.waiting: dict[int, list[bytes]] = {1: [], 2: []}
        self.outlets = {target: _without_blocking(target) for target in (1, 2)}
        self.closed: set[int] = set()
        self.ends: dict[tuple[int, str, int], int] = {}
        """The last attempt of each task that has ended."""
        self.screens = frozenset(target for target in (1, 2) if is_screen(target))
        self.line_is_open = False
        """Whether what stands last on the screen has no end yet: it is left alone."""
        self.status = StatusLine(plan) if 2 in self.screens and not quiet else None
        self.pace = Pace()

    def started(self, attempt: int, notes: list[str]) -> None:
        for note in notes:
            self._say(note)
        if self.status:
            self.status.begin()

    def happened(self, event: Event) -> None:
        if event.kind == journal.PROGRESS:
            self.moved(Progress.from_dict(event.details))
            return
        words = event_words(event, self.plan.name)
        if words and event.kind == journal.WAITING and not self.quiet:
            to_terminal(f"{self._new_line()}pailot: {printable(words)}\n")  # the driver is about to block
        elif words:
            self._say(words)
        if event.kind == journal.TASK_ENDED and event.task is not None and event.task_attempt is not None:
            self.ends[event.attempt, event.task[0], event.task[1]] = event.task_attempt
        if self.status:
            self.status.happened(event)

    def moved(self, progress: Progress) -> None:
        due = self.pace.is_due(progress)
        if self.status:
            self.status.moving = "" if progress.ended else progress.line()
            self.tick()
        if due and (progress.ended or not self.status):
            self._say(progress.line())

    def grown(self, attempt: int, role: str, index: int, task_attempt: int) -> None:
        for stream in (layout.STDOUT, layout.STDERR) if self.single else (layout.ALL,):
            key = (attempt, role, index, task_attempt, stream)
            source = self.sources.get(key)
            if source is None:
                path = layout.task_attempt_folder(self.folder.task(attempt, role, index), task_attempt)
                target = self.err if stream == layout.STDERR else self.out
                label = None if self.single else Label(role, index, tuple(self.plan.roles), colour=has_colours(target))
                source = self.sources[key] = Source(path, stream, label, target, on_screen=target in self.screens)
            source.behind = True

    def descriptors(self) -> Mapping[int, Callable[[], None]]:
        wanted = {source.target for source in self.sources.values() if source.behind}
        wanted |= {target for target, lines in self.waiting.items() if lines}
        ways: dict[int, Callable[[], None]] = {}
        for target in wanted - self.closed:
            ways[self.outlets[target]] = lambda target=target: self._serve(target)  # type: ignore[misc]  # bound early
        return ways

    def timeout(self) -> float | None:
        return 1.0 if self.status else None

    def tick(self) -> None:
        if self.status and not self.line_is_open and not self._busy():
            self.status.tick(self._unfinished_line())

    def _unfinished_line(self) -> str:
        """The line that a task of several is about to print, the last of those that were changed."""
        opened = [source for source in self.sources.values() if source.label and source.partial and source.target in self.screens]
        latest = max(opened, key=lambda source: source.changed, default=None)
        return latest.label.unfinished(latest.partial, width() - 1) if latest and latest.label else ""

    def _new_line(self) -> str:
        """What must be printed before a line of ours."""
        opened, self.line_is_open = self.line_is_open, False
        return "\n" if opened else ""

    def finished(self, verdict: VerdictRecord) -> None:
        """Everything that is left; the run is over, so this may take its time."""
        for attempt in range(self.folder.attempts()):
            self._catch_up(attempt)
        for target in (1, 2):
            while target not in self.closed and self._write_some(target, last=True):
                pass
        if self.status:
            self.status.clear()
        if not self.quiet or verdict.state != "SUCCEEDED":
            to_terminal(self._new_line())

    def _catch_up(self, attempt: int) -> None:
        """Logs that have grown without a sign since the last look."""
        for role in self.plan.roles.values():
            for index in range(role.instances):
                for number in self._attempts(attempt, role.name, index):
                    if not self._is_empty(attempt, role.name, index, number):
                        self.grown(attempt, role.name, index, number)

    def _attempts(self, attempt: int, role: str, index: int) -> Iterable[int]:
        last = self.ends.get((attempt, role, index))
        if last is not None:
            return range(last + 1)
        try:
            names = os.listdir(os.path.join(self.folder.task(attempt, role, index), layout.ATTEMPTS))
        except OSError:
            return ()  # it never began
        return sorted(int(name) for name in names)

    def _is_empty(self, attempt: int, role: str, index: int, number: int) -> bool:
        try:
            path = os.path.join(layout.task_attempt_folder(self.folder.task(attempt, role, index), number), layout.ALL)
            return os.stat(path).st_size == 0
        except OSError:
            return False  # not there, or being rotated: who reads it will see

    def _write_some(self, target: int, *, last: bool = False) -> bool:
        """Write a part of what waits for a descriptor; return whether there is more."""
        data = self._next(target, last=last)
        if data is None:
            return False
        if self.status:
            self.status.clear()
        try:
            count = os.write(self.outlets[target], data)
            if target in self.screens and count:
                self.line_is_open = data[count - 1] != _NEW_LINE
            data = data[count:]
        except BlockingIOError:
            pass  # its reader is slow; the rest waits
        except OSError:
            self.closed.add(target)  # the reader is gone; the run goes on
            return False
        if data:
            self.waiting[target].insert(0, data)
            if last:
                select.select([], [self.outlets[target]], [])
        return True

    def _serve(self, target: int) -> None:
        if not self._write_some(target):
            self.tick()

    def _next(self, target: int, *, last: bool) -> bytes | None:
        if self.waiting[target]:
            data = self.waiting[target].pop(0)
            ours = target in self.screens and data.startswith(b"pailot: ")
            return self._new_line().encode() + data if ours else data
        for key, source in list(self.sources.items()):
            if source.target == target and source.behind:
                data = source.read(last=last)
                missing = source.take_missing()
                if missing:
                    self.waiting[2].append(f"pailot: {logs.gap_words(f'{key[1]}:{key[2]}', missing)}\n".encode())
                if data:
                    return data
                if last:
                    del self.sources[key]
        return None

    def _say(self, words: str) -> None:
        if not self.quiet:
            self.waiting[2].append(f"pailot: {printable(words)}\n".encode())

    def _busy(self) -> bool:
        return any(source.behind for source in self.sources.values()) or any(self.waiting.values())


class Source:
    """One log file and how far it was shown."""

    def __init__(self, folder: str, stream: str, label: Label | None, target: int, *, on_screen: bool) -> None:
        self.label, self.target, self.on_screen = label, target, on_screen
        self.changed = 0.0
        self._log = logs.Reader(folder, stream)
        self.behind = True
        self.partial = b""
        self.missing = 0
        """How many bytes were rotated away since this number was last taken."""

    def take_missing(self) -> int:
        """The bytes that are missing before what was read last."""
        missing, self.missing = self.missing, 0
        return missing

    def read(self, *, last: bool) -> bytes:
        """The next piece to show, whole lines only where there is a prefix."""
        data, missing = self._log.read(CHUNK)
        self.missing += missing
        if not data:
            self.behind = False
            if last and self.partial:
                rest, self.partial = self.partial, b""
                return self._line(rest)
            return b""
        if self.label is None:
            return data
        self.changed = time.monotonic()
        lines = (self.partial + data).split(b"\n")
        self.partial = lines.pop()
        shown = b"".join(map(self._line, lines))
        return shown or self.read(last=last)

    def _line(self, line: bytes) -> bytes:
        assert self.label is not None
        return self.label.data + (replaced(line) if self.on_screen else line) + b"\n"


class StatusLine:
    """One line below the logs: roles, running, failed, retries, time. It is drawn again only when it says something else."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.began = time.monotonic()
        self.running = self._all()
        self.failed = self.retries = 0
        self.shown = ""
        self.moving = ""
        """How far an input or output is on its way, while it is."""
        self.colour = has_colours(2)
        self.stopping = False

    def begin(self) -> None:
        self.began = time.monotonic()

    def happened(self, event: Event) -> None:
        self.stopping = event.kind != journal.JOB_RETRY and (self.stopping or event.kind in (journal.STOPPING, journal.INTERRUPT))
        self.retries += event.kind in (journal.TASK_RETRY, journal.JOB_RETRY)
        if event.kind == journal.TASK_ENDED and event.task is not None:
            self.running[event.task[0]] -= 1
            self.failed += event.outcome == "failed"
        elif event.kind == journal.JOB_RETRY:
            self.running, self.failed = self._all(), 0

    def tick(self, unfinished: str = "") -> None:
        """Draw it, or in its place a line that a task has not finished yet."""
        text = unfinished or self.text()[: width() - 1]
        if text != self.shown:
            to_terminal(f"\r\033[2m{text}\033[0m\033[K" if self.colour and not unfinished else f"\r{text}\033[K")
            self.shown = text

    def text(self) -> str:
        """The whole of it, as wide as it is."""
        if self.moving:
            return self.moving
        roles = self.plan.roles.values()
        stopping = "stopping, " if self.stopping else ""
        parts = [self.plan.name, f"{stopping}{sum(self.running.values())} of {self.plan.task_count} running"]
        if len(roles) > 1:
            parts[1] += f" ({', '.join(f'{role.name} {self.running[role.name]}/{role.instances}' for role in roles)})"
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.retries:
            parts.append("1 retry" if self.retries == 1 else f"{self.retries} retries")
        parts.insert(1, f"{int(time.monotonic() - self.began)} s")
        return " · ".join(parts)

    def clear(self) -> None:
        if self.shown:
            to_terminal("\r\033[K")
            self.shown = ""

    def _all(self) -> dict[str, int]:
        return {role.name: role.instances for role in self.plan.roles.values()}


def event_words(event: Event, name: str) -> str:
    """What is worth saying of an event, in words; nothing for most."""
    if event.kind == journal.TASK_RETRY:
        return f"{event.named} {event.reason}; trying again ({event.attempt} of {event.retries_allowed}){_in(event)}"
    if event.kind == journal.JOB_RETRY:
        return f"{event.reason}; trying the job again: {event.why}{_in(event)}"
    if event.kind == journal.TASK_HELD:
        until = time.strftime("%H:%M:%S", time.localtime(event.until))
        way = f"pailot enter {name} {event.named.replace(':', ' ')}"
        return f"{event.named} {event.reason}; it is kept until {until}: {way}"
    if event.kind == journal.WAITING:
        return event.reason
    if event.kind == journal.INTERRUPT:
        return "stopping; once more to kill it now" if event.times == 1 else "killing it now"
    return ""


def _without_blocking(target: int) -> int:
    """A descriptor for the same pipe or terminal that never blocks us, without changing that of others."""
    try:
        if not (stat.S_ISFIFO(os.fstat(target).st_mode) or os.isatty(target)):
            return target  # a file takes what it is given
        return os.open(f"/proc/self/fd/{target}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return target


def _in(event: Event) -> str:
    return f" in {event.seconds:.1f} s" if event.seconds >= 0.05 else ""
