"""The keeper's loop: every job is a driver, a generator that is resumed when something happened to it."""

from __future__ import annotations

import fcntl
import gc
import heapq
import json
import logging
import os
import resource
import select
import signal
import struct
import time

from ...engines.context_codec import context_of
from ...engines.contract import EngineContext
from ...engines.preparation.child_registry import CHILDREN
from ...engines.registry import create as create_engine
from ...errors import PailotError
from ...lifecycle import exit_classes
from ...lifecycle.completion import Verdict
from ...lifecycle.states import FAILED
from ...lifecycle.waits import LONGEST_WAIT_SECONDS, capped
from ...runfolder import journal, layout, plan_codec
from ...runfolder.atomic_json import DISK_FULL, is_full, keep_reserve, write_record
from ...runfolder.masking import mask_text
from ...runfolder.records import HandedOn, KeeperError, RunRecord, VerdictRecord
from ...runfolder.stop_reason import claim_stop
from ...runtime import cgroups, defects
from ...runtime.daemon import daemonize
from ...runtime.defects import is_of_the_machine
from ...runtime.quick_socket import sockets
from ...userruns.driver import Driver, Watcher
from ...userruns.run_folder import JobFolder
from ...values import Value
from .. import server_log
from . import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ...engines.contract import Engine, Steps
    from ...runfolder.journal import Event

PATIENCE_SECONDS = 60.0
"""How long a new keeper waits for its server."""
COLLECT_EVERY = 500
RESERVE_BYTES = 1 << 20
TROUBLE_SECONDS = 0.1
"""Between two rounds when one has failed: whatever woke us may do so again at once."""
_PEER = struct.Struct("3i")


class Running(Watcher):
    """A job that is being driven, and what the server hears of it."""

    def __init__(self, keeper: Keeper, job: str) -> None:
        self.keeper, self.job = keeper, job
        self.driver: Driver | None = None
        self.engine: Engine | None = None
        self.steps: Steps[VerdictRecord | HandedOn] | None = None
        self.lock: int | None = None
        self.moment: float | None = None
        self.descriptor: int | None = None
        self.watched = False
        self.request = ""
        """The id of the request that the last order goes back to."""

    def standing(self) -> dict[str, object]:
        """How far the job is."""
        driver = self.driver
        if driver is None:
            return {}
        state = "WAITING" if driver.began is None else "STOPPING" if driver.stopping in ("user", "preempted") else "RUNNING"
        return {"state": state, "attempt": driver.number, "started": driver.began, "retries": dict(driver.retries)}

    def started(self, attempt: int, notes: list[str]) -> None:
        began = self.driver.began if self.driver is not None else None
        self.log("job started", attempt=attempt)
        self.keeper.tell({"event": "started", "id": self.job, "attempt": attempt, "at": began or time.time()})

    def happened(self, event: Event) -> None:
        if event.kind == journal.JOB_RETRY:
            assert self.driver is not None
            self.keeper.tell({"event": "retry", "id": self.job, "retries": self.driver.retries, **_plain(event)})
        elif event.kind in (journal.STOPPING, journal.WAITING):
            self.keeper.tell({"event": event.kind, "id": self.job, "reason": event.reason})
        elif self.watched:
            self.keeper.tell({"event": "noted", "id": self.job})

    def log(self, message: str, level: int = logging.INFO, **fields: str | int | float | None) -> None:
        server_log.note(server_log.KEEPER, level, message, job=self.job, request=self.request, **fields)

    def grown(self, attempt: int, role: str, index: int, task_attempt: int) -> None:
        if self.watched:
            where = {"attempt": attempt, "role": role, "index": index, "taskAttempt": task_attempt}
            self.keeper.tell({"event": "grown", "id": self.job, **where})


class ServerLine:
    """A connection from a server."""

    def __init__(self, connection: sockets.socket) -> None:
        self.connection = connection
        self.inbox = messages.Inbox()
        self.outgoing = bytearray()


class Keeper:
    """Drives the jobs that servers hand to it, until it has neither jobs nor a server."""

    def __init__(self, home: str, engine: str = "local") -> None:
        self.home, self.engine = home, engine
        self.jobs: dict[str, Running] = {}
        self.by_engine: dict[Any, Running] = {}
        self.servers: dict[int, ServerLine] = {}
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
        CHILDREN.on_fault = self._owner_failed
        while True:
            try:
                if not (self.jobs or self.servers or self._is_awaited()):
                    break
                self._round()
            except Exception as error:  # of no job in particular: what is wrong stays so for a while, and the jobs go on
                defects.note(error, "the keeper")
                time.sleep(TROUBLE_SECONDS)
        self._leave()

    # The socket

    def listen(self) -> bool:
        """Be reachable; False if this home has a keeper."""
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
        self.listener = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM | sockets.SOCK_CLOEXEC | sockets.SOCK_NONBLOCK)
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
            connection = sockets.socket(fileno=descriptor)
            connection.setblocking(False)
            _, uid, _ = _PEER.unpack(connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, _PEER.size))
            if uid not in (os.getuid(), 0):
                connection.close()
                continue
            self.met = True
            self.servers[connection.fileno()] = ServerLine(connection)
            self.epoll.register(connection.fileno(), select.EPOLLIN)
            hello = {"event": "hello", "version": messages.VERSION, "pid": os.getpid(), "engine": self.engine}
            try:
                standing = {job: each.standing() for job, each in self.jobs.items()}
                self._send(self.servers[connection.fileno()], {**hello, "jobs": standing})
            except Exception:
                self._drop(self.servers[connection.fileno()])  # it comes again, instead of waiting for a word
                raise

    def _hear(self, server: ServerLine) -> None:
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
                self._take(content)

    def _take(self, content: bytes) -> None:
        """One order; what is wrong with it is the fault of its job."""
        job = ""
        try:
            order = messages.Order(content)
            job = order.job
            self._obey(*order.read())
        except Exception as error:  # one job must not take all others with it
            running = self.jobs.get(job)
            if running is not None:
                self._fail(running, error)
            else:
                self.tell({"event": "failed", "id": job, "reason": defects.note(error, job or "an order"), "defect": True})

    def _drop(self, server: ServerLine) -> None:
        descriptor = server.connection.fileno()
        if self.servers.pop(descriptor, None) is None:
            return  # while it was served
        try:
            self.epoll.unregister(descriptor)
        finally:
            server.connection.close()
        for each in self.jobs.values():
            each.watched = False

    def tell(self, news: Mapping[str, Any]) -> None:
        """To every server that listens; a server that comes later looks at the folders."""
        for server in list(self.servers.values()):
            try:
                self._send(server, news)
            except OSError:
                self._drop(server)  # it comes back, and looks at the folders

    def _send(self, server: ServerLine, news: Mapping[str, Any]) -> None:
        if not server.outgoing:
            self.epoll.modify(server.connection.fileno(), select.EPOLLIN | select.EPOLLOUT)
        server.outgoing += messages.pack_news(news)

    def _flush(self, server: ServerLine) -> None:
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
                self._serve(self.servers[descriptor], event)
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

    def _serve(self, server: ServerLine, event: int) -> None:
        """What a server says and is told; one that cannot be served is let go, and comes again."""
        try:
            if event & select.EPOLLOUT:
                self._flush(server)
            if event & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR) and server.connection.fileno() in self.servers:
                self._hear(server)
        except Exception as error:  # of the connection: those of jobs were heard before
            defects.note(error, "the keeper, for a server")
            if server.connection.fileno() in self.servers:
                self._drop(server)

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
            self._step(running, running.steps)
        except Exception as error:  # one job must not take all others with it
            self._fail(running, error)

    def _step(self, running: Running, steps: Steps[VerdictRecord | HandedOn]) -> None:
        try:
            moment = next(steps)
        except StopIteration as end:
            self._finished(running, end.value)
            return
        except FileExistsError:
            # The attempt was begun by another keeper, or the order came twice: the folder tells how it went.
            self._finished(running, None)
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

    def _obey(self, order: Mapping[str, Any], documents: list[str]) -> None:
        what, job = order["do"], order.get("id", "")
        running = self.jobs.get(job)
        if what == "start":
            if running is None and not self.retired:
                self._start(job, order, documents)
            elif running is not None and running.driver is not None and running.driver.began is not None:
                # The line to the server broke after the first order: it does not know that this has arrived.
                running.started(running.driver.number, [])
        elif what == "retire":
            self._retire()
        elif running is None:
            if what in ("stop", "preempt", "abort"):
                self.tell({"event": "unknown", "id": job})
        elif what == "stop":
            self._stop(running, order)
        elif what == "preempt":
            assert running.driver is not None
            running.driver.preempted = True
            self._resume(running)
        elif what == "watch":
            running.watched = bool(order["on"])
        elif what == "abort":
            self._end(running, order["reason"], defect=True)

    def _start(self, job: str, order: Mapping[str, Any], documents: list[str]) -> None:
        running = self.jobs[job] = Running(self, job)
        running.request = order.get("request", "")
        folder = JobFolder(order["folder"], durable=False, reserve=self.home)
        try:
            plan = documents[1]
            if not os.path.exists(folder.file(layout.JOB)):
                asked = RunRecord.from_json(order["job"])
                assert asked is not None  # made by our own server
                shown, _, *masked = documents
                folder.fill(asked, order["source"], plan_codec.with_whole_plan(shown, masked[0] if masked else plan))
            elif folder.verdict() is not None:
                self._finished(running, None)
                return
            running.lock = folder.lock()
            if running.lock is None:
                raise PailotError("another process drives this job")

            def waiting(words: str) -> None:
                running.happened(folder.note(journal.waiting(words)))

            engine = running.engine = create_engine(self.engine, EngineContext(waiting, many_runs=True))
            so_far = {"first": order["attempt"], "retries": order["retries"], "began": order["began"]}
            context = context_of(order["context"])
            driver = running.driver = Driver(folder, plan_codec.decode(plan), engine, context, running, **so_far)
            driver.descriptors = (running.lock,)
            self.by_engine[engine] = running
            running.steps = driver.steps()
        except Exception as error:  # one job must not take all others with it
            if is_full(error):
                self._finished(running, _no_space(folder, order))
            else:
                self._fail(running, error)
            return
        self._resume(running)

    def _stop(self, running: Running, order: Mapping[str, Any]) -> None:
        driver = running.driver
        assert driver is not None
        running.request = order.get("request") or running.request
        running.log("job to be stopped")
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

        self.retired = True
        aside = os.path.join(self.home, f"keeper-{os.getpid()}.sock")
        os.rename(self.path, aside)
        self.path, self.retired = aside, True
        fcntl.flock(self.lock, fcntl.LOCK_UN)

    # Ends

    def _finished(self, running: Running, record: VerdictRecord | HandedOn | None) -> None:
        """A job has ended, is to be started again, or is refused: it has ended, or its attempt was begun, already."""
        self._let_go(running)
        kind = "refused" if record is None else "again" if isinstance(record, HandedOn) else "ended"
        self.tell({"event": kind, "id": running.job, "record": record.to_json() if record else {}})
        if isinstance(record, VerdictRecord):
            running.log("job ended", state=record.state, exit_code=record.exit_code)
        else:
            running.log(f"job {kind}")
        self.ended += 1
        if self.ended % COLLECT_EVERY == 0:
            gc.collect()

    def _owner_failed(self, engine: Any, error: Exception) -> None:
        running = self.by_engine.get(engine)
        if running is None:
            defects.note(error, "a job that has ended")
        else:
            self._fail(running, error)

    def _fail(self, running: Running, error: Exception) -> None:
        """Something unforeseen happened to a job, or the machine lacks something: nothing of the job goes on, all others do.

        This is the last line of defence, so it expects that each of its own steps fails, too.
        """
        hidden = running.driver.context.hidden if running.driver is not None else ()
        if isinstance(error, PailotError) or is_of_the_machine(error):
            running.log("job cannot be driven on", logging.WARNING, error=mask_text(str(error), hidden))
            self._end(running, str(error), defect=False)
        else:
            self._end(running, defects.note(error, running.job, hidden=hidden), defect=True)

    def _end(self, running: Running, words: str, *, defect: bool) -> None:
        """End a job that cannot be driven on: a defect is its end, a want of the machine may pass."""
        told = {"event": "failed", "id": running.job, "reason": words, "defect": defect}
        steps: tuple[Callable[[], None], ...] = (
            lambda: self._kill_tasks(running),
            lambda: self._note_failure(running, words, defect=defect),
            lambda: self._let_go(running),
            lambda: self.tell(told),
        )
        for step in steps:
            try:
                step()
            except Exception as error:  # as above: what must be done is done below
                defects.note(error, running.job)
                if step is steps[-1]:
                    for server in list(self.servers.values()):
                        self._drop(server)  # it comes back, and looks at the folder
        self.jobs.pop(running.job, None)
        running.steps = None
        if running.lock is not None:
            os.close(running.lock)
            running.lock = None

    def _kill_tasks(self, running: Running) -> None:
        if running.driver is not None:
            running.driver.engine.abandon()

    def _note_failure(self, running: Running, words: str, *, defect: bool) -> None:
        """A server that is not there now finds it in the folder."""
        if running.driver is None:
            return
        record = KeeperError(words, defect, time.time())
        try:
            write_record(running.driver.folder.file(layout.KEEPER_ERROR), record.to_json(), durable=False)
        except OSError:
            pass  # it is in our own log

    def _let_go(self, running: Running) -> None:
        self._forget_descriptor(running)
        self.jobs.pop(running.job, None)
        running.steps = None
        engine, running.engine = running.engine, None
        lock, running.lock = running.lock, None
        try:
            if engine is not None:
                self.by_engine.pop(engine, None)
                engine.close()
        finally:
            if lock is not None:
                os.close(lock)


def main(home: str, engine: str, log_format: str = "text", log_level: str = "warning") -> None:
    """Be a keeper in a process of its own, whose parent ends as soon as it can be reached: the start of it is then over."""
    keeper = Keeper(home, engine)
    if not keeper.listen():
        os._exit(messages.TAKEN)
    daemonize(streams=())  # its words go to the log
    server_log.configure(server_log.KEEPER, server_log.LogOptions(log_format, log_level), os.path.join(home, messages.LOG))
    keeper.run()


def _warm_up() -> None:
    """Whatever each shim would else do for itself."""
    from ...runfolder import logs, masking  # noqa: F401  # loaded for the children

    Value.make_all()
    cgroups.available()
    exit_classes.classify(exit_classes.End(1), "")


def _no_space(folder: JobFolder, order: Mapping[str, Any]) -> VerdictRecord:
    """The end of a job for which not even a folder could be made; the server keeps it where that cannot be written either."""
    try:
        return folder.conclude(Verdict(FAILED, DISK_FULL), retries=order["retries"], started=order["began"])
    except OSError:
        return VerdictRecord(FAILED, DISK_FULL, time.time(), retries=order["retries"], attempts=0)


def _drain(descriptor: int) -> None:
    try:
        os.read(descriptor, 4096)
    except BlockingIOError:
        pass  # read already


def _many_files() -> None:
    """Some descriptors for each job: as many as the system lets us have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _plain(event: Event) -> dict[str, object]:
    return {key: value for key, value in json.loads(json.dumps(event.to_json())).items() if key != "event"}
