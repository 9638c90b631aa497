"""The driver of one attempt, as the batch script of its allocation: starts the steps, watches them, ends them. What to do when
is decided by `lifecycle.attempt_machine`.

Two files tie it to the follower of the job, on whichever machine that is: `orders` is written there and read here, `events` the
other way round. Both are there before the job is: a network file system shows what an existing file gained, but may not
show a new one for a minute. Truth is in the records of the shims; how srun ended tells nothing.
"""

from __future__ import annotations

import binascii
import fcntl
import json
import os
import re
import select
import signal
import sys
import time

from ...job_values import Options
from ...lifecycle import retry, states
from ...lifecycle.attempt_machine import (
    AllGone,
    AttemptMachine,
    AttemptOver,
    AttemptTerms,
    CannotRun,
    ClusterEnds,
    GiveUp,
    LimitNear,
    StopAsked,
    StopStands,
    StopTasks,
    TaskEnded,
    TaskLost,
    TimePassed,
)
from ...lifecycle.completion import Outcome, RoleRule, Verdict
from ...lifecycle.waits import milliseconds
from ...runfolder import layout
from ...runfolder.atomic_json import append_line, read_lines, read_record, write_record
from ...runfolder.plan import Plan
from ...runfolder.plan_codec import PlanFormatError
from ...runfolder.records import Placement, TaskRecord
from ...runfolder.removing import remove_tree
from ...runfolder.stop_reason import claim_stop
from ...values import Value
from ..folder_copy import tree
from ..task_spec import task_of_plan
from . import allocation, step
from .payload import Payload, PrivatePart
from .unshared import unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .payload import TaskNeeds

LOOK_SECONDS = 5.0
"""How often the orders are read without a signal that asks for it."""
END_SECONDS = 30.0
"""Beyond the grace: then what does not end is left to Slurm."""


NOTHING = Payload("", Plan("", "", {}, 0, "", "", True, Options()), {}, {}, {}, ())
"""What is there where the file is not."""


class Unsealable(Exception):
    """The private part of the payload cannot be opened here."""


class Driver:
    """Drives the attempt in a folder, in this allocation."""

    def __init__(self, folder: str, environment: dict[str, str], root: str = "") -> None:
        self.folder = folder
        self.root = root
        """Where no home is shared: our own folder on this node, which holds what came along, and `folder`."""
        self.key = environment.pop("PAILOT_KEY", "")
        self.packages = environment.pop("PAILOT_PACKAGES", "")
        self.environment = environment
        self.job = environment.get("SLURM_JOB_ID", "")
        self.payload = _payload(folder)
        self.private = PrivatePart()
        self.events = os.path.join(folder, layout.DRIVER_EVENTS)
        self.tasks: list[Runner] = []
        self.machine: AttemptMachine
        self.stop: dict[str, object] = {}
        """What every step was told about stopping."""
        self.signals: set[int] = set()
        self.ending = self.went = self.given_up = False
        self.wake = -1

    def run(self) -> int:
        """Run to the result; return the exit status of the batch script."""
        lock = self._only_one()
        try:
            if self._began_before():
                if self.root:
                    self._listen()
                    self._wait_until_fetched()
                return 0
            self._note("began", job=self.job, host=step.node_name(), pid=os.getpid(), python=_python())
            self._listen()
            self.machine = AttemptMachine(self._terms(), time.monotonic())
            self._read_orders()
            if self.payload is NOTHING:
                self._tell(CannotRun("there is no payload"))
            if not self.stop:
                self._start()
                self._drive()
            status = self._finish()
            if self.root:
                self._wait_until_fetched()
            return status
        finally:
            os.close(lock)

    def _terms(self) -> AttemptTerms:
        plan = self.payload.plan
        return AttemptTerms(
            tuple(
                RoleRule(role.name, role.instances, role.completion.min_failed, role.completion.min_succeeded)
                for role in plan.roles.values()
            ),
            plan.options.grace_seconds,
            plan.options.max_run_seconds,
            without_result=retry.PLATFORM,
            end_seconds=END_SECONDS,
        )

    def _tell(self, event: Value) -> None:
        """Tell the machine what happened, and do what it says."""
        for instruction in self.machine.handle(event):
            if isinstance(instruction, StopTasks):
                self._stop_tasks(instruction)
            else:
                assert isinstance(instruction, GiveUp)
                self._give_up()

    # Once only

    def _only_one(self) -> int:
        """While another driver of this attempt lives, Slurm having started the job twice, we wait for its end."""
        lock = os.open(os.path.join(self.folder, layout.DRIVER_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            pass  # this file system has no locks
        return lock

    def _began_before(self) -> bool:
        """What was begun is never begun again: a second start by Slurm ends the attempt, and the next one is a new job."""
        earlier = [each["event"] for each in read_lines(self.events)]
        if "result" in earlier:
            return True
        restarts = self.environment.get("SLURM_RESTART_COUNT", "0")
        if "began" not in earlier and (not self.root or restarts in ("", "0")):
            return False
        how = "requeued it" if restarts not in ("", "0") else "started it twice"
        verdict = Verdict(states.FAILED, f"Slurm {how}, and what was begun is not begun again in place")
        self._result(Outcome(retry.PLATFORM, verdict))
        return True

    # Starting

    def _start(self) -> None:
        try:
            self._take_private()
        except Unsealable as error:
            with open(os.path.join(self.folder, "unsealable"), "w"):
                pass  # the next attempt is not sealed
            self._tell(CannotRun(f"{error}; the next attempt does without"))
            return
        rooms = allocation.slots(self.environment)
        alone = len(self.payload.tasks) == 1
        for number, task in enumerate(self.payload.tasks):
            slot = rooms[task.component].pop(0)
            self.tasks.append(Runner(self, number, task, slot, alone=alone))
        for runner in self.tasks:
            runner.launch()

    def _take_private(self) -> None:
        """What no readable file holds, put where it belongs. Its file is gone before the first task begins."""
        self.private = private = self._open_private()
        payload = self.payload.replace(environment={**self.payload.environment, **private.environment})
        if private.texts:
            pattern = re.compile(re.escape(payload.token) + r"\{s[0-9]+\}")
            payload = payload.changed(lambda text: pattern.sub(lambda match: private.texts[match[0]], text))
        self.payload = payload

    def _open_private(self) -> PrivatePart:
        path = os.path.join(self.folder, layout.SECRETS_ONCE)
        try:
            with open(path, "rb") as stream:
                data = stream.read()
        except FileNotFoundError:
            return PrivatePart()
        os.unlink(path)
        return PrivatePart.from_bytes(self._unsealed(data) if self.key else data)

    def _unsealed(self, data: bytes) -> bytes:
        """By a package of the submitter, which this Python can load if it is the same version."""
        sys.path.append(self.packages)
        try:
            from cryptography.fernet import Fernet

            return Fernet(self.key).decrypt(data)
        except Exception as error:  # whatever a package made for another machine raises, its text is what helps
            here = f"{_python()} on {step.node_name()}"
            raise Unsealable(f"{here} cannot open the sealed secrets ({type(error).__name__})") from None
        finally:
            sys.path.remove(self.packages)

    def _go(self) -> None:
        """All steps are there: now every address and port is known, and the tasks begin."""
        self.went = True
        payload = self.payload
        places = {}
        for runner in self.tasks:
            where = runner.placed
            places[f"h{runner.number}"] = where.address
            for label, numbers in where.ports.items():
                for position, number in enumerate(numbers):
                    places[f"p{runner.number}.{label}.{position}"] = str(number)
        pattern = re.compile(re.escape(payload.token) + r"\{([^{}]*)\}")

        def filler(root: str) -> Callable[[str], str]:
            known = {**places, "root": root}
            return lambda text: pattern.sub(lambda match: known[match[1]], text)

        named = {f"{each.role}:{each.index}": each for each in self.tasks}
        peers = [
            {"role": each.role, "index": each.index, "address": each.placed.address, "ports": each.placed.ports}
            for each in self.tasks
        ]
        listed = {"peers": peers}
        write_record(os.path.join(self.folder, layout.PEERS), listed, durable=False)
        placement = Placement(
            slurm_job=self.job,
            host=self.tasks[0].placed.host,
            hosts={name: each.placed.host for name, each in named.items()},
            ports={name: each.placed.ports for name, each in named.items()},
            components={name: each.slot.group for name, each in named.items() if each.slot.group >= 0},
        )
        write_record(os.path.join(self.folder, layout.PLACEMENT), placement.to_json(), durable=False)
        self._note("placed", hosts={name: each.placed.host for name, each in named.items()})
        shared: dict[str, str] = {}
        fill = filler("")
        for runner in self.tasks:
            if self.root:  # then each has folders of its own
                fill = filler(runner.placed.root)
            if self.root or not shared:
                shared = {name: fill(value) for name, value in payload.shared.items()}
            own = {name: fill(value) for name, value in runner.task.environment.items()}
            runner.go({**shared, **own}, fill, listed if self.root else None)

    # Driving

    def _drive(self) -> None:
        while any(each.alive or each.again_at for each in self.tasks):
            self._serve()
            self._read_orders()
            self._look_at_signals()
            self._tell(TimePassed(time.monotonic()))
            if self.given_up:
                return
            if not self.went and not self.stop and all(each.place is not None for each in self.tasks):
                self._go()

    def _serve(self) -> None:
        poller = select.poll()
        poller.register(self.wake, select.POLLIN)
        readers = {}
        for each in self.tasks:
            if each.reader >= 0:
                readers[each.reader] = each
                poller.register(each.reader, select.POLLIN)
            if each.unsent:
                poller.register(each.writer, select.POLLOUT)
                readers[each.writer] = each
        now = time.monotonic()
        moments = [now + LOOK_SECONDS, self.machine.moment, *(each.again_at for each in self.tasks)]
        for descriptor, _ in poller.poll(milliseconds(min(moment for moment in moments if moment is not None) - now)):
            if descriptor == self.wake:
                os.read(self.wake, 4096)
            else:
                readers[descriptor].serve(descriptor)
        for each in self.tasks:
            if each.again_at is not None and each.again_at <= time.monotonic():
                each.launch()

    def happened(self, runner: Runner, event: dict[str, Any]) -> None:
        """A step says something."""
        kind = event["event"]
        if kind == "unfit":
            self._tell(CannotRun(f"{runner.name} cannot start: {event['reason']}", runner.role, runner.index))
        elif kind in ("claimed", "running", "retry", "held"):
            event.pop("lastLines", None)
            self._note(**event)

    def ended(self, runner: Runner, final: TaskRecord | None) -> None:
        """A task has ended for good; without a record it was lost."""
        role, index = runner.role, runner.index
        if final is None:
            reason = "its step ended without a record"
            self._note("task", role=role, index=index, state="lost", final=TaskRecord("lost", reason=reason).to_json())
            self._tell(TaskLost(role, index, reason))
        else:
            self._note("task", role=role, index=index, state="ended", final=final.to_json())
            self._tell(TaskEnded(final.task_end(role, index)))

    def never_started(self, runner: Runner) -> None:
        """srun could not start a step, time after time."""
        reason = f"{runner.name} could not be started: srun failed {runner.tries} times ({runner.last_words()})"
        self._tell(CannotRun(reason, runner.role, runner.index))

    # Stopping

    def _stop_tasks(self, instruction: StopTasks) -> None:
        """The reason is written first, then every step is told."""
        grace, now = instruction.grace_seconds, instruction.now
        standing = claim_stop(self.folder, instruction.why, grace)
        self.stop = {"why": standing, "grace": grace, "now": now}
        if now:
            with open(os.path.join(self.folder, layout.KILL), "w"):
                pass
        self._note("stopping", why=standing, now=now)
        self.machine.handle(StopStands(standing, time.monotonic()))
        for each in self.tasks:
            each.again_at = None
            each.say({"stop": self.stop})

    def _give_up(self) -> None:
        self.given_up = True
        self._note("given-up", tasks=[each.name for each in self.tasks if each.alive])
        for each in self.tasks:
            each.kill()

    def _read_orders(self) -> None:
        for order in read_lines(os.path.join(self.folder, layout.DRIVER_ORDERS)):
            if order["order"] == "stop":
                self._tell(StopAsked(order["why"], float(order["grace"]), bool(order["now"])))

    def _look_at_signals(self) -> None:
        if signal.SIGUSR2 in self.signals:
            self._tell(LimitNear(self._moment_of_limit(), "it was stopped before it reached Slurm's time limit for the job"))
        if signal.SIGTERM in self.signals and not self.ending:
            # Slurm ends the job, and will kill us soon. The reason is known only afterwards: the follower of the job asks for it.
            self.ending = True
            if self.machine.outcome is None:
                self._note("ending")
            self._tell(ClusterEnds("it was ended by Slurm"))
        self.signals.clear()

    def _moment_of_limit(self) -> float:
        """Slurm warns up to a minute early; where it says when the job has to end, that minute is used."""
        try:
            left = float(self.environment["SLURM_JOB_END_TIME"]) - time.time() - self.payload.plan.options.grace_seconds - 10
        except (KeyError, ValueError):
            left = 0
        return time.monotonic() + left

    # The end

    def _finish(self) -> int:
        (over,) = self.machine.handle(AllGone())
        assert isinstance(over, AttemptOver)
        return self._result(over.outcome)

    def _result(self, outcome: Outcome) -> int:
        verdict = outcome.verdict
        self._note(
            "result",
            durable=True,
            cause=outcome.cause,
            state=verdict.state,
            reason=verdict.reason,
            role=verdict.role,
            index=verdict.index,
            exitCode=verdict.exit_code,
        )
        if verdict.state == states.SUCCEEDED:
            return 0
        code = verdict.exit_code or 0
        return code if 0 < code < 126 else 1

    # Listening and telling

    def _wait_until_fetched(self) -> None:
        """Our folder goes with us: the login node has to have a copy, but we do not wait for ever."""
        until = time.monotonic() + self.payload.fetch_seconds
        while not os.path.exists(os.path.join(self.root, "fetched.json")):
            left = until - time.monotonic()
            if left <= 0:
                break
            if select.select([self.wake], [], [], min(left, 1.0))[0]:
                os.read(self.wake, 4096)
        remove_tree(self.root, ignore_errors=True)

    def _listen(self) -> None:
        self.wake, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, lambda number, _: self.signals.add(number))
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def _note(self, event: str, *, durable: bool = False, **details: Any) -> None:
        append_line(self.events, {"at": time.time(), "event": event, **details}, durable=durable)


class StepPlace(Value):
    """Where a step runs: its node, and what it reserved there."""

    host: str
    address: str
    ports: Mapping[str, list[int]]
    root: str


class Runner:
    """One task as the driver sees it: its step, started by srun, or forked where the job has but one task."""

    def __init__(self, driver: Driver, number: int, task: TaskNeeds, slot: allocation.Slot, *, alone: bool) -> None:
        self.driver, self.number, self.task, self.slot, self.alone = driver, number, task, slot, alone
        self.role, self.index = task.role, task.index
        self.name = f"{self.role}:{self.index}"
        self.folder = layout.task_folder(driver.folder, self.role, self.index)
        self.pid = 0
        self.reader = self.writer = -1
        self.heard = b""
        self.unsent = b""
        self.place: StepPlace | None = None
        self.begun = self.over = False
        self.tries = 0
        self.again_at: float | None = None

    @property
    def alive(self) -> bool:
        return self.pid > 0

    @property
    def placed(self) -> StepPlace:
        """Where the step is, once it has said so."""
        assert self.place is not None
        return self.place

    def launch(self) -> None:
        self.again_at = None
        self.tries += 1
        self.heard, self.unsent, self.place = b"", b"", None
        wanted = {"ports": self.task.ports, "portBase": self.task.port_base}
        theirs_in, self.writer = os.pipe2(os.O_CLOEXEC)
        self.reader, theirs_out = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        if self.alone:
            self.pid = self._fork(wanted, theirs_in, theirs_out)
        else:
            self.pid = self._srun(wanted, theirs_in, theirs_out)
        os.close(theirs_in)
        os.close(theirs_out)

    def go(self, environment: dict[str, str], fill: Callable[[str], str], peers: Mapping[str, object] | None) -> None:
        driver, payload, task = self.driver, self.driver.payload, self.task
        role, needs = payload.plan.roles[self.role], payload.roles[self.role]
        told = task_of_plan(
            role,
            payload.plan.options,
            index=self.index,
            folder=fill(task.folder),
            work_dir=fill(task.work),
            checkpoint=fill(task.checkpoint),
            environment=environment,
            attempt_folder=os.path.join(self.placed.root, "attempt") if driver.root else driver.folder,
            wrapper=tuple([fill(each) for each in (needs.wrapper if task.wrapper is None else task.wrapper)]),
            script_on_input=bool(needs.wrapper),
            secrets=driver.private.secrets,
            hidden=driver.private.hidden,
            rotate_bytes=payload.rotate_bytes,
            foreign_stop="user",
        )
        self.begun = True
        self.say({"task": told.to_json(), "base": payload.environment, "peers": peers})

    def say(self, word: Mapping[str, object]) -> None:
        if self.writer >= 0:
            self.unsent += json.dumps(word).encode("ascii") + b"\n"
            self._send()

    def serve(self, descriptor: int) -> None:
        if descriptor == self.writer:
            self._send()
            return
        try:
            data = os.read(self.reader, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self._step_ended()
            return
        *lines, self.heard = (self.heard + data).split(b"\n")
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # not ours: srun, or a prolog of the site
            if event["event"] == "ready":
                self.place = StepPlace(event["host"], event["address"], event["ports"], event["root"])
            elif event["event"] == "piece":
                tree.put(self.driver.folder, event["path"], event["offset"], binascii.a2b_base64(event["data"]))
            elif event["event"] == "final":
                self._ended(TaskRecord.from_json(event["final"]))
            else:
                self.driver.happened(self, event)

    def kill(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self._step_ended()

    def last_words(self) -> str:
        try:
            with open(os.path.join(self.folder, layout.SRUN_LOG), encoding="utf-8", errors="replace") as stream:
                return (stream.read().strip().splitlines() or ["it said nothing"])[-1]
        except OSError:
            return "it said nothing"

    def _send(self) -> None:
        try:
            while self.unsent:
                self.unsent = self.unsent[os.write(self.writer, self.unsent) :]
        except BlockingIOError:
            pass  # the rest when there is room
        except OSError:
            self.unsent = b""  # the step is gone, as its output will tell

    def _step_ended(self) -> None:
        """The step is gone. If it never began its task it is tried again; else the record tells, or the task was lost."""
        os.close(self.reader)
        os.close(self.writer)
        self.reader = self.writer = -1
        self.unsent = b""
        os.waitpid(self.pid, 0)
        self.pid = 0
        if self.over or self.driver.stop:
            if not self.over and self.begun:
                self._ended(TaskRecord.final(self.folder))
            return
        if self.begun:
            self._ended(TaskRecord.final(self.folder))
        else:
            seconds = retry.launch_delay(self.tries)
            if seconds is None:
                self.driver.never_started(self)
            else:
                self.again_at = time.monotonic() + seconds

    def _ended(self, final: TaskRecord | None) -> None:
        if not self.over:
            self.over = True
            self.driver.ended(self, final)

    def _fork(self, wanted: Mapping[str, object], words_in: int, words_out: int) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                for descriptor in (self.reader, self.writer):
                    os.close(descriptor)
                step.Step(wanted, words_in, words_out, self.driver.root).run()
            except BaseException:  # the child must not go on as a second driver; its words go to driver.log
                import traceback

                os.write(2, traceback.format_exc().encode())
            finally:
                os._exit(0)
        return pid

    def _unpacking(self, wanted: str) -> list[str]:
        """The step of a node that sees none of our folders: what it needs is the first that it hears from us."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        with open(os.path.join(self.driver.root, "along.tgz"), "rb") as stream:
            along = stream.read()
        self.unsent = b"%012d" % len(along) + along
        name = f"pailot-{self.driver.job}-"
        return ["sh", "-c", unpack.FIND, sys.executable, unpack.STEP, wanted, self.driver.payload.node_folder, name]

    def _srun(self, wanted: Mapping[str, object], words_in: int, words_out: int) -> int:
        payload = self.driver.payload
        resources = payload.plan.roles[self.role].resources
        command = [sys.executable, "-I", "-S", "-B", sys.path[0], "step", json.dumps(wanted)]
        if self.driver.root:
            command = self._unpacking(json.dumps(wanted))
        words = allocation.srun(
            self.slot,
            name=f"{self.role}.{self.index}",
            cpus=resources.cpu,
            memory_mb=resources.memory_mb,
            gpus=payload.roles[self.role].gres,
            command=command,
        )
        log = os.open(os.path.join(self.folder, layout.SRUN_LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        files = [(os.POSIX_SPAWN_DUP2, words_in, 0), (os.POSIX_SPAWN_DUP2, words_out, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
        signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD)
        try:
            return os.posix_spawnp(words[0], words, self.driver.environment, file_actions=files, setpgroup=0, setsigdef=signals)
        finally:
            os.close(log)


def _payload(folder: str) -> Payload:
    try:
        return Payload.from_json(read_record(os.path.join(folder, layout.PAYLOAD)) or {})
    except (KeyError, PlanFormatError):
        return NOTHING


def ending(state: str, asked: bool) -> Outcome:
    """What a state of Slurm's means for an attempt that has no result of its own; `asked`: we had asked it to stop."""
    state = state.rstrip("+").partition(" ")[0].partition(",")[0]
    if asked:
        return Outcome(retry.STOPPED, Verdict(states.STOPPED, "stopped by the user"))
    if state in ("TIMEOUT", "DEADLINE"):
        return Outcome(retry.USER, Verdict(states.FAILED, "Slurm ended it at its time limit"))
    if state == "PREEMPTED":
        return Outcome(retry.PREEMPTED, Verdict(states.FAILED, "Slurm made room for another job"))
    if state == "OUT_OF_MEMORY":
        return Outcome(retry.USER, Verdict(states.FAILED, "Slurm ended it because it used more memory than it asked for"))
    if state == "NODE_FAIL":
        return Outcome(retry.PLATFORM, Verdict(states.FAILED, "a node of its allocation failed"))
    if state == "CANCELLED":
        return Outcome(retry.STOPPED, Verdict(states.STOPPED, "it was cancelled in Slurm (scancel)"))
    return Outcome(retry.PLATFORM, Verdict(states.FAILED, f"its driver ended without a result (Slurm says {state})"))


def _python() -> str:
    return "{} ({}.{}.{})".format(sys.executable, *sys.version_info)


def main(words: list[str]) -> int:
    """The whole attempt, as a program; `words` name its folder and, where no home is shared, that of this node."""
    folder, *roots = words
    if roots:
        write_record(os.path.join(roots[0], "driver.json"), {"pid": os.getpid()}, durable=False)
    return Driver(folder, dict(os.environ), *roots).run()
