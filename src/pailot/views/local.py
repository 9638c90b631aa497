"""Runs of this machine, as their folders tell."""

from __future__ import annotations

import os
import time

from ..errors import NoSuchRun, PailotError
from ..runfolder import journal, layout, logs
from ..runfolder.logs import Reader
from ..settings import Settings, current_user
from ..userruns import queries, reattach, settle, task_usage
from ..userruns.run_folder import JobFolder
from .base import View, Why, attempts_wanted, no_attempt, settled, tasks_in
from .log_pieces import Piece

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..protocol import Job
    from ..protocol.overrides import Override
    from ..runfolder.log_index import LogIndex
    from ..runfolder.log_search import Hit, SearchEnd, Wanted
    from ..store.index import JobRow
    from ..userruns.inotify import Watch
    from .base import Which
    from .cancellation import Quit
    from .log_starts import LogText

ASK_SECONDS = 5.0
"""How often a cluster is asked about a run without a driver."""
MOST_ROWS = 1_000_000
MOST_LINES = 1 << 60
"""More than a log can have: the latest attempt of each task, whole."""
NAMES = 200
"""How many runs are offered when the Tab key is pressed."""


class LocalView(View):
    """A run of this machine: everything is read from its folder."""

    LOOK_SECONDS = 1.0  # how soon a driver that was killed is noticed; all else is told by the kernel

    def __init__(self, run_id: str, name: str, folder: str, row: JobRow | None = None) -> None:
        """`row` is what the index says of it, if that was looked up just now."""
        self.id, self.name, self.folder = run_id, name, JobFolder(folder)
        self._fresh = row
        self._asked = -ASK_SECONDS
        self._times: dict[tuple[str, int, int, int, str], tuple[int, LogIndex | None]] = {}

    def record(self, attempt: int | None = None) -> dict[str, object]:
        return queries.describe(self._row(), self.folder, attempt=attempt)

    def summary(self) -> Mapping[str, Any]:
        row = self._row()
        return {**queries.listed(row), "reason": row.reason}

    def _row(self) -> JobRow:
        row, self._fresh = self._fresh, None
        if row is not None:
            return row
        with queries.open_index() as index:
            row = index.get(self.id)
            if row is None:
                raise NoSuchRun(f"the record of '{self.name}' ({self.id}) is gone")
            return queries.refresh(row, index)

    def note(self, event: journal.Event) -> None:
        """Add something that happened to it."""
        self.folder.note(event)

    def wait(self, timeout: float | None, quit: Quit) -> bool:
        end = None if timeout is None else time.monotonic() + timeout
        self._fresh = None
        if self.folder.verdict() is not None:
            return True
        watch = _watch(self.folder.path)
        try:
            while not self.is_over():
                left = self.LOOK_SECONDS if end is None else min(self.LOOK_SECONDS, end - time.monotonic())
                if left <= 0 or quit.is_set:
                    return False
                if self._is_ours_to_drive():
                    return queries.wait(self.folder, None if end is None else max(0.0, end - time.monotonic()))
                watch.wait(left, quit.reader)
            return True
        finally:
            watch.close()

    def _is_ours_to_drive(self) -> bool:
        """Whether the run waits for a driver, and this thread can be one: signals, which end that in time, reach no other."""
        if self.folder.is_driven() or not reattach.goes_on(self.folder):
            return False
        import threading

        return threading.current_thread() is threading.main_thread()

    def is_over(self) -> bool:
        if self.folder.verdict() is not None:
            return True
        if self.folder.is_driven():
            return False
        if reattach.goes_on(self.folder):
            if time.monotonic() < self._asked + ASK_SECONDS:
                return False
            self._asked = time.monotonic()
        return settle.recover(self.folder) is not None

    def journal(self) -> list[dict[str, object]]:
        return [event.to_json() for event in self.folder.events()]

    def events(self, quit: Quit) -> Iterator[Mapping[str, Any]]:
        tail = journal.Tail.of_run(self.folder.path)
        watch = _watch(self.folder.path)
        try:
            while not quit.is_set:
                over = self.is_over()
                found = tail.events()
                yield from (each.to_json() for each in found)
                if any(each.kind == journal.ENDED for each in found) or (over and not self.folder.is_driven()):
                    return
                watch.wait(self.LOOK_SECONDS, quit.reader)
        finally:
            watch.close()

    def pieces(self, which: Which, follow: bool, quit: Quit, record: Mapping[str, Any] | None = None) -> Iterator[Piece]:
        roles = self.folder.plan().get("taskRoles", {})
        if not roles:
            kept = f"their logs are below {self.folder.file(layout.ATTEMPTS)}"
            raise PailotError(f"{self.folder.file(layout.PLAN)} is damaged or missing, so that its tasks are not known; {kept}")
        latest = max(0, self.folder.attempts() - 1)
        tasks = tasks_in({name: range(node["instances"]) for name, node in roles.items()}, latest, which, self.name)
        return self._pieces(tasks, settled(which, latest, follow), follow, quit)

    def _pieces(self, tasks: list[tuple[str, int]], which: Which, follow: bool, quit: Quit) -> Iterator[Piece]:
        attempt = which.since if which.attempt is None else which.attempt
        readers: dict[tuple[str, int, int], Reader] = {}
        if follow and which.not_before is not None and which.tail is None:
            which = which.replace(tail=MOST_LINES)
        first, from_first = True, which.replace(tail=None, not_before=None)
        watch = _watch(self.folder.path, self.folder.file(layout.ATTEMPTS)) if follow else None
        found = which.task_attempt is None
        try:
            while True:
                over = watch is None or self.is_over()  # looked at first: what is read below is then all there is
                last = over or self.folder.attempts() - 1 > attempt
                for role, index in tasks:
                    found |= yield from self._new_pieces(attempt, role, index, which if first else from_first, readers, watch)
                first = False
                if last and self.folder.attempts() - 1 > attempt and which.attempt is None:
                    attempt += 1
                    readers.clear()
                    continue
                if last and not found:
                    raise no_attempt(which, tasks, self.name)
                if last or watch is None or quit.is_set:
                    return
                watch.wait(self.LOOK_SECONDS, quit.reader)
        finally:
            if watch is not None:
                watch.close()

    def _new_pieces(
        self,
        attempt: int,
        role: str,
        index: int,
        which: Which,
        readers: dict[tuple[str, int, int], Reader],
        watch: Watch | None,
    ) -> Generator[Piece, None, bool]:
        """What is new in the logs of a task; returns whether any of its attempts is wanted."""
        task = self.folder.task(attempt, role, index)
        if watch is not None:
            tasks = os.path.dirname(task)
            for folder in (os.path.dirname(tasks), tasks, task, os.path.join(task, layout.ATTEMPTS)):
                watch.add(folder)
        wanted = attempts_wanted(which, queries.task_attempts(self.folder, attempt, role, index))
        known = [number for number in wanted if (role, index, number) in readers]
        wanted = [number for number in wanted if not known or number >= known[0]]  # what was left out at first stays out
        for number in wanted:
            folder = layout.task_attempt_folder(task, number)
            if watch is not None:
                watch.add(folder)
            log = readers.get((role, index, number))
            if log is None:
                log = readers[role, index, number] = Reader(folder, which.stream)
                if which.tail is not None or which.not_before is not None:
                    log.offset = _text(folder, which.stream).start(which.tail, which.not_before)
            while True:
                data, missing = log.read()
                if data or missing:
                    yield Piece(role, index, attempt, number, data, missing, end=log.offset)
                if not data:
                    break
        return bool(wanted)

    def times(self, piece: Piece, stream: str) -> LogIndex | None:
        from ..runfolder import log_index

        where = (piece.role, piece.index, piece.attempt, piece.task_attempt, stream)
        known = self._times.get(where)
        if known is None or known[0] < piece.end:  # of an ended log once, of one that grows for each piece
            folder = layout.task_attempt_folder(self.folder.task(piece.attempt, piece.role, piece.index), piece.task_attempt)
            known = self._times[where] = logs.size(folder, stream), log_index.read(folder, stream)
        return known[1]

    def usage(self) -> list[dict[str, Any]]:
        return task_usage.of_tasks(self.folder, self.folder.plan(), max(0, self.folder.attempts() - 1))

    def search(self, wanted: Wanted, limit: int) -> Iterator[Hit | SearchEnd]:
        from ..runfolder import log_search

        try:
            steps = log_search.search(self.folder.path, log_search.roles_of(self.folder.plan()), wanted)
        except log_search.BadPattern as error:
            raise PailotError(str(error)) from None
        count = 0
        for step in steps:
            if isinstance(step, log_search.Hit):
                if count == limit:
                    yield log_search.SearchEnd(count, "limit")
                    return
                count += 1
                yield step
        yield log_search.SearchEnd(count)

    def save_logs(self, write: Callable[[bytes], object], which: Which) -> None:
        from ..runfolder import log_archive, log_search

        roles = log_search.roles_of(self.folder.plan())
        title = f"{current_user()}~{self.name}"
        for piece in log_archive.archive(self.folder.path, roles, title, log_archive.whole(which.stream, which.role)):
            write(piece)

    def why(self) -> Why:
        row = self._row()
        return Why(row.name, row.state, tuple(queries.explain(row, self.folder)))

    def stop(self, now: bool) -> None:
        if self.folder.verdict() is None:
            self._fresh = None
            grace = (self.folder.plan().get("options") or {}).get("graceSeconds", 30)
            reattach.ask_to_stop(self.folder, grace=grace, now=now)

    def rerun(self, name: str | None = None, secrets: Mapping[str, str] | None = None) -> LocalView:
        from ..loading import changes_from, plan
        from ..userruns.launch import prepare
        from ..userruns.supervisor import supervise

        before = self.folder.job()
        if before is None:
            raise PailotError(f"{self.folder.file(layout.JOB)} is damaged: it is not known how '{self.name}' was run")
        job = self.job_again(changes_from(None, secrets, name, None, None))
        how = {"cwd": before.cwd, "work_dir": before.work_dir, "sandbox": before.sandbox, "labels": before.labels}
        made = prepare(job, plan(job), self.file(), engine=before.engine, detached=True, **how)  # type: ignore[arg-type]  # by name
        supervise(made)
        return LocalView(made.id, made.plan.name, made.folder.path)

    def job_again(self, changes: list[Override], *, lenient: bool = False, library: Iterable[str] = ()) -> Job:
        """The job as it can be run once more: with the secrets that were kept, but for those that are given now."""
        from ..loading import read_job
        from ..userruns.masked_job_file import kept_for

        given = [str(change.path[1]) for change in changes if change.path[0] == "secrets" and len(change.path) > 1]
        kept = kept_for(Settings().home, self.folder).changes(given)
        return read_job(self.file(), self.folder.file(layout.JOB_FILE), [*kept, *changes], lenient=lenient, library=library)

    def delete(self) -> None:
        from ..userruns.retention import remove

        if not self.is_over():
            raise PailotError(f"'{self.name}' is still running; stop it first")
        with queries.open_index() as index:
            row = index.get(self.id)
        if row is not None:
            remove([row])

    def file(self) -> str:
        try:
            return self.folder.read_text(layout.JOB_FILE)
        except UnicodeDecodeError:
            raise PailotError(f"{self.folder.file(layout.JOB_FILE)} is damaged: it cannot be run again from there") from None


class LocalRuns:
    """The runs of this machine and this user."""

    connections = None

    def find(self, name: str) -> LocalView:
        """A run by id, `user~name` or name (then the latest); raises NoSuchRun."""
        row, folder = queries.find(name, current_user())
        return LocalView(row.id, row.name, folder.path, row)

    def names(self) -> list[str]:
        """The names of the latest runs, newest first, as the index has them: quick, and nothing is brought up to date."""
        with queries.open_index() as index:
            return [row.name for row in index.page(limit=NAMES)]

    def instances(self, name: str) -> dict[str, int]:
        """The roles of a run and how many tasks each has; none where there is no such run."""
        with queries.open_index() as index:
            row = index.resolve(name, current_user())
        roles = JobFolder(row.folder).plan().get("taskRoles", {}) if row is not None else {}
        return {role: node["instances"] for role, node in roles.items()}

    def rows(self, states: Sequence[str], *, every: bool, everyone: bool) -> list[dict[str, object]]:
        """What `ps --json` prints, newest first: the latest ones, or every one; all of them are this user's."""
        index = queries.open_index()
        for row in index.unfinished():
            queries.refresh(row, index)
        rows = [queries.refresh(row, index) for row in index.page(limit=MOST_ROWS if every or states else 50)]
        return [queries.listed(row, _held(row)) for row in rows if not states or row.state in states]

    def search(
        self, states: Sequence[str] = (), keyword: str = "", labels: Mapping[str, str] | None = None, limit: int | None = None
    ) -> Iterator[LocalView]:
        """Runs, newest first: in one of these states, with this text in the name, with these labels."""
        wanted = dict(labels or {})
        with queries.open_index() as index:
            found, before = 0, None
            while limit is None or found < limit:
                page = index.page((), keyword, None, 200, before)
                if not page:
                    return
                before = page[-1].id
                for row in page:
                    row = queries.refresh(row, index) if states else row
                    if (states and row.state not in states) or not wanted.items() <= (row.labels or {}).items():
                        continue
                    yield LocalView(row.id, row.name, row.folder)
                    found += 1
                    if found == limit:
                        return


def _text(folder: str, stream: str) -> LogText:
    from ..runfolder import log_index
    from .log_starts import LogText

    return LogText(
        logs.begin(folder, stream),
        logs.size(folder, stream),
        lambda offset, size: logs.read(folder, stream, offset, size)[0],
        lambda: log_index.read(folder, stream),
    )


def _held(row: JobRow) -> int:
    return queries.held_tasks(JobFolder(row.folder)) if row.ended is None else 0


def _watch(*folders: str) -> Watch:
    from ..userruns.inotify import Watch

    made = Watch()
    for folder in folders:
        made.add(folder)
    return made
