"""The shim of a task in a container: it makes the container, tells the script inside what to do, and hears how it went.

Output, exit codes and the end of the container come through FIFOs in the task's folder, not through the engine: they
are whole although the engine's daemon may be down by then.
"""

from __future__ import annotations

import os
import select
import signal
import time

from ..lifecycle import exit_classes
from ..runfolder import careful_files, layout
from ..runfolder.atomic_json import write_record
from ..runfolder.engine_records import ContainerRecord
from ..runfolder.masking import mask_text
from . import container_init, docker_api, script_reading
from .shim import FAILED, LEFTOVER_SECONDS, SUCCEEDED, Shim, with_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..runfolder.records import TaskRecord
    from .task_spec import Task
    from .usage_sampling import Measured

LOST = "lost"
ENGINE_SECONDS = 20.0
"""How long an engine may take for a small thing before we do without its answer."""
LOOK_SECONDS = 2.0
POLL_SECONDS = 0.05
LONGEST_WORD = 4096
INSIDE = "inside"
"""Below the folder of a task attempt: all of it that the container can change. Logs and records are beside it."""
PIPEFAIL = "set -o errexit -o nounset -o pipefail\n"
NO_PIPEFAIL = "set -o errexit -o nounset\n"
DAEMON_IS_DOWN = (
    "cannot connect to the docker daemon", "cannot connect to podman", "error during connect",
    "unexpected eof", "connection reset", "is the docker daemon running",
)  # fmt: skip


class ContainerShim(Shim):
    """Runs one task in a container, a new one for each attempt."""

    def __init__(self, task: Task, channel: int, liveness: int) -> None:
        super().__init__(task, channel, liveness)
        self.control = self.events = self.errors = self.inside_folder = -1
        self.inside = ""
        self.client = 0
        """The engine's `run`, and how it ended."""
        self.client_status: int | None = None
        self.commands: dict[int, Callable[[int], None]] = {}
        self.heard = self.said = b""
        self.answers: list[int] = []
        self.shell = self.lost = self.name = self.running = self.unstarted = ""
        self.kills = 0
        self.asked = False
        """Whether it was we who sent a signal."""
        self.gone = True
        """Whether no process of the container is left."""
        self.over = False
        """Whether its first process said that it ends by itself."""
        self.began = 0.0
        self.signalled_outside: bool | None = None
        self.first_pid = 0
        """The container's first process, by its number on this machine; 0 until the engine was asked, -1 if it does not say."""
        self.end: exit_classes.End | None = None
        self.last: tuple[str, exit_classes.End] | None = None

    # The container's life

    def _run_phases(self, environment: dict[str, str], group: Any) -> tuple[str, exit_classes.End]:
        problem = self._start_container()
        if problem:
            self.output.line(f"pailot: {problem}")
            self.unstarted = problem
            self.last = "start", exit_classes.End(125, None)
            if self._stop():
                self.last = "start", exit_classes.End(None, signal.SIGTERM)
            elif any(words in problem.lower() for words in DAEMON_IS_DOWN):
                self.lost = problem
            return self.last
        if self._stop():
            self.last = "start", exit_classes.End(None, signal.SIGTERM)
            return self.last
        if self.shell != "bash":
            how = "/bin/sh" if self.shell == "sh" else "/bin/sh, which has no pipefail either"
            self.output.line(f"pailot: the image {self._container.image} has no bash; commands run in {how}")
        self.last = super()._run_phases(environment, group)
        self._outcome(self.last[1])  # who ended it is asked while the container is there
        return self.last

    @property
    def _container(self) -> Any:
        return self.task.container

    def _start_container(self) -> str:
        """Make the container and hear from it; return why it failed."""
        made = self._container
        self.name = f"{made.name}-{self.attempt}"
        self.heard = self.said = b""
        self.shell = self.lost = self.unstarted = ""
        self.kills, self.asked, self.gone, self.over = 0, False, False, False
        self.began, self.signalled_outside = time.time(), None
        self.first_pid = 0
        self.client_status = None
        record = ContainerRecord(list(made.command), self.name, made.memory_folder, self.mark)
        write_record(os.path.join(self.task.folder, layout.CONTAINER), record.to_json(), durable=False)
        careful_files.write_new(self.inside_folder, "inside.sh", container_init.SCRIPT.encode())
        self._open_pipes()
        inside_words = [
            os.path.join(self.inside, "inside.sh"),
            self.inside,
            made.memory_folder or self.inside,
            self.task.work_dir,
        ]
        shown = [*made.words, *docker_api.mount(self.inside)]
        words = [
            *made.command, "run", "--detach", *(["--rm"] if made.removes_itself else []), "--name", self.name, *shown,
            "--entrypoint", "/bin/sh", made.image, *inside_words,
        ]  # fmt: skip
        asked = docker_api.body(shown) if made.socket else None
        if asked is not None:
            asked |= {"Image": made.image, "Entrypoint": ["/bin/sh"], "Cmd": inside_words}
        try:
            self._begin_client(words, asked)
        except OSError as error:
            self.gone = True
            return f"{words[0]} cannot be started: {error.strerror}"
        self._wait_for_hello()
        if self.shell or self._kill_now():
            return "" if self.shell else "stopped while its container was made"
        self._end_container()
        told = mask_text(self.said.decode("utf-8", "replace"), self.task.hidden).strip().splitlines()
        why = next((line for line in reversed(told) if line and not line.startswith(("See ", "Run "))), "it ended at once")
        return f"its container could not be started: {_plain(why)}"

    def _wait_for_hello(self) -> None:
        def known() -> bool:
            return bool(self.shell) or self.gone or self._kill_now() or bool(self.client_status)

        while True:
            self._wait(lambda: known() or self.client_status == 0, None)
            if known():
                return
            # The engine says that it runs: it speaks within moments, or could not open its pipes and has ended.
            self._wait(known, LOOK_SECONDS)
            if known():
                return
            if self._command("inspect", self.name) not in (0, None):
                self.gone = True

    def _open_pipes(self) -> None:
        self.control = careful_files.open_fifo(self.inside_folder, "control", os.O_RDWR)
        self.events = careful_files.open_fifo(self.inside_folder, "events", os.O_RDONLY)
        self.poller.register(self.events, select.POLLIN)

    def _begin_client(self, words: Sequence[str], asked: dict[str, object] | None) -> None:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(reader, False)
        self.errors = reader
        self.poller.register(reader, select.POLLIN)
        try:
            self.client = _spawn(words, writer) if asked is None else self._ask_daemon(asked, writer)
        finally:
            os.close(writer)

    def _ask_daemon(self, asked: dict[str, object], errors: int) -> int:
        """A child that asks, since an answer takes as long as the container to start."""
        pid = os.fork()
        if pid == 0:
            status = docker_api.FAILED
            try:
                signal.set_wakeup_fd(-1)
                for number in (signal.SIGTERM, signal.SIGCHLD):
                    signal.signal(number, signal.SIG_DFL)
                os.dup2(errors, 2)
                os.close(self.control)  # the container's lifeline is the shim's alone
                status = docker_api.run(self._container.socket, self.name, asked)
            finally:
                os._exit(status)
        return pid

    def _end_everything(self) -> None:
        if not self._to_be_held():
            self._end_container()

    def _to_be_held(self) -> bool:
        if self.gone or not self.task.hold_seconds or self.attempt < self.task.retries or self._stop():
            return False
        return self.last is not None and self._outcome(self.last[1]) == FAILED

    def _end_container(self) -> None:
        """Nothing in it goes on: its first process ends, and with it all others."""
        if self.control >= 0:
            self._say("bye")
            os.close(self.control)  # which alone would do
            self.control = -1
        self._wait(lambda: self.gone or self.shell == "", LEFTOVER_SECONDS)
        if not self.gone and self.shell:
            self._command("kill", self.name)
            self._wait(lambda: self.gone, LEFTOVER_SECONDS)
        if self.client and self.client_status is None and not (self.shell and self._container.needs_client):
            os.kill(self.client, signal.SIGKILL)  # its container has spoken, or never will
            self._wait(lambda: self.client_status is not None, LEFTOVER_SECONDS)
        if not self.shell or not (self._container.removes_itself or self._container.remove_at):
            self._command("rm", "--force", "--volumes", self.name)
        self._wait_for_all(ENGINE_SECONDS)  # Podman's own process for the container, which removes it
        if self.shell and self._container.remove_at:
            self._remove_beside()
        if self._container.wait_until_removed:
            deadline = time.monotonic() + ENGINE_SECONDS
            while self._command("inspect", self.name) == 0 and time.monotonic() < deadline:
                self._wait(lambda: False, POLL_SECONDS)
        self._close_pipes()

    def _remove_beside(self) -> None:
        """Have Docker remove the container, by a process that outlives us: the task is over without waiting for that."""
        pid = os.fork()
        if pid:
            return
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is about the task, which has ended
            os.closerange(0, 1 << 20)  # locks and lifelines above all
            docker_api.remove_in_time(self._container.remove_at, self.name)
        finally:
            os._exit(0)

    def _close_pipes(self) -> None:
        for descriptor in (self.events, self.errors):
            if descriptor >= 0:
                self._forget(descriptor)
                os.close(descriptor)
        self.events = self.errors = -1
        self.gone = True

    def _forget(self, descriptor: int) -> None:
        try:
            self.poller.unregister(descriptor)
        except KeyError:
            pass  # not listened to any more

    # Scripts

    def _run_script(self, name: str, text: str, environment: dict[str, str], group: Any) -> exit_classes.End:
        self._begin_script(name, text, environment)
        self._wait(lambda: self.end is not None or self.gone or bool(self.broken or self._stop()) or self._kill_now(), None)
        if self.end is None and not self.gone:
            self._end_script(polite=name != "exit")
        end = self._how_it_ended()
        self._note_failed_command(name, text, end)
        return end

    def _begin_script(self, name: str, text: str, environment: Mapping[str, str]) -> None:
        filled, shown = with_secrets(self.task, text)
        self._bring_script(layout.script(name), filled, shown)
        if self.shell == "posix":
            self._bring(f"{name}.posix.sh", filled.replace(PIPEFAIL, NO_PIPEFAIL), shown.replace(PIPEFAIL, NO_PIPEFAIL))
        exports = "".join(
            f"export {key}='{_quoted(value)}'\n" for key, value in environment.items() if key.isidentifier() and key.isascii()
        )
        self._bring(f"{name}.env", exports, mask_text(exports, self.task.hidden) if self.task.hidden else exports)
        self.end, self.running = None, name
        self._say(f"run {name}")

    def _bring_script(self, script: str, filled: str, shown: str) -> None:
        """The script of a phase; where bash runs it, through a FIFO, so that it is known how far bash came."""
        if self.shell != "bash" or (filled != shown and not self._container.memory_folder):
            self._bring(script, filled, shown)
        elif filled == shown:
            careful_files.write_new(self.inside_folder, script_reading.waiting(script), shown.encode("utf-8", "surrogateescape"))
            careful_files.remove(self.inside_folder, script)
            self._begin_reading(self.inside_folder, script, filled)
        else:
            self._bring(script, filled, shown)
            link = container_init.IN_MEMORY + script
            for name in (link, script_reading.waiting(link)):
                careful_files.remove(self.inside_folder, name)
            os.symlink(
                os.path.join(self._container.memory_folder, script), script_reading.waiting(link), dir_fd=self.inside_folder
            )
            self._begin_reading(self.inside_folder, link, filled)

    def _bring(self, name: str, text: str, shown: str) -> None:
        """A file for the container: on the disk, or in memory if a secret is in it."""
        careful_files.write_new(self.inside_folder, name, shown.encode("utf-8", "surrogateescape"))
        if text != shown:
            mark = f"end-{os.urandom(8).hex()}"
            self._say(f"file {name} {mark}\n{text.rstrip(chr(10))}\n{mark}")

    def _how_it_ended(self) -> exit_classes.End:
        if self.end is not None:
            return self.end
        record = self._end_record(f"{self.running}.end")
        if record is not None:
            self.kills = max(self.kills, record[1])
            return record[0]
        if self.over:
            self.unstarted = "ended its container itself: it killed processes that are not its own"
        elif not self._stop() and not self.broken:
            self.lost = "its container was ended from outside, not by Pailot"
        return exit_classes.End(None, signal.SIGKILL)

    def _end_record(self, name: str) -> tuple[exit_classes.End, int] | None:
        try:
            text = careful_files.read_regular(name, LONGEST_WORD, folder=self.inside_folder).decode("ascii", "replace")
        except OSError:
            return None
        return _end(text.split()) if text.endswith("\n") else None

    def _end_script(self, *, polite: bool) -> None:
        if not self._kill_now() and not self.broken:
            deadline = time.monotonic() + self._grace()
            if polite:
                self.terminated = True
                self._signal("TERM", "term")
            self._wait_until_none_left(deadline)
        if self._kill_now():
            self._command("kill", self.name)
            self._say("bye")
            self._wait(lambda: self.gone, ENGINE_SECONDS)
            return
        if self.end is None or self._count_left():
            self._signal("USR1", "kill")
        self._wait(lambda: self.end is not None or self.gone or self._kill_now(), ENGINE_SECONDS)

    def _end_leftovers(self) -> None:
        if self.gone or not self._count_left():
            return
        self._say("term")
        self._wait_until_none_left(time.monotonic() + LEFTOVER_SECONDS)
        if self._count_left():
            self._say("kill")

    def _wait_until_none_left(self, deadline: float) -> None:
        self._wait(lambda: self.end is not None or self.gone or self._kill_now(), deadline - time.monotonic())
        while not self.gone and not self._kill_now() and time.monotonic() < deadline and self._count_left():
            self._wait(lambda: self.gone or self._kill_now(), POLL_SECONDS)

    def _count_left(self) -> int:
        self.answers.clear()
        self._say("left")
        self._wait(lambda: bool(self.answers) or self.gone or self._kill_now(), ENGINE_SECONDS)
        return self.answers[-1] if self.answers else 0

    def _keep_what_runs(self) -> None:
        if self.task.start:
            self._say("keep")

    def _begin_hold_command(self) -> None:
        environment = {**self.task.environment, "PAI_TASK_LOG_DIR": self.folder, "PAI_EXPORTS_FILE": self.exports_path}
        if not self.gone:
            self._begin_script("hold", "#!/bin/bash\n" + self.task.hold_command + "\n", environment)

    def _end_held(self) -> None:
        self._end_container()  # not by killing what is below us: Podman's own process must be left to clear away

    def _new_exports(self) -> str:
        self.inside = os.path.join(self.folder, INSIDE)
        if self.inside_folder >= 0:
            os.close(self.inside_folder)
        os.makedirs(self.inside, mode=0o700, exist_ok=True)
        self.inside_folder = careful_files.open_folder(self.inside)
        self.exports_path = os.path.join(self._container.memory_folder or self.inside, layout.EXPORTS)
        return self.exports_path

    def _new_stream(self, stream: str) -> tuple[int, int]:
        reader = careful_files.open_fifo(self.inside_folder, f"{stream}.pipe", os.O_RDONLY)
        return reader, os.open(f"/proc/self/fd/{reader}", os.O_WRONLY | os.O_CLOEXEC)  # the same one, whatever has its name now

    # Records

    def _out_of_memory(self, group: Any) -> bool:
        return self.kills > 0

    def _outcome(self, end: exit_classes.End) -> str:
        outcome = super()._outcome(end)
        if outcome != FAILED:
            return outcome
        if not self.lost and not self.asked and os.path.lexists(os.path.join(self.inside, "told")) and self._was_signalled():
            self.lost = "its container was stopped from outside, not by Pailot"
        return LOST if self.lost else outcome

    def _record(self, phase: str, end: exit_classes.End, memory_kill: bool, began: float) -> TaskRecord:
        return super()._record(phase, end, memory_kill and self._outcome(end) != SUCCEEDED, began)

    def _in_other_words(self, outcome: str) -> str:
        return self.lost if outcome == LOST else self.unstarted if outcome == FAILED else ""

    def _processor_time(self) -> float | None:
        return None  # what this process has collected are the engine's own commands

    def _measured(self) -> Measured | None:
        if self.first_pid <= 0:
            if self.first_pid == 0 and self.shell and not self.gone:
                self._ask_for_first_pid()
            return None
        from . import cgroups, usage_sampling

        folders = cgroups.folders_of(self.first_pid)
        group = usage_sampling.ControlGroup(folders) if folders else None
        return usage_sampling.measure(lambda: usage_sampling.pids_below(self.first_pid), group, 0.0)

    def _ask_for_first_pid(self) -> None:
        """Begin to ask the engine; a sample is taken when the answer is there."""
        self.first_pid = -1
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            pid = _spawn([*self._container.command, "inspect", "--format", "{{.State.Pid}}", self.name], -1, writer)
        except OSError:
            os.close(reader)
            return
        finally:
            os.close(writer)

        def hear(status: int) -> None:
            try:
                said = os.read(reader, 64).strip().decode("ascii", "replace")
            except BlockingIOError:
                said = ""
            os.close(reader)
            if status == 0 and _is_number(said) and int(said) > 1:
                self.first_pid = int(said)
                if self.next_sample != float("inf"):
                    self.next_sample = 0.0  # at once: a task of ten seconds has a sample, as it has outside of containers

        self.commands[pid] = hear

    def _was_signalled(self) -> bool:
        """Whether the engine sent a signal to the container on request: a task may send the same one from inside.

        An engine that does not answer is no fault of the task's.
        """
        if self.signalled_outside is None:
            since = ["--since", f"{self.began:.0f}", "--until", f"{time.time() + 1:.0f}", "--filter", f"container={self.name}"]
            for words, nothing in (
                (["inspect", "--format", "{{.State.Status}}", self.name], b"running"),  # Podman says `stopping`
                (["events", *since, "--filter", "event=kill", "--filter", "event=stop"], b""),  # Docker tells who asked
            ):
                printed: list[bytes] = []
                self.signalled_outside = self._command(*words, into=printed) != 0 or b"".join(printed).strip() != nothing
                if self.signalled_outside:
                    break
        return bool(self.signalled_outside)

    # Talking to the container and to its engine

    def _say(self, line: str) -> None:
        if self.control < 0 or self.gone:
            return
        data = line.encode("utf-8", "surrogateescape") + b"\n"
        os.set_blocking(self.control, False)
        while data and not self.gone:
            try:
                data = data[os.write(self.control, data) :]
            except BlockingIOError:  # a long script; the container reads on
                self._wait(lambda: self.gone, POLL_SECONDS)

    def _signal(self, name: str, line: str) -> None:
        """By the engine, as its users would; by our own pipe where its daemon does not answer."""
        self.asked = True
        if self._command("kill", "--signal", name, self.name) != 0:
            self._say(line)

    def _command(self, *words: str, into: list[bytes] | None = None) -> int | None:
        """A small command of the engine; its exit status, or None if it takes too long. What it prints goes `into` a list."""
        status: list[int] = []
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) if into is not None else (-1, -1)
        try:
            pid = _spawn([*self._container.command, *words], -1, writer)
        except OSError:
            return 127
        finally:
            if writer >= 0:
                os.close(writer)
        self.commands[pid] = status.append
        self._wait(lambda: bool(status), ENGINE_SECONDS)
        if not status:
            os.kill(pid, signal.SIGKILL)
        if into is not None:
            try:
                into.append(os.read(reader, 1 << 16))  # a pipe holds as much: more is not waited for
            except BlockingIOError:
                pass
            os.close(reader)
        return status[0] if status else None

    def _collected(self, pid: int, status: int) -> None:
        if pid == self.client:
            self.client_status = os.waitstatus_to_exitcode(status)
            self._hear_errors()
        elif pid in self.commands:
            self.commands.pop(pid)(os.waitstatus_to_exitcode(status))

    def _served(self, descriptor: int, event: int) -> None:
        if descriptor == self.events:
            self._hear(event)
        elif descriptor == self.errors:
            self._hear_errors()

    def _hear_errors(self) -> None:
        if self.errors < 0:
            return
        try:
            data = os.read(self.errors, 1 << 16)
        except BlockingIOError:
            return
        self.said = (self.said + data)[-20_000:]
        if not data:
            self._forget(self.errors)
            os.close(self.errors)
            self.errors = -1

    def _hear(self, event: int) -> None:
        while True:
            try:
                data = os.read(self.events, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                if event & select.POLLHUP:
                    self.gone = True
                    self._forget(self.events)
                return
            *lines, rest = (self.heard + data).split(b"\n")
            self.heard = rest[:LONGEST_WORD]
            for line in lines:
                self._heard(line.decode("ascii", "replace").split())

    def _heard(self, words: Sequence[str]) -> None:
        """What the task itself may have said in place of our script is not a message, and does no harm."""
        if len(words) == 2 and words[0] == "hello":
            self.shell = words[1]
        elif len(words) == 2 and words[0] == "left" and _is_number(words[1]):
            self.answers[:] = [int(words[1])]
        elif words == ["over"]:
            self.over = True
        elif len(words) > 2 and words[0] == "ended":
            found = _end(words[2:])
            if found is not None:
                self.kills = max(self.kills, found[1])
                if words[1] == self.running:
                    self.end = found[0]


def clean_up(folder: str, *, wait: bool) -> None:
    """After a shim that was killed: its container has heard of that and ends by itself; this makes sure."""
    record = ContainerRecord.of(folder)
    if record is None:
        return
    try:
        pid = _spawn([*record.command, "rm", "--force", "--volumes", record.name], -1)
        if wait:
            os.waitpid(pid, 0)
    except OSError:
        pass  # the engine is gone; so will be the container, once it is back


def entering(task_folder: str, attempt_folder: str, wanted: str | None, *, terminal: bool) -> list[str] | None:
    """The command that opens a shell in a task's container, with its variables; None for a task without one."""
    record = ContainerRecord.of(task_folder)
    if record is None:
        return None
    script = (
        'for each in "$2/main.env" "$1/main.env" "$2/start.env" "$1/start.env"; do '
        '[ ! -e "$each" ] || { . "$each"; break; }; done; '
        '[ ! -e "$PAI_EXPORTS_FILE" ] || . "$PAI_EXPORTS_FILE"; cd "$PAI_WORK_DIR"; '
        "shell=sh; ! command -v bash >/dev/null || shell=bash; "
        'if [ -n "$3" ]; then exec $shell -c "$3"; else exec $shell -i; fi'
    )
    words = [*record.command, "exec", "--interactive", *(["--tty"] if terminal else []), record.name]
    inside = os.path.join(attempt_folder, INSIDE)
    return [*words, "/bin/sh", "-c", script, "sh", inside, record.memory or inside, wanted or ""]


def _spawn(words: Sequence[str], errors: int, output: int = -1) -> int:
    files: list[Any] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output, 1) if output >= 0 else (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, errors, 2) if errors >= 0 else (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    ignored = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD)
    return os.posix_spawnp(words[0], list(words), os.environ, file_actions=files, setpgroup=0, setsigdef=ignored)


def _end(words: Sequence[str]) -> tuple[exit_classes.End, int] | None:
    """How a script ended, and how often the kernel killed for memory; None if these are not the words for it."""
    if len(words) != 3 or not _is_number(words[0]) or not _is_number(words[2]):
        return None
    status, how, kills = min(int(words[0]), 255), words[1], int(words[2])
    if how == "signal" and status > 128:
        return exit_classes.End(None, status - 128), kills
    return exit_classes.End(status, None), kills


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _quoted(value: str) -> str:
    return value.replace("'", "'\\''")


def _plain(line: str) -> str:
    """An engine's error without its preamble."""
    for start in ("docker: ", "Error response from daemon: ", "Error: "):
        line = line.removeprefix(start)
    return line.strip()
