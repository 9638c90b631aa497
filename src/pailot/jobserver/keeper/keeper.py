"""The keeper's loop: every job is a driver, a generator that is resumed when something happened to it."""

from __future__ import annotations

import _socket as socket
import gc
import heapq
import json
import os
import select
import signal
import struct
import time

from ...engines.preparation.child_registry import CHILDREN
from ...engines.registry import create as create_engine
from ...errors import PailotError
from ...lifecycle.completion import Verdict
from ...lifecycle.states import FAILED
from ...lifecycle.waits import LONGEST_WAIT_SECONDS, capped
from ...runtime.atomic_json import DISK_FULL, is_full, keep_reserve, write_record
from ...runtime.stop_reason import claim_stop
from ...userruns.driver import Driver, Watcher
from ...userruns.run_folder import JobFolder
from . import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...userruns.driver import Steps

PATIENCE_SECONDS = 60.0
"""So long a new keeper waits for its server."""
COLLECT_EVERY = 500
RESERVE_BYTES = 1 << 20
_PEER = struct.Struct("3i")


class Running(Watcher):
    """A job that is being driven, and what the server hears of it."""

    def __init__(self, keeper: Keeper, job: str) -> None:
        self.keeper, self.job = keeper, job
        self.driver: Driver | None = None
        self.steps: Steps[dict[str, Any]] | None = None
        self.lock: int | None = None
        self.moment: float | None = None
        self.descriptor: int | None = None
        self.watched = False

    def standing(self) -> dict[str, Any]:
        """How far the job is."""
        driver = self.driver
        if driver is None:
            return {}
        state = "WAITING" if driver.began is None else "STOPPING" if driver.stop_sent in ("user", "preempted") else "RUNNING"
        return {"state": state, "attempt": driver.number, "started": driver.began, "retries": dict(driver.retries)}

    def started(self, attempt: int, notes: list[str]) -> None:
        began = self.driver.began if self.driver is not None else None
        self.keeper.tell({"event": "started", "id": self.job, "attempt": attempt, "at": began or time.time()})

    def happened(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "job-retry":
            assert self.driver is not None
            self.keeper.tell({"event": "retry", "id": self.job, "retries": self.driver.retries, **_plain(event)})
        elif event["event"] in ("stopping", "waiting"):
            self.keeper.tell({"event": event["event"], "id": self.job, "reason": event.get("reason", "")})
        elif self.watched:
            self.keeper.tell({"event": "noted", "id": self.job})

    def grown(self, attempt: int, role: str, index: int, task_attempt: int) -> None:
        if self.watched:
            where = {"attempt": attempt, "role": role, "index": index, "taskAttempt": task_attempt}
            self.keeper.tell({"event": "grown", "id": self.job, **where})


class Server:
    """A connection from a server."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.inbox = messages.Inbox()
        self.outgoing = bytearray()


class Keeper:
    """Drives the jobs that servers hand to it, until it has neither jobs nor a server."""

    def __init__(self, home: str, engine: str = "local") -> None:
        self.home, self.engine = home, engine
        self.jobs: dict[str, Running] = {}
        self.by_engine: dict[Any, Running] = {}
        self.servers: dict[int, Server] = {}
        self.timers: list[tuple[float, int, Running]] = []
        self.serial = 0
        self.ended = 0
        self.met = False
        """Whether a server has ever come."""
        self.retired = False
        self.epoll = select.epoll()
        self.path = os.path.join(home, messages.SOCKET)
        self.born = time.monotonic()

    def run(self) -> None:
        """Until there is nothing left to do."""
        os.ftruncate(self.lock, 0)
        os.pwrite(self.lock, str(os.getpid()).encode(), 0)
        CHILDREN.crowded = True
        _many_files()
        import resource  # noqa: F401  # os.wait4 loads it, and else each shim would do so by itself

        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.wake = reader
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self.epoll.register(reader, select.EPOLLIN)
        _warm_up()
        gc.collect()
        gc.freeze()
        gc.disable()
        while self.jobs or self.servers or self._is_awaited():
            self._round()
        self._leave()

    # The socket

    def listen(self) -> bool:
        """Be reachable; False if this home has a keeper."""
        import fcntl

        self.lock = os.open(os.path.join(self.home, messages.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            keep_reserve(self.home, RESERVE_BYTES)
        except OSError:
            pass  # the disk is full already
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        before = os.umask(0o177)
        try:
            self.listener.bind(messages.socket_address(self.path))
        finally:
            os.umask(before)
        self.listener.listen(16)
        self.epoll.register(self.listener.fileno(), select.EPOLLIN)
        return True

    def _is_awaited(self) -> bool:
        return not self.met and not self.retired and time.monotonic() < self.born + PATIENCE_SECONDS

    def _leave(self) -> None:
        """Nobody can reach us from here on; who was on the way sees the connection closed, and starts another keeper."""
        if not self.retired:
            try:
                os.unlink(self.path)
            except OSError:
                pass
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                descriptor, _ = self.listener._accept()  # type: ignore[attr-defined]  # of the low-level module, which is small
            except BlockingIOError:
                return
            connection = socket.socket(fileno=descriptor)
            connection.setblocking(False)
            _, uid, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
            if uid not in (os.getuid(), 0):
                connection.close()
                continue
            self.met = True
            self.servers[connection.fileno()] = Server(connection)
            self.epoll.register(connection.fileno(), select.EPOLLIN)
            hello = {"event": "hello", "version": messages.VERSION, "pid": os.getpid(), "engine": self.engine}
            self._send(
                self.servers[connection.fileno()], {**hello, "jobs": {job: each.standing() for job, each in self.jobs.items()}}
            )

    def _hear(self, server: Server) -> None:
        while True:
            try:
                piece = server.connection.recv(1 << 18)
            except BlockingIOError:
                return
            except OSError:
                piece = b""
            if not piece:
                self._drop(server)
                return
            for content in server.inbox.feed(piece):
                self._obey(messages.read_order(content))

    def _drop(self, server: Server) -> None:
        descriptor = server.connection.fileno()
        self.epoll.unregister(descriptor)
        del self.servers[descriptor]
        server.connection.close()
        for each in self.jobs.values():
            each.watched = False

    def tell(self, news: Mapping[str, Any]) -> None:
        """To every server that listens; a server that comes later looks at the folders."""
        for server in list(self.servers.values()):
            self._send(server, news)

    def _send(self, server: Server, news: Mapping[str, Any]) -> None:
        if not server.outgoing:
            self.epoll.modify(server.connection.fileno(), select.EPOLLIN | select.EPOLLOUT)
        server.outgoing += messages.pack_news(news)

    def _flush(self, server: Server) -> None:
        try:
            sent = server.connection.send(server.outgoing)
        except BlockingIOError:
            return
        except OSError:
            self._drop(server)
            return
        del server.outgoing[:sent]
        if not server.outgoing:
            self.epoll.modify(server.connection.fileno(), select.EPOLLIN)

    # The loop

    def _round(self) -> None:
        for descriptor, event in self.epoll.poll(capped(self._timeout())):
            if descriptor == self.wake:
                _drain(self.wake)
                CHILDREN.reap()
            elif descriptor == self.listener.fileno():
                self._accept()
            elif descriptor in self.servers:
                server = self.servers[descriptor]
                if event & select.EPOLLOUT:
                    self._flush(server)
                if event & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR) and descriptor in self.servers:
                    self._hear(server)
            else:
                running = self.by_descriptor.get(descriptor)
                if running is not None:
                    self._resume(running)
        while CHILDREN.touched:
            engine = next(iter(CHILDREN.touched))
            del CHILDREN.touched[engine]
            running = self.by_engine.get(engine)
            if running is not None:
                self._resume(running)
        now = time.monotonic()
        while self.timers and self.timers[0][0] <= now:
            moment, _, running = heapq.heappop(self.timers)
            if running.moment == moment and running.steps is not None:
                self._resume(running)

    by_descriptor: dict[int, Running] = {}

    def _timeout(self) -> float:
        times = [self.timers[0][0] - time.monotonic()] if self.timers else []
        if not self.jobs and not self.servers:
            times.append(self.born + PATIENCE_SECONDS - time.monotonic())
        return max(0.0, min(times)) + 0.001 if times else LONGEST_WAIT_SECONDS

    def _resume(self, running: Running) -> None:
        if running.steps is None:
            return
        running.moment = None
        try:
            moment = next(running.steps)
        except StopIteration as end:
            self._finished(running, end.value)
            return
        except FileExistsError as error:
            # The attempt was begun by another keeper, or the order came twice: the folder tells how it went.
            self._finished(running, {"refused": f"this attempt was begun already ({error.filename})"})
            return
        except Exception as error:  # one job must not take all others with it
            self._failed(running, error)
            return
        self._watch(running)
        if moment is not None:
            running.moment = moment
            self.serial += 1
            heapq.heappush(self.timers, (moment, self.serial, running))

    def _watch(self, running: Running) -> None:
        assert running.driver is not None
        descriptor = running.driver.engine.changes()
        if descriptor == running.descriptor:
            return
        self._forget_descriptor(running)
        if descriptor is not None:
            self.epoll.register(descriptor, select.EPOLLIN)
            self.by_descriptor[descriptor] = running
            running.descriptor = descriptor

    def _forget_descriptor(self, running: Running) -> None:
        if running.descriptor is not None:
            self.by_descriptor.pop(running.descriptor, None)
            try:
                self.epoll.unregister(running.descriptor)
            except OSError:
                pass  # its engine has closed it
            running.descriptor = None

    # Orders

    def _obey(self, order: dict[str, Any]) -> None:
        what, job = order["do"], order.get("id", "")
        running = self.jobs.get(job)
        if what == "start":
            if running is None and not self.retired:
                self._start(job, order)
        elif what == "retire":
            self._retire()
        elif running is None:
            if what in ("stop", "preempt"):
                self.tell({"event": "unknown", "id": job})
        elif what == "stop":
            self._stop(running, order)
        elif what == "preempt":
            assert running.driver is not None
            running.driver.preempted = True
            self._resume(running)
        elif what == "watch":
            running.watched = bool(order["on"])

    def _start(self, job: str, order: dict[str, Any]) -> None:
        running = self.jobs[job] = Running(self, job)
        folder = JobFolder(order["folder"], durable=False, reserve=self.home)
        try:
            if not os.path.exists(folder.file("job.json")):
                folder.fill(order["job"], order["source"], order["plan_text"])
            elif folder.verdict() is not None:
                self._finished(running, {"refused": "this job has ended already"})
                return
            running.lock = folder.lock()
            if running.lock is None:
                raise PailotError("another process drives this job")

            def waiting(words: str) -> None:
                running.happened(folder.note("waiting", reason=words))

            engine = create_engine(self.engine, waiting)
            driver = running.driver = Driver(folder, order["plan"], engine, order["surroundings"], running)
            driver.first = order["attempt"]
            driver.retries = dict(order["retries"])
            driver.began = order["began"]
            driver.descriptors = (running.lock,)
            self.by_engine[engine] = running
            running.steps = driver.steps()
        except Exception as error:  # one job must not take all others with it
            if is_full(error):
                self._finished(running, _no_space(folder, order))
            else:
                self._failed(running, error)
            return
        self._resume(running)

    def _stop(self, running: Running, order: Mapping[str, Any]) -> None:
        driver = running.driver
        assert driver is not None
        grace = driver.plan.options.grace_seconds if order["grace"] is None else order["grace"]
        try:
            claim_stop(driver.folder.path, "user", grace, from_reserve=False)
        except OSError:
            driver.interrupts += 1  # the disk is full: what cannot be written is still done
        if order["now"]:
            driver.interrupts += 2
        self._resume(running)

    def _retire(self) -> None:
        """A server of another version has come: another keeper takes our place, our jobs go on to their end."""
        if self.retired:
            return
        import fcntl

        self.retired = True
        aside = os.path.join(self.home, f"keeper-{os.getpid()}.sock")
        os.rename(self.path, aside)
        self.path, self.retired = aside, True
        fcntl.flock(self.lock, fcntl.LOCK_UN)

    # Ends

    def _finished(self, running: Running, record: Mapping[str, Any]) -> None:
        self._let_go(running)
        kind = "again" if "again" in record else "refused" if "refused" in record else "ended"
        self.tell({"event": kind, "id": running.job, "record": record})
        self.ended += 1
        if self.ended % COLLECT_EVERY == 0:
            gc.collect()

    def _failed(self, running: Running, error: BaseException) -> None:
        """Our own mistake, or a full disk: nothing of the job goes on, and it counts as a failure of the platform."""
        import traceback

        note = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        os.write(2, f"{time.strftime('%F %T')} {running.job}: {note}\n".encode())
        driver = running.driver
        if driver is not None:
            shims = dict(getattr(driver.engine, "shims", {}))
            from ...runtime import processes

            for pid in shims:
                processes.kill_all(pid)
            processes.send(shims, signal.SIGKILL)
        words = str(error) if isinstance(error, PailotError) else f"{type(error).__name__}: {error}"
        self._let_go(running)
        self._note_failure(running, words)
        self.tell({"event": "failed", "id": running.job, "reason": words})

    def _note_failure(self, running: Running, words: str) -> None:
        if running.driver is None:
            return
        try:
            write_record(running.driver.folder.file("keeper-error.json"), {"reason": words, "at": time.time()}, durable=False)
        except OSError:
            pass  # it is in our own log

    def _let_go(self, running: Running) -> None:
        self._forget_descriptor(running)
        del self.jobs[running.job]
        running.steps = None
        if running.driver is not None:
            self.by_engine.pop(running.driver.engine, None)
            running.driver.engine.close()
        if running.lock is not None:
            os.close(running.lock)


def main(home: str, engine: str) -> None:
    """Be a keeper in a process of its own, whose parent ends as soon as it can be reached: the start of it is then over."""
    keeper = Keeper(home, engine)
    if not keeper.listen():
        os._exit(messages.TAKEN)
    if os.fork():
        os._exit(0)
    keeper.run()


def _warm_up() -> None:
    """Whatever each shim would else do for itself."""
    from ...lifecycle import exit_classes
    from ...runtime import cgroups, logs, masking  # noqa: F401  # loaded for the children
    from ...values import Value

    Value.make_all()
    cgroups.available()
    exit_classes.classify(exit_classes.End(1), "")


def _no_space(folder: JobFolder, order: Mapping[str, Any]) -> dict[str, Any]:
    """The end of a job for which not even a folder could be made; the server keeps it where that cannot be written either."""
    try:
        return folder.conclude(Verdict(FAILED, DISK_FULL), retries=order["retries"], started=order["began"])
    except OSError:
        return {"state": FAILED, "reason": DISK_FULL, "ended": time.time(), "retries": order["retries"], "attempts": 0}


def _drain(descriptor: int) -> None:
    try:
        os.read(descriptor, 4096)
    except BlockingIOError:
        pass  # read already


def _many_files() -> None:
    """Some descriptors for each job: as many as the system lets us have."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _plain(event: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in json.loads(json.dumps(event)).items() if key != "event"}
