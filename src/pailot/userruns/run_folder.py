"""The folder of one run: everything about it, readable by any process at any time.

job.json         what was asked for, and the format of this folder
job.yaml         the job file, secrets masked          plan.json   what was planned
secrets.sealed   the secrets, encrypted                journal     what happened, a JSON line each
lock             held by the driver while it lives     control     a pipe that wakes the driver
stop.json        that the run is to stop, and why      state.json  what it is doing
verdict.json     how it ended                          checkpoints one folder a task that survives retries
again.json       that another is to start it again (under a server), as what that counts, and with which attempt
attempts/N/      attempt.json, peers.json, started, stop.json, tasks/ROLE-INDEX/
tasks/…/         claim, final.json, work, attempts/K/: stdout stderr all exit.json environment *.sh
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import time

from ..lifecycle.states import SUCCEEDED
from ..runfolder import careful_files, journal, layout
from ..runfolder.atomic_json import (
    DISK_FULL,
    append_lines,
    free_reserve,
    is_full,
    keep_reserve,
    read_record,
    write_last_record,
    write_record,
)
from ..runfolder.masking import mask_text
from ..runfolder.record_shapes import sound
from ..runfolder.records import HandedOn, RunRecord, RunState, VerdictRecord
from ..runfolder.stop_reason import claim_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..lifecycle.completion import Verdict
    from ..runfolder.journal import Event
    from ..runfolder.records import Record

NOTED_TOGETHER = 200
"""An entry of a task's end holds the last lines of its log."""
_TYPES: Mapping[str, type[Record]] = {layout.JOB: RunRecord, layout.STATE: RunState, layout.VERDICT: VerdictRecord}


class JobFolder:
    """One run's folder."""

    def __init__(self, path: str, *, durable: bool = True, reserve: str = "") -> None:
        self.path = path
        self.reserve = reserve or path
        """The folder where space is kept for a full disk: that of the run itself, or one for all runs of a server."""
        self.durable = durable
        """Whether this folder is all there is, and must outlive a power cut; a server has its database, and a keeper."""
        self.hidden: Sequence[str] = ()
        """Texts that no reason written here may show: an error of another program may repeat an address or a command."""

    @classmethod
    def create(cls, path: str, job: RunRecord, source: str, plan: Mapping[str, Any]) -> JobFolder:
        """Make the folder; it is complete before anything is started."""
        import json

        careful_files.make_folders(path, exist_ok=False)
        os.mkfifo(os.path.join(path, layout.CONTROL), 0o600)
        folder = cls(path)
        folder.keep_reserve(path)
        folder.fill(job, source, json.dumps(plan))
        return folder

    def fill(self, job: RunRecord, source: str, plan: str) -> None:
        """Everything that is known before the start; `job.json` comes last, and says that the folder is complete."""
        careful_files.make_folders(self.file(layout.ATTEMPTS))
        careful_files.make_folders(self.file(layout.CHECKPOINTS))
        self._write(layout.JOB_FILE, source)
        self._write(layout.PLAN, plan)
        write_record(self.file(layout.JOB), job.to_json(), durable=False)  # the index is; a power cut ends the run

    def keep_reserve(self, folder: str) -> None:
        """Space for the last words about a run, in its own folder, unless it is kept elsewhere for all."""
        if self.reserve == self.path:
            keep_reserve(folder)

    def file(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    def attempt(self, number: int) -> str:
        return layout.attempt_folder(self.path, number)

    def task(self, attempt: int, role: str, index: int) -> str:
        return layout.task_folder(self.attempt(attempt), role, index)

    def record(self, name: str) -> dict[str, object] | None:
        """A record by its name, or None; without what in it cannot be believed."""
        return sound(name, read_record(self.file(name)))

    def damage(self) -> list[str]:
        """A line for each record that cannot be read, or that must be there and is not."""
        lines = []
        for name, needed in ((layout.JOB, True), (layout.PLAN, True), (layout.STATE, False), (layout.VERDICT, False)):
            kept = read_record(self.file(name))
            typed = _TYPES.get(name)
            if kept is None or (typed.is_damaged(kept) if typed else sound(name, kept) != kept):
                there = os.path.exists(self.file(name))
                if there or needed:
                    lines.append(f"{self.file(name)} is {'damaged' if there else 'missing'}: what it said is not known any more")
        return lines

    def job(self) -> RunRecord | None:
        """What was asked for; None if that is damaged, or not written yet."""
        return RunRecord.read(self.file(layout.JOB))

    def plan(self) -> dict[str, Any]:
        return self.record(layout.PLAN) or {}

    def verdict(self) -> VerdictRecord | None:
        return VerdictRecord.read(self.file(layout.VERDICT))

    def state(self) -> RunState:
        """What the run is doing, as far as that is known."""
        return RunState.of(self.path)

    def set_state(self, state: RunState) -> None:
        shown = state.replace(at=time.time(), reason=state.reason and self._masked(state.reason))
        _if_there_is_space(lambda: write_record(self.file(layout.STATE), shown.to_json(), durable=False))

    def mark_started(self, attempt: int) -> None:
        """All tasks of an attempt have begun."""
        started = os.path.join(self.attempt(attempt), layout.STARTED)
        _if_there_is_space(lambda: write_record(started, {"at": time.time()}, durable=False))

    def decide(self, verdict: VerdictRecord) -> None:
        """Write the verdict: on a full disk, too."""
        write_last_record(self.file(layout.VERDICT), verdict.to_json(), self.reserve, durable=self.durable)

    def conclude(
        self,
        verdict: Verdict,
        *,
        retries: Mapping[str, int],
        started: float | None,
        attempts: int | None = None,
        exit_status: int | None = None,
    ) -> VerdictRecord:
        """Write down how the run has ended, once and for all; returns what was written.

        Where not even the reserve is left, the record says so as `unwritten`: it is known to this process alone, and the next
        one that looks comes to its own.
        """
        record = VerdictRecord(
            state=verdict.state,
            reason=self._masked(verdict.reason),
            ended=time.time(),
            exit_code=0 if verdict.state == SUCCEEDED else verdict.exit_code,
            role=verdict.role,
            index=verdict.index,
            attempts=self.attempts() if attempts is None else attempts,
            retries=dict(retries),
            started=started,
            exit_status=exit_status,
        )
        try:
            self.decide(record)
        except OSError as error:
            if not is_full(error):
                raise
            self._mark_disk_full()
            return record.replace(unwritten=f"the end of {os.path.basename(self.path)} could not be written: {DISK_FULL}")
        self.note(journal.ended(verdict.state, verdict.reason))
        if self.reserve == self.path:
            for folder in (self.path, *(self.attempt(number) for number in range(self.attempts()))):
                free_reserve(folder)
        return record

    def hand_on(self, record: HandedOn) -> None:
        """Write down that our part is over without a verdict: the queue starts the run again."""
        masked = record.replace(reason=self._masked(record.reason or ""))
        write_last_record(self.file(layout.HANDED_ON), masked.to_json(), self.reserve, durable=self.durable)

    def note(self, event: Event) -> Event:
        """Write down that something happened; returns it as it was written, with masked texts."""
        return self.note_all((event,))[0]

    def note_all(self, events: Sequence[Event]) -> list[Event]:
        """The same for what was seen at one look, some hundred entries with each call of the system."""
        shown = [event.masked(self._masked) for event in events] if self.hidden else list(events)
        for start in range(0, len(shown), NOTED_TOGETHER):
            self._append(shown[start : start + NOTED_TOGETHER])
        return shown

    def _append(self, events: Sequence[Event]) -> None:
        _if_there_is_space(lambda: append_lines(self.file(layout.JOURNAL), [event.to_json() for event in events]))

    def _masked(self, reason: str) -> str:
        if not self.hidden:
            return reason

        return mask_text(reason, self.hidden)

    def events(self) -> list[Event]:
        return journal.read(self.path)

    def attempts(self) -> int:
        """How many attempts were begun."""
        return layout.begun_attempts(self.path)

    def mark_stop(self, *, grace: float, now: bool) -> None:
        """Leave word that the run is to stop."""
        try:
            claim_stop(self.path, "user", grace, from_reserve=False)
        except OSError as error:
            if not is_full(error):
                raise
            self._write(layout.STOP, "")  # that it is there says enough, and takes no space
        if now:
            self._write(layout.KILL, "")

    def tell_shims(self, *, now: bool) -> None:
        """Their driver is dead: they have been told to stop by that, and hear from us if it is to be at once."""
        attempt = self.attempt(self.attempts() - 1)
        if now:
            self._write(os.path.join(attempt, layout.KILL), "")
        for task in layout.begun_tasks(attempt):
            pid = holder(os.path.join(task, layout.CLAIM))
            if pid:
                os.kill(pid, signal.SIGTERM)

    def wake_driver(self) -> None:
        try:
            control = os.open(self.file(layout.CONTROL), os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return  # it has no driver
        try:
            if stat.S_ISFIFO(os.fstat(control).st_mode):
                os.write(control, b"!")
        except BlockingIOError:
            pass  # enough wake-up calls are waiting
        finally:
            os.close(control)

    def lock(self, *, wait: bool = False, shared: bool = False) -> int | None:
        """The driver's lock, or None while another process holds it; closing the descriptor gives it back."""
        descriptor = careful_files.open_own(self.file(layout.LOCK), os.O_RDWR)
        try:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def is_driven(self) -> bool:
        descriptor = self.lock(shared=True)
        if descriptor is None:
            return True
        os.close(descriptor)
        return False

    def _mark_disk_full(self) -> None:
        """An empty file takes no space: the next look knows why there is no verdict."""
        try:
            self._write(layout.DISK_FULL_MARK, "")
        except OSError:
            pass  # not even a name fits

    def _write(self, name: str, text: str) -> None:
        with os.fdopen(careful_files.open_own(self.file(name), os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as stream:
            stream.write(text)

    def read_text(self, name: str) -> str:
        """A text of the folder, the job file for instance."""
        return careful_files.read_regular(self.file(name)).decode("utf-8")


def _if_there_is_space(write: Callable[[], None]) -> None:
    """Write what is good to know; on a full disk it is left out, for the reserve is for the verdict alone."""
    try:
        write()
    except OSError as error:
        if not is_full(error):
            raise


def holder(claim: str) -> int | None:
    """The shim that holds a claim, or None if it is gone; the lock tells, so that a reused number is never meant."""
    try:
        descriptor = careful_files.open_regular(claim)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        told = os.read(descriptor, 32)
        return int(told) or None if told.isdigit() else None
    finally:
        os.close(descriptor)
    return None
