"""A run of this machine, as its folder tells."""

from __future__ import annotations

import os
import time

from ..errors import PailotError, suggestion
from ..runfolder import journal, layout
from ..userruns.inotify import Watch
from ..userruns.run_folder import JobFolder
from .base import warn_of_gap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from .base import Line, Which
    from .cancellation import Quit


class LocalView:
    """A run of this machine: everything is read from its folder."""

    LOOK_SECONDS = 1.0  # how soon a driver that was killed is noticed; all else is told by the kernel

    def __init__(self, run_id: str, name: str, folder: str) -> None:
        self.id, self.name, self.folder = run_id, name, JobFolder(folder)

    def record(self) -> dict[str, Any]:
        from ..userruns.queries import NoSuchRun, describe, open_index, refresh

        with open_index() as index:
            row = index.get(self.id)
            if row is None:
                raise NoSuchRun(f"the record of '{self.name}' ({self.id}) is gone")
            found = describe(refresh(row, index), self.folder)
        found["labels"] = dict(row.labels or {})
        return {**found, **self._blamed()}

    def _blamed(self) -> dict[str, Any]:
        verdict = self.folder.verdict() or {}
        role, index = verdict.get("role"), verdict.get("index")
        if role is None:
            return {"task": None, "lastLines": []}
        ended = journal.end_of(self.folder.events(), role, index)
        return {"task": f"{role}:{index}", "lastLines": ended.last_lines if ended else []}

    def note(self, event: str, **details: Any) -> None:
        """Add something that happened to it."""
        self.folder.note(event, **details)

    def wait(self, timeout: float | None, quit: Quit) -> bool:
        end = None if timeout is None else time.monotonic() + timeout
        watch = Watch()
        watch.add(self.folder.path)
        try:
            while not self.is_over():
                left = self.LOOK_SECONDS if end is None else min(self.LOOK_SECONDS, end - time.monotonic())
                if left <= 0 or quit.is_set:
                    return False
                watch.wait(left, quit.reader)
            return True
        finally:
            watch.close()

    def is_over(self) -> bool:
        if self.folder.verdict() is not None:
            return True
        if self.folder.is_driven():
            return False
        from ..userruns.queries import recover

        return recover(self.folder) is not None

    def events(self, quit: Quit) -> Iterator[Mapping[str, Any]]:
        tail = journal.Tail.of_run(self.folder.path)
        watch = Watch()
        watch.add(self.folder.path)
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

    def lines(self, which: Which, follow: bool, quit: Quit) -> Iterator[Line]:
        roles, role, index = self.folder.plan().get("taskRoles", {}), which.role, which.index
        if role is not None and role not in roles:
            raise PailotError(f"'{self.name}' has no role '{role}'{suggestion(role, roles)}")
        tasks = [
            (name, number)
            for name, node in roles.items()
            for number in range(node["instances"])
            if role in (None, name) and index in (None, number)
        ]
        if not tasks:
            raise PailotError(f"'{self.name}' has no task {role or 'any'}:{index}")
        latest = max(0, self.folder.attempts() - 1)
        if which.attempt is not None and not 0 <= which.attempt <= latest:
            raise PailotError(f"'{self.name}' has no attempt {which.attempt}: it has 0 to {latest}")
        if which.task_attempt is not None or not follow:
            which = which.replace(attempt=latest if which.attempt is None else which.attempt)
        return self._lines(tasks, which, follow, quit)

    def _lines(self, tasks: list[tuple[str, int]], which: Which, follow: bool, quit: Quit) -> Iterator[Line]:
        attempt = which.attempt or 0
        logs: dict[tuple[str, int, int], _Log] = {}
        watch = Watch()
        watch.add(self.folder.path)
        watch.add(self.folder.file(layout.ATTEMPTS))
        try:
            while True:
                over = not follow or self.is_over()  # looked at first: what is read below is then all there is
                last = over or self.folder.attempts() - 1 > attempt
                for role, index in tasks:
                    yield from self._new_lines(attempt, role, index, which, logs, watch, last)
                if last and self.folder.attempts() - 1 > attempt and which.attempt is None:
                    attempt += 1
                    logs.clear()
                    continue
                if last or quit.is_set:
                    return
                watch.wait(self.LOOK_SECONDS, quit.reader)
        finally:
            watch.close()

    def _new_lines(
        self,
        attempt: int,
        role: str,
        index: int,
        which: Which,
        logs: dict[tuple[str, int, int], _Log],
        watch: Watch,
        last: bool,
    ) -> Iterator[Line]:
        from ..userruns.queries import task_attempts

        task = self.folder.task(attempt, role, index)
        for parent in (os.path.dirname(os.path.dirname(task)), os.path.dirname(task), task, os.path.join(task, layout.ATTEMPTS)):
            watch.add(parent)
        count = task_attempts(self.folder, attempt, role, index)
        if which.task_attempt is not None and last and not 0 <= which.task_attempt < count:
            raise PailotError(f"'{self.name}' has no attempt {which.task_attempt} of {role}:{index}")
        for number in range(count) if which.task_attempt is None else {which.task_attempt} & set(range(count)):
            folder = layout.task_attempt_folder(task, number)
            watch.add(folder)
            log = logs.setdefault((role, index, number), _Log(folder, which.stream))
            for text in log.new(f"{role}:{index}", last=last):
                yield role, index, text

    def stop(self, now: bool) -> None:
        if self.folder.verdict() is None:
            grace = (self.folder.plan().get("options") or {}).get("graceSeconds", 30)
            self.folder.ask_to_stop(grace=grace, now=now)

    def delete(self) -> None:
        from ..userruns.queries import open_index
        from ..userruns.retention import remove

        if not self.is_over():
            raise PailotError(f"'{self.name}' is still running; stop it first")
        with open_index() as index:
            row = index.get(self.id)
        if row is not None:
            remove([row])

    def source(self) -> str:
        return self.folder.read_text(layout.JOB_FILE)


class _Log:
    """One log file and how far it was read."""

    def __init__(self, folder: str, stream: str) -> None:
        from ..runfolder.logs import Reader

        self._log, self.partial = Reader(folder, stream), b""

    def new(self, task: str, *, last: bool) -> Iterator[str]:
        while True:
            data, missing = self._log.read()
            if missing:
                warn_of_gap(task, missing)
            if not data:
                break
            *lines, self.partial = (self.partial + data).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace")
        if last and self.partial:
            rest, self.partial = self.partial, b""
            yield rest.decode(errors="replace")
