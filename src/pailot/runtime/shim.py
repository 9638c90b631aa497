"""The shim: one small process per task that runs it, tries it again, writes its logs and how it ended.

It is forked, never executed anew. It is a subreaper in a session of its own, so that nothing its task starts can
outlive it; the pipe from the launcher tells it when that has died. Whatever it decides it writes down first.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import time

from .. import credentials
from ..lifecycle import exit_classes, retry
from ..lifecycle.waits import milliseconds
from ..runfolder import careful_files, journal, layout
from ..runfolder.atomic_json import claim_open, free_reserve, is_full, write_record
from ..runfolder.logs import tail
from ..runfolder.masking import mask_text, text_masker
from ..runfolder.records import CgroupRecord, StopRecord, TaskRecord
from ..runfolder.stop_reason import claim_stop
from . import cgroups, processes, script_reading
from .output import Output
from .shim_events import Teller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .task_spec import Task
    from .usage_sampling import Measured

LEFTOVER_SECONDS = 2.0
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)
"""Those that a shim, or Python, handles or ignores, and a task must get as they are by default."""
# Nobody but bash may read the script: what the commands read from is empty.
_FROM_INPUT = 'exec 9<&0 </dev/null; cd "$PAI_WORK_DIR" && exec bash /dev/fd/9'
REFERENCE = r"<% \$secrets\.[\s\S]+? %>"
"""What stands in a script for a secret."""
LAST_LINES = 10
LONGEST_REASON = 500
SAMPLE_SECONDS = 5.0
"""How often it is measured what the task uses (`usage_sampling`)."""
_NEVER = float("inf")
FOREIGN_SECONDS = 0.25
"""Who signals a whole tree of processes may reach us a little after the task."""
SUCCEEDED, FAILED, STOPPED = "succeeded", "failed", "stopped"
_found: dict[tuple[str, str], str] = {}


class Shim:
    def __init__(self, task: Task, channel: int, liveness: int) -> None:
        self.task = task
        self.liveness = liveness
        self.me = os.getpid()
        self.attempt = 0
        self.folder = ""
        self.pid = 0
        self.status: int | None = None
        self.usage_kb = 0
        self.ended_cpu_seconds = 0.0
        """Processor time of the processes of this attempt that were collected."""
        self.next_sample = _NEVER
        self.began = 0.0
        self.group: Any = None
        self.sampler: Any = None
        self.recorded: TaskRecord | None = None
        self.kept: frozenset[int] = frozenset()
        self.terminated = False
        self.reading: script_reading.Reading | None = None
        self.only_command: int | None = None
        """The line of the command of a script that has no other, and that bash reads as a file."""
        self.scripts_in_memory = False
        self.failed_at: dict[str, dict[str, object]] = {}
        """By script: the lines of the command that ended it, where that is known."""
        self.exports = -1
        self.exports_path = ""
        self.mark = ""
        self.wake = -1
        self.lost_launcher = False
        self.signalled = False
        self.poller = select.poll()
        self.teller = Teller(channel, task.role, task.index, self.poller)
        self.output = Output(task, self.poller, lambda: self.teller.grown(self.attempt))

    @property
    def broken(self) -> str:
        """Why nothing of the task can be written down any more."""
        return self.output.broken

    def run(self) -> None:
        os.setsid()
        processes.become_subreaper()
        self._listen()
        lock = claim_open(os.path.join(self.task.folder, layout.CLAIM), durable=self.task.outlives_power)
        if lock is None:
            return
        fcntl.flock(lock, fcntl.LOCK_EX)  # as long as the shim lives: a process that can take it knows that the shim is gone
        os.write(lock, str(self.me).encode())  # the process to wake; true as long as the lock is held
        self.mark = processes.mark(lock)
        end = self._run_attempts()
        if end.outcome == FAILED and self.task.hold_seconds and not self._stop():
            self._hold(end)
        self._write_final(end)
        self.teller.flush()
        os.close(lock)

    def _write_final(self, end: TaskRecord) -> None:
        """The record of the last attempt is that of the task: where no power cut is to be outlived, a second name will do."""
        path = os.path.join(self.task.folder, layout.FINAL)
        if end is self.recorded and not self.task.outlives_power:
            try:
                os.link(os.path.join(self.folder, layout.EXIT), path)
                return
            except OSError:
                pass  # a file system without links
        self._write_end(path, end, durable=self.task.outlives_power)

    def _write_end(self, path: str, end: TaskRecord, *, durable: bool) -> None:
        """A record of how something ended; the attempt keeps some space for these. Without any, our driver hears it from us."""
        try:
            try:
                write_record(path, end.to_json(), durable=durable)
            except OSError as error:
                if not is_full(error):
                    raise
                free_reserve(self.task.attempt_folder)
                write_record(path, end.to_json(), durable=durable)
        except OSError as error:
            if is_full(error):
                told = end.replace(reason=(end.reason or "")[:LONGEST_REASON], last_lines=[])
                self.teller.event("unwritten", end=told.to_json())
            raise

    # One attempt after another

    def _run_attempts(self) -> TaskRecord:
        while True:
            stop = self._stop()
            end = self._never_ran(stop) if stop else self._run_attempt()
            if end.outcome != FAILED or self.attempt >= self.task.retries or self._stop() or self.broken:
                return end
            self.attempt += 1
            seconds = retry.delay(self.attempt, self.task.retry_delay, int.from_bytes(os.urandom(2), "big") / 65536)
            self.teller.event(
                "retry", attempt=self.attempt, of=self.task.retries, seconds=seconds, reason=end.reason, **journal.ended_try(end)
            )
            self._wait(lambda: bool(self._stop()), seconds)

    def _run_attempt(self) -> TaskRecord:
        task = self.task
        self.folder = layout.task_attempt_folder(task.folder, self.attempt)
        _make(os.path.dirname(self.folder))
        fresh = _make(self.folder)
        if task.checkpoint:
            _make(task.checkpoint)
            if task.owner:
                from .rights import PRIVATE_MODE, give

                give(task.checkpoint, task.owner, PRIVATE_MODE)  # the way to it is open to all
        began = self.began = time.time()
        self.ended_cpu_seconds = 0.0
        self.kept, self.terminated, self.failed_at = frozenset(), False, {}
        environment = {
            **task.environment,
            "FC_TASK_ATTEMPT_ID": str(self.attempt),
            "PAI_EXPORTS_FILE": self._new_exports(),
            "PAI_TASK_LOG_DIR": self.folder,
        }
        write_environment(os.path.join(self.folder, layout.ENVIRONMENT), environment, task.hidden, task.inherited)
        self.output.open(self.folder, self._new_stream, fresh=fresh)
        self.teller.running(self.attempt)
        limits = cgroups.available() if task.memory_mb or task.cpus else None
        group = limits.create(f"{os.path.basename(task.attempt_folder)}-{self.me}", task.memory_mb, task.cpus) if limits else None
        if group:
            # Whoever finds this shim killed can still clean up after it.
            write_record(
                os.path.join(task.folder, layout.CGROUP), CgroupRecord(list(group.folders), self.mark).to_json(), durable=False
            )
            if group.problem:
                self.output.line(f"pailot: {group.problem}")
        self.group = group
        self.next_sample = time.monotonic() + SAMPLE_SECONDS
        try:
            phase, end = self._run_phases(environment, group)
            memory_kill = self._out_of_memory(group)
        finally:
            self._end_everything()
            self.next_sample = _NEVER
            self._forget_scripts_in_memory()
            self.output.close()
            if group:
                group.remove()
        return self._record(phase, end, memory_kill, began)

    def _out_of_memory(self, group: Any) -> bool:
        return bool(group.oom_killed()) if group else False

    def _end_everything(self) -> None:
        """The end of an attempt: nothing of it goes on."""
        if not _childless():
            processes.kill_all(self.me)
            self._wait_for_all(LEFTOVER_SECONDS)

    def _new_exports(self) -> str:
        """Where start callbacks leave their exports: in memory if a secret may be among them."""
        if self.task.owner:
            # A file in memory that the task inherits: what is another user's cannot be reached by our number.
            if self.exports >= 0:
                os.close(self.exports)
            self.exports = os.memfd_create("exports", 0)
            from .rights import give_open

            give_open(self.exports, self.task.owner)
            self.exports_path = f"/proc/self/fd/{self.exports}"
        elif not self.task.hidden or self.task.wrapper:
            self.exports_path = os.path.join(self.folder, layout.EXPORTS)
        elif self.exports < 0:
            self.exports = os.memfd_create("exports", os.MFD_CLOEXEC)
            self.exports_path = f"/proc/{self.me}/fd/{self.exports}"
        else:
            os.ftruncate(self.exports, 0)
        return self.exports_path

    def _run_phases(self, environment: dict[str, str], group: Any) -> tuple[str, exit_classes.End]:
        task = self.task
        phase, end = "start", exit_classes.End(0, None)
        if task.start:
            end = self._run_script("start", task.start, environment, group)
        self._keep_what_runs()
        if end.exit_code == 0:
            if self._stop():
                self.terminated = True  # not a success: its commands never ran
            else:
                phase = "main"
                end = self._run_script("main", task.main, environment, group)
        self._end_leftovers()
        if task.exit and not self._kill_now() and not self.broken:
            outcome = self._outcome(end)
            told = {
                "PAI_TASK_OUTCOME": outcome,
                "PAI_TASK_EXIT_CODE": str(_shell_code(end)),
                "PAI_TASK_REASON": exit_classes.words(end),
            }
            last = self._run_script("exit", task.exit, {**environment, **told}, group)
            if outcome == SUCCEEDED and last.exit_code != 0:
                phase, end = "exit", last
        return phase, end

    def _keep_what_runs(self) -> None:
        """What the start callbacks left running, a server for instance, lives as long as the task."""
        self.kept = frozenset() if _childless() else frozenset(processes.descendants(self.me))

    def _run_script(self, name: str, text: str, environment: dict[str, str], group: Any) -> exit_classes.End:
        """One bash process to its end, stopped with grace when a stop is asked for."""
        path, inherited = self._script_file(name, text)
        try:
            self.status = None
            self.pid = self._spawn(path, environment, group, inherited)
        except OSError as error:
            self.output.line(f"pailot: cannot start bash: {error.strerror}")
            self._end_reading()
            return exit_classes.End(127, None)
        finally:
            for descriptor in inherited:
                os.close(descriptor)
        self._wait(lambda: self.status is not None or bool(self.broken or self._stop()) or self._kill_now(), None)
        if self.status is None:
            self._end_script(polite=name != "exit")
        self.pid = 0
        end = self._how_it_ended()
        self._note_failed_command(name, text, end)
        if self.task.foreign_stop and signal.SIGTERM in (end.signal, (end.exit_code or 0) - 128):
            self._wait(lambda: bool(self._stop()), FOREIGN_SECONDS)
        return end

    # Which command failed

    def _end_reading(self) -> script_reading.Reached | None:
        reading, self.reading = self.reading, None
        if reading is None:
            return None
        if reading.descriptor >= 0:
            self.poller.unregister(reading.descriptor)
        return reading.finish()

    def _note_failed_command(self, name: str, text: str, end: exit_classes.End) -> None:
        """Note the lines of the command that ended a script, as they stand in the plan. A line that may be wrong is left out."""
        filled = self.reading.text if self.reading else text
        reached = self._end_reading()
        if self.only_command is not None and end.signal is None:  # a signal may have come before the command
            reached = script_reading.Reached(self.only_command, to_the_end=False)
        if reached is None or end.exit_code == 0 or self.terminated:
            return
        found = script_reading.failed_lines(filled, reached, self._is_whole)
        if found is None or (reached.to_the_end and end.signal is not None):
            return
        first, last = found
        if filled != text:
            last = script_reading.line_before_secrets(text, REFERENCE, self.task.secrets, last)
            first = first and script_reading.line_before_secrets(text, REFERENCE, self.task.secrets, first)
        self.failed_at[name] = {"script": name, "firstLine": first, "lastLine": last}

    def _is_whole(self, text: str) -> bool:
        """Whether commands end where a text ends. Bash says it, and runs nothing."""
        try:
            program = which("bash", self.task.environment.get("PATH", os.defpath))
            self.status = None
            self.pid, said = script_reading.start_look(text, program, {processes.MARK: self.mark}, _SIGNALS, self.task.owner)
        except OSError:
            return False
        try:
            self._wait(lambda: self.status is not None, script_reading.LOOK_SECONDS)
            # It warns of a here-document without its end, and that is all that it says where it returns 0.
            return self._looked_well() and os.fstat(said).st_size == 0
        finally:
            self.pid = 0
            os.close(said)

    def _looked_well(self) -> bool:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
        return self.status == 0

    def _how_it_ended(self) -> exit_classes.End:
        status = self.status or 0
        if os.WIFSIGNALED(status):
            return exit_classes.End(None, os.WTERMSIG(status))
        return exit_classes.End(os.WEXITSTATUS(status), None)

    def _end_script(self, *, polite: bool) -> None:
        """SIGTERM to all the task has started, its grace, then SIGKILL; exit callbacks only get the time."""
        if not self._kill_now() and not self.broken:
            if polite:
                self.terminated = True
                processes.send(self._to_terminate(), signal.SIGTERM)
            self._wait(lambda: not processes.descendants(self.me, self.kept) or self._kill_now(), self._grace())
        processes.kill_all(self.me, self.kept)
        self._wait(lambda: self.status is not None, None)

    def _to_terminate(self) -> list[int]:
        """The user's processes; a sandbox around them ends at once on SIGTERM and would take the grace away."""
        found = processes.descendants(self.me, self.kept)
        return [pid for pid in found if _command(pid) != "bwrap"] if self.task.wrapper else found

    def _end_leftovers(self) -> None:
        """What the commands left running gets TERM, two seconds, KILL."""
        left = [] if _childless() else processes.descendants(self.me, self.kept)
        if not left:
            return
        processes.send(left, signal.SIGTERM)
        self._wait(lambda: not processes.descendants(self.me, self.kept), LEFTOVER_SECONDS)
        processes.kill_all(self.me, self.kept)

    def _hold(self, end: TaskRecord) -> None:
        """Keep a failed task for inspection."""
        until = time.time() + self.task.hold_seconds
        write_record(os.path.join(self.task.folder, layout.HELD), end.replace(until=until).to_json())
        self.teller.event("held", until=until, reason=end.reason)
        self.output.open(self.folder, self._new_stream)
        if self.task.hold_command:
            self._begin_hold_command()
        self._wait(lambda: bool(self._stop()) or time.time() >= until, self.task.hold_seconds)
        self._end_held()
        self._end_reading()
        self._forget_scripts_in_memory()
        self.output.close()

    def _end_held(self) -> None:
        processes.kill_all(self.me)
        self._wait_for_all(LEFTOVER_SECONDS)

    def _begin_hold_command(self) -> None:
        environment = {
            **self.task.environment,
            "PAI_TASK_LOG_DIR": self.folder,
            "PAI_EXPORTS_FILE": self.exports_path,
        }
        self.status = None
        path, inherited = self._script_file("hold", "#!/bin/bash\n" + self.task.hold_command + "\n")
        self.pid = self._spawn(path, environment, None, inherited)
        for descriptor in inherited:
            os.close(descriptor)

    # Records

    def _record(self, phase: str, end: exit_classes.End, memory_kill: bool, began: float) -> TaskRecord:
        outcome = self._outcome(end)
        stop = self._stop()
        text = self._last_output(1 << (12 if outcome == SUCCEEDED else 20))
        classified = exit_classes.classify(end, text, memory_kill, stop if outcome == STOPPED else None)
        what = {"start": "its start callbacks ", "exit": "its exit callbacks ", "main": ""}[phase]
        if phase == "start" and end.exit_code == 0:
            reason = self.broken or "was stopped before its commands"
        else:
            reason = self.broken or (
                f"{what}{exit_classes.words(end)}" + (" because it used more memory than it asked for" if memory_kill else "")
            )
        ended = time.time()
        cpu_seconds = self._processor_time()
        if self.sampler is not None:
            cpu_seconds = self.sampler.finish(self.attempt, ended, cpu_seconds, self.usage_kb)
        record = TaskRecord(
            outcome=FAILED if self.broken else outcome,
            exit_code=end.exit_code,
            signal=end.signal,
            phase=phase,
            reason=self._in_other_words(outcome) or reason,
            stop=stop or None,
            disk_full=bool(self.broken),
            out_of_memory=memory_kill,
            attempt=self.attempt,
            started=began,
            ended=ended,
            max_rss_kb=self.usage_kb,
            peak_memory_kb=0 if self.sampler is None else self.sampler.peak.memory_kb,
            cpu_seconds=None if cpu_seconds is None else round(cpu_seconds, 3),
            exit_class=None if self.broken else classified.to_json(),  # OpenPAI knows no end by a full disk
            last_lines=text.splitlines()[-LAST_LINES:],
            failed_at=self.failed_at.get(phase) if outcome == FAILED and not self.broken else None,
        )
        self._write_end(os.path.join(self.folder, layout.EXIT), record, durable=False)  # final.json will be
        self.recorded = record
        return record

    def _last_output(self, size: int) -> str:
        return tail(self.folder, layout.ALL, size).decode("utf-8", "replace") if self.output.size else ""

    def _in_other_words(self, outcome: str) -> str:
        """A better reason for an outcome than the exit code, if there is one."""
        return ""

    def _never_ran(self, stop: str) -> TaskRecord:
        reason = "was stopped before it ran"
        return TaskRecord(STOPPED, phase="start", reason=reason, stop=stop, attempt=self.attempt, ended=time.time())

    def _outcome(self, end: exit_classes.End) -> str:
        if self.terminated or (self._stop() and end.exit_code != 0):
            return STOPPED
        return SUCCEEDED if end.exit_code == 0 else FAILED

    # Being told to stop

    def _stop(self) -> str:
        """Why the attempt is to stop, or nothing; the file is the truth, a signal only says 'look'."""
        if self.lost_launcher:
            return "launcher-lost"
        if not self._stop_file_there():
            if not (self.signalled and self.task.foreign_stop):
                return ""
            return claim_stop(self.task.attempt_folder, self.task.foreign_stop, self.task.grace)
        record = StopRecord.read(os.path.join(self.task.attempt_folder, layout.STOP))
        return (record.why or "") if record else ""

    def _stop_file_there(self) -> bool:
        return os.path.exists(os.path.join(self.task.attempt_folder, layout.STOP))

    def _grace(self) -> float:
        record = StopRecord.read(os.path.join(self.task.attempt_folder, layout.STOP))
        return self.task.grace if record is None or record.grace is None else record.grace

    def _kill_now(self) -> bool:
        return os.path.exists(os.path.join(self.task.attempt_folder, layout.KILL))

    # The event loop

    def _listen(self) -> None:
        signal.set_wakeup_fd(-1)
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._heard_signal)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self.wake = reader
        self.poller.register(reader, select.POLLIN)
        self.poller.register(self.liveness, select.POLLIN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))  # `fork_shim` has blocked it

    def _heard_signal(self, *_: object) -> None:
        self.signalled = True

    def _wait(self, done: Callable[[], bool], seconds: float | None) -> None:
        """Serve pipes and children until something is so, or time is over."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            self._reap()
            if done():
                return
            now = time.monotonic()
            left = None if deadline is None else deadline - now
            if left is not None and left <= 0:
                return
            if self.next_sample != _NEVER:
                if now >= self.next_sample:
                    self.next_sample = now + SAMPLE_SECONDS
                    self._take_sample()
                left = self.next_sample - now if left is None else min(left, self.next_sample - now)
            self._serve(left)

    def _wait_for_all(self, seconds: float) -> None:
        self._wait(lambda: not processes.descendants(self.me), seconds)

    def _serve(self, seconds: float | None) -> None:
        for descriptor, event in self.poller.poll(milliseconds(seconds)):
            if descriptor in self.output.pipes:
                self.output.pump(descriptor)
            elif descriptor == self.wake:
                try:
                    os.read(self.wake, 4096)
                except BlockingIOError:
                    pass  # it was read already
            elif descriptor == self.liveness and event & (select.POLLHUP | select.POLLIN):
                self.lost_launcher = True
                self.poller.unregister(self.liveness)
                claim_stop(self.task.attempt_folder, "launcher-lost", self.task.grace)
            elif descriptor == self.teller.descriptor:
                self.teller.serve()
            elif self.reading is not None and descriptor == self.reading.descriptor:
                if self.reading.pump():
                    self.poller.unregister(descriptor)
                    self.reading.close_writer()
            else:
                self._served(descriptor, event)

    def _served(self, descriptor: int, event: int) -> None:
        """Something else that is listened to has news."""

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.ended_cpu_seconds += usage.ru_utime + usage.ru_stime
            if pid == self.pid:
                self.status = status
                self.usage_kb = max(self.usage_kb, usage.ru_maxrss)
            else:
                self._collected(pid, status)

    def _collected(self, pid: int, status: int) -> None:
        """Another child ended."""

    # What the task uses

    def _take_sample(self) -> None:
        from . import usage_sampling  # a task that ends before its first sample pays nothing for them

        if self.sampler is None:
            self.sampler = usage_sampling.Sampler(self.task.folder, self.task.environment)
        measured = self._measured()
        if measured is not None:
            self.sampler.take(self.attempt, self.began, time.time(), measured)

    def _measured(self) -> Measured | None:
        """What the task uses now; None where that is not known yet."""
        from . import usage_sampling

        group = usage_sampling.ControlGroup(self.group.folders) if self.group else None
        return usage_sampling.measure(lambda: processes.descendants(self.me), group, self.ended_cpu_seconds)

    def _processor_time(self) -> float | None:
        """Processor time of the attempt that has ended, as far as it is known without samples."""
        return self.ended_cpu_seconds

    def _new_stream(self, stream: str) -> tuple[int, int]:
        """The two ends of what a task prints into."""
        return os.pipe2(os.O_CLOEXEC)

    # Starting processes

    def _script_file(self, name: str, text: str) -> tuple[str, list[int]]:
        """Where bash reads a script, and the descriptors that it needs for that.

        That is a file, or memory when secrets are in it or the file is not its user's to read.
        """
        filled, shown = with_secrets(self.task, text)
        path = os.path.join(self.folder, layout.script(name))
        self.only_command = None
        if filled != shown or self.task.owner:
            _write(path, shown, 0o600)
            return self._script_in_memory(name, filled)
        if self.task.script_on_input:
            _write(path, shown, 0o600)
            return path, []
        if not self.task.wrapper:
            self.only_command = script_reading.only_command(filled, self.task.environment)
        if self.only_command is not None:
            _write(path, shown, 0o600)
            return path, []
        _write(script_reading.waiting(path), shown, 0o600)
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._begin_reading(folder, layout.script(name), filled)
        finally:
            os.close(folder)
        return path, []

    def _script_in_memory(self, name: str, filled: str) -> tuple[str, list[int]]:
        memory = os.memfd_create(name, os.MFD_CLOEXEC)
        os.write(memory, filled.encode())
        link = f"/proc/self/fd/{memory}"
        if self.task.script_on_input:
            return link, [memory]
        self.scripts_in_memory = True
        way = os.path.join(self.folder, layout.SCRIPTS_IN_MEMORY)
        _make(way)
        folder = os.open(way, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        if self.task.owner:
            os.fchmod(folder, 0o711)  # bash gets there by the descriptor alone; a link in its place is not followed
        script = layout.script(name)
        os.symlink(link, script_reading.waiting(script), dir_fd=folder)
        self._begin_reading(folder, script, filled)
        if self.task.owner:
            return f"/proc/self/fd/{folder}/{script}", [memory, folder]
        os.close(folder)
        return os.path.join(way, script), [memory]

    def _begin_reading(self, folder: int, script: str, filled: str) -> None:
        """Hand a script on while bash reads it."""
        self.reading = script_reading.begun(folder, script, filled)
        if self.reading is None:
            return
        if self.task.owner:
            from .rights import give_open

            give_open(self.reading.reader, self.task.owner)
        self.poller.register(self.reading.descriptor, select.POLLOUT)

    def _forget_scripts_in_memory(self) -> None:
        if not self.scripts_in_memory:
            return
        self.scripts_in_memory = False
        way = os.path.join(self.folder, layout.SCRIPTS_IN_MEMORY)
        try:
            for name in os.listdir(way):
                os.unlink(os.path.join(way, name))
            os.rmdir(way)
        except OSError:
            pass  # there was none

    def _spawn_here(self, argv: list[str], environment: dict[str, str], stdin: str) -> int:
        """Nothing is to be done between fork and exec, so the kernel need not copy us."""
        program = which(argv[0], environment.get("PATH", os.defpath))
        os.chdir(self.task.work_dir)
        files = [
            (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, self.output.writers[layout.STDOUT], 1),
            (os.POSIX_SPAWN_DUP2, self.output.writers[layout.STDERR], 2),
        ]
        return os.posix_spawn(program, argv, environment, file_actions=files, setpgroup=0, setsigdef=_SIGNALS)

    def _spawn_theirs(self, argv: list[str], environment: dict[str, str], stdin: str) -> int:
        """Another user's process: nothing that the job says, its variables above all, meets a process that is still root's."""
        from .rights import become

        owner = self.task.owner
        assert owner is not None
        pid = os.fork()
        if pid:
            return pid
        try:
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            os.dup2(self.output.writers[layout.STDOUT], 1)
            os.dup2(self.output.writers[layout.STDERR], 2)
            become(owner)
            os.dup2(os.open(stdin, os.O_RDONLY | os.O_CLOEXEC), 0)
            os.chdir(self.task.work_dir)
            os.execve(which(argv[0], environment.get("PATH", os.defpath)), argv, environment)  # noqa: S606  # the job's own bash
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            os.write(2, f"pailot: bash cannot be started as Unix user {owner.name}: {error.strerror or error}{where}\n".encode())
        finally:
            os._exit(127)

    def _spawn(self, path: str, environment: dict[str, str], group: Any, inherited: Sequence[int]) -> int:
        argv, stdin = [*self.task.wrapper, "bash", path], os.devnull
        if self.task.script_on_input:
            argv, stdin = [*self.task.wrapper, "bash", "-c", _FROM_INPUT], path
        environment = {**environment, processes.MARK: self.mark}  # how they are found if all of ours are killed at once
        for descriptor in inherited:
            os.set_inheritable(descriptor, True)
        begin = self._spawn_theirs if self.task.owner else self._spawn_here
        if not group:
            return begin(argv, environment, stdin)
        try:
            group.enter()
            return begin(argv, environment, stdin)
        finally:
            try:
                group.leave()
            except OSError as error:  # the task runs, or its own error is on the way; that counts for more
                self.output.line(f"pailot: the task's limits hold for Pailot's own process, too: {error.strerror}")


def with_secrets(task: Task, text: str) -> tuple[str, str]:
    """A script with its secrets inserted, and as it may be kept. What was inserted is not looked at again."""
    shown = mask_text(text, task.hidden) if any(each in text for each in task.hidden) else text
    if not task.secrets:
        return text, shown
    return re.sub(REFERENCE, lambda match: task.secrets.get(match[0], match[0]), text), shown


def write_environment(path: str, environment: dict[str, str], hidden: tuple[str, ...], inherited: Mapping[str, str]) -> None:
    """The variables of a task, one NUL-ended entry each, for `pailot enter`; secrets among them are masked.

    Of what the task inherits only variables that are known to be harmless are in it: `enter` takes the others from the
    shell that it is typed in.
    """
    environment = {
        name: value for name, value in environment.items() if inherited.get(name) != value or credentials.is_harmless(name)
    }
    if hidden:
        mask = text_masker(hidden)
        environment = {name: mask(value) for name, value in environment.items()}
    _write(path, "".join([f"{name}={value}\0" for name, value in environment.items()]), 0o600)


def read_environment(path: str) -> dict[str, str]:
    """What `write_environment` wrote."""
    entries = careful_files.read_regular(path).decode("utf-8", "replace").split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def _childless() -> bool:
    """Whether nothing at all descends from us: a subreaper's orphans are its children."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _write(path: str, text: str, mode: int) -> None:
    """A small file, without the layers that `open` would put above it."""
    descriptor = careful_files.open_own(path, os.O_WRONLY | os.O_TRUNC, mode)
    try:
        rest = memoryview(text.encode())
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)


def _make(folder: str) -> bool:
    """Make a folder, mostly in one that is there; return whether it is new."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return False
    except FileNotFoundError:  # checkpoints on a node that does not see the home
        careful_files.make_folders(folder)
    return True


def which(program: str, path: str) -> str:
    """Where a program is. Whoever asks before it forks has asked for all its shims, which mostly have the same path."""
    known = _found.get((program, path))
    if known is None:
        known = _found[program, path] = _look_for(program, path)
    return known


def _look_for(program: str, path: str) -> str:
    if "/" in program:
        return program
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or ".", program)
        if os.access(candidate, os.X_OK):
            return candidate
    return f"/bin/{program}"


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm") as stream:
            return stream.read().strip()
    except OSError:
        return ""


def _shell_code(end: exit_classes.End) -> int:
    return end.exit_code if end.exit_code is not None else 128 + (end.signal or 0)
