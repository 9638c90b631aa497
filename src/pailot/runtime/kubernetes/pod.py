"""The first process of a task's container: waits for its peers, forks the shim, passes on what the pod is told.

Orders come by annotations, which kubelet shows as files. What the task prints goes to our standard output as well, so that
`kubectl logs` shows it. The task's folder lies in the pod: another process in it (`show`) brings it to the driver of the
run, and we stay for a while after the end until that was done. The end itself stands in the pod's status.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

from ...lifecycle.states import PREEMPTED, TIMEOUT
from ...lifecycle.waits import milliseconds
from ...runfolder import layout
from ...runfolder.atomic_json import append_line, place_record
from ...runfolder.records import TaskRecord
from ...runfolder.stop_reason import claim_stop
from .. import processes
from ..shim_events import Channel
from ..shim_process import fork_shim, run_and_exit
from ..task_spec import Task
from . import memory_kills, pod_layout
from .payload import Payload, placed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

LOOK_SECONDS = 0.1
"""How long an order may lie unread."""
CHUNK = 1 << 16
LEFT_OUT = ("KUBERNETES_", "PAILOT_", "JOB_COMPLETION_INDEX")
"""Variables of the container that are no business of a task."""


class Pod:
    """One task in its pod."""

    def __init__(self, payload: Payload, role: int, index: int) -> None:
        self.payload, self.number, self.index = payload, role, index
        self.role = payload.roles[role]
        self.folder = layout.task_folder(pod_layout.ATTEMPT, self.role.name, index)
        self.channel = Channel()
        self.liveness, self.alive = os.pipe2(os.O_CLOEXEC)
        self.shim = 0
        self.ended = False
        self.terminated = False
        self.stopping = self.killing = False
        self.began = 0.0
        self.printed: dict[int, int] = {}
        """How much of the log of each attempt went to our standard output."""

    def run(self) -> int:
        """To the end of the task; returns the exit code of the container."""
        self._listen()
        os.makedirs(os.path.join(self.folder, layout.WORK), mode=0o700, exist_ok=True)
        if not self._claim():
            return self._never_began("its container was started a second time", pod_layout.TWICE)
        _publish(pod_layout.READY, sys.executable)
        addresses = self._addresses()
        if addresses is None:
            return self._stopped_before()
        self._unpack_files()
        self._start(placed(self.payload, addresses))
        self._wait(lambda: self.ended, None)
        return self._finish()

    # Before the task

    def _claim(self) -> bool:
        """An emptyDir outlives its container: where ours was begun before, the task is not begun again."""
        try:
            os.close(os.open(os.path.join(pod_layout.RUN, "begun"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            return False
        return True

    def _addresses(self) -> list[str] | None:
        """Where all tasks are, once the driver of the run says it; None if the task is to stop before that."""
        if self.payload.tasks == 1:
            return [os.environ[pod_layout.ADDRESS_VARIABLE]]
        told: list[list[str]] = []

        def known() -> bool:
            text = _told(pod_layout.PEERS)
            if text:
                told.append(json.loads(text))
            return bool(told) or self.stopping

        self._wait(known, None)
        return None if self.stopping else told[0]

    def _unpack_files(self) -> None:
        files = os.path.join(pod_layout.GIVEN, pod_layout.FILES)
        if not os.path.exists(files):
            return
        import tarfile

        with tarfile.open(files) as archive:
            for entry in archive.getmembers():
                entry.uid, entry.gid, entry.uname, entry.gname = os.getuid(), os.getgid(), "", ""
            # The user's own code, in the user's own container and as its user; the strict unpacker does not travel.
            archive.extractall(os.path.join(self.folder, layout.WORK))  # noqa: S202

    def _start(self, payload: Payload) -> None:
        role = payload.roles[self.number]
        peers = os.path.join(pod_layout.ATTEMPT, layout.PEERS)
        place_record(peers, {"peers": list(payload.peers)})
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
        work = os.path.join(self.folder, layout.WORK)
        task = Task(
            role=role.name,
            index=self.index,
            folder=self.folder,
            work_dir=work,
            environment={**inherited, **payload.shared, **role.environments[self.index]},
            main=role.main,
            start=role.start,
            exit=role.exit,
            secrets=payload.secrets,
            hidden=payload.hidden,
            inherited=inherited,
            attempt_folder=pod_layout.ATTEMPT,
            checkpoint=role.environments[self.index]["PAI_CHECKPOINT_DIR"],
            retries=role.retries,
            retry_delay=payload.retry_delay,
            grace=payload.grace,
            hold_seconds=payload.hold_seconds,
            hold_command=payload.hold_command,
            outlives_power=False,
        )
        self.began = time.monotonic()
        self.shim = fork_shim()
        if self.shim == 0:
            os.close(self.alive)
            run_and_exit(task, self.channel.writer, self.liveness, memory_kills.PodShim)
        if self.stopping:
            processes.send([self.shim], signal.SIGTERM)

    # While it runs

    def _listen(self) -> None:
        wake, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._heard_term)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self.wake = wake
        self.poller = select.poll()
        for descriptor in (wake, self.channel.fileno()):
            self.poller.register(descriptor, select.POLLIN)

    def _heard_term(self, *_: object) -> None:
        self.terminated = True

    def _wait(self, done: Callable[[], bool], seconds: float | None) -> None:
        """Serve whatever comes until something is so, or time is over."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            self._reap()
            self._orders()
            if done() or (until is not None and time.monotonic() >= until):
                return
            for descriptor, _ in self.poller.poll(milliseconds(LOOK_SECONDS)):
                if descriptor == self.wake:
                    try:
                        os.read(self.wake, 4096)
                    except BlockingIOError:
                        pass  # it was read already
                else:
                    self._pass_on()

    def _orders(self) -> None:
        """What the pod is told, and what it has to do by itself."""
        now = bool(_told(pod_layout.NOW))
        text = _told(pod_layout.ORDER)
        if text and not self.stopping:
            order: Mapping[str, Any] = json.loads(text)
            self._stop(str(order["why"]), float(order["grace"]))
        elif self.terminated and not self.stopping:
            self._stop(PREEMPTED, self.payload.grace)  # another program deletes the pod, and gives no reason
        elif self._too_long() and not self.stopping:
            self._stop(TIMEOUT, self.payload.grace)
        if now and not self.killing:
            self.killing = True
            self._stop("user", 0)
            os.close(os.open(os.path.join(pod_layout.ATTEMPT, layout.KILL), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._wake_shim()

    def _too_long(self) -> bool:
        """The driver of the run ends it a little earlier; this is for a run without one."""
        limit = self.payload.max_run_seconds
        return bool(limit and self.began) and time.monotonic() - self.began > limit + self.payload.grace + 5

    def _stop(self, why: str, grace: float) -> None:
        self.stopping = True
        claim_stop(pod_layout.ATTEMPT, why, grace)
        self._wake_shim()

    def _wake_shim(self) -> None:
        if self.shim and not self.ended:
            processes.send([self.shim], signal.SIGTERM)

    def _pass_on(self) -> None:
        for word in self.channel.take():
            if word["event"] == "grown":
                self._print(word["attempt"])
            else:
                if word["event"] in ("retry", "held"):
                    self._print_all()
                append_line(os.path.join(self.folder, layout.DRIVER_EVENTS), word)

    def _print_all(self) -> None:
        for number in range(layout.begun_attempts(self.folder)):
            self._print(number)

    def _print(self, attempt: int) -> None:
        """What is new in the log of an attempt, masked as it is there, to our own standard output."""
        path = os.path.join(layout.task_attempt_folder(self.folder, attempt), layout.ALL)
        offset = self.printed.get(attempt, 0)
        try:
            with open(path, "rb", buffering=0) as log:
                log.seek(offset)
                while True:
                    data = log.read(CHUNK)
                    if not data:
                        break
                    offset += len(data)
                    while data:
                        data = data[os.write(1, data) :]
        except OSError:
            pass  # a copy for people; the log itself is what counts
        self.printed[attempt] = offset

    def _reap(self) -> None:
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.shim:
                self._pass_on()
                self.ended = True

    # The end

    def _finish(self) -> int:
        self._print_all()
        final = TaskRecord.final(self.folder)
        if final is None:
            processes.kill_all(os.getpid())
            final = TaskRecord("lost", reason="its shim was killed", ended=time.time())
            code = pod_layout.LOST_CODE
        else:
            code = _exit_code(final)
        return self._say_final(final, code)

    def _stopped_before(self) -> int:
        found = TaskRecord("stopped", phase="start", reason="was stopped before it ran", attempt=0, ended=time.time())
        place_record(os.path.join(self.folder, layout.FINAL), found.to_json())
        return self._say_final(found, pod_layout.STOPPED_CODE)

    def _never_began(self, reason: str, code: int) -> int:
        _say_last(TaskRecord("lost", reason=reason, ended=time.time()), {})
        return code

    def _say_final(self, final: TaskRecord, code: int) -> int:
        """First to the pod's status, then to the process that copies the folder; it gets a while to fetch it."""
        _say_last(final, self.printed)
        append_line(os.path.join(self.folder, layout.DRIVER_EVENTS), {"event": "final"})
        fetched = pod_layout.FETCHED
        until = time.monotonic() + self.payload.fetch_seconds
        self._wait(lambda: os.path.exists(fetched) or self.terminated or self.killing or time.monotonic() > until, None)
        return code


def _exit_code(final: TaskRecord) -> int:
    """As the task's, so that the cluster shows it; never 0 but for success."""
    if final.outcome == "succeeded":
        return 0
    if final.signal:
        return 128 + final.signal
    return final.exit_code or (pod_layout.STOPPED_CODE if final.outcome == "stopped" else 1)


def _say_last(final: TaskRecord, printed: Mapping[int, int]) -> None:
    """The record, and the sizes of the logs, as the container's last message; what does not fit loses its last lines first."""
    sizes = [printed[number] for number in sorted(printed)]
    for each in (final, final.replace(last_lines=final.last_lines[-2:]), final.replace(last_lines=[])):
        data = json.dumps({"final": each.to_json(), "printed": sizes}).encode("ascii")
        if len(data) <= pod_layout.MOST_SAID:
            break
    else:
        short = final.replace(last_lines=[], reason=(final.reason or "")[:500], failed_at=None)
        data = json.dumps({"final": short.to_json(), "printed": sizes[-20:]}).encode("ascii")
    try:
        descriptor = os.open(pod_layout.TERMINATION, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    except OSError:
        return  # a root file system that cannot be written; the folder has it as well
    os.write(descriptor, data)
    os.close(descriptor)


def _told(name: str) -> str:
    try:
        with open(os.path.join(pod_layout.TOLD, name), encoding="utf-8") as stream:
            return stream.read()
    except OSError:
        return ""


def _publish(path: str, text: str) -> None:
    """A file that is there whole or not at all."""
    with open(f"{path}.new", "w", encoding="utf-8") as stream:
        stream.write(text)
    os.rename(f"{path}.new", path)


def main(words: list[str]) -> int:  # noqa: ARG001  # as every part of the program
    """The whole life of a pod, as a program."""
    try:
        with open(os.path.join(pod_layout.GIVEN, pod_layout.PAYLOAD), "rb") as stream:
            payload = Payload.unpacked(stream.read())
    except (OSError, ValueError) as error:
        os.write(2, f"pailot: the pod was not told what to run: {error}\n".encode())
        return pod_layout.BAD_PAYLOAD
    role, index = int(os.environ[pod_layout.ROLE_VARIABLE]), int(os.environ[pod_layout.INDEX_VARIABLE])
    return Pod(payload, role, index).run()
