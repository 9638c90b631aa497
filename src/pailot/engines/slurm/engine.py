"""Attempts as Slurm jobs: submitted, then followed by what their driver writes; Slurm is asked only to be sure."""

from __future__ import annotations

import fcntl
import json
import os
import time

from ...data import ml_folders, ml_mounts
from ...lifecycle.completion import Outcome, Verdict
from ...lifecycle.states import FAILED, RUNNING, STOPPED, UNKNOWN, WAITING
from ...runfolder import layout
from ...runfolder.atomic_json import read_lines, write_record
from ...runfolder.engine_records import FollowedRecord, SlurmJobRecord
from ...runfolder.journal import Tail
from ...runfolder.records import TaskRecord
from ...runtime.slurm.driver import ending
from ...settings import Settings
from ..contract import Engine, EngineError
from ..local.engine import bring, copy_code, shared_data, whose_work
from ..observation import ENDED, LOST, Observation, Observed
from ..observation import RUNNING as TASK_RUNS
from ..preparation import workdir
from ..preparation.child_registry import CHILDREN
from ..traits import SLURM
from . import cluster_queries, code_bundle, payload, private_part, slurm_cli
from .container_wrappers import see, wrappers
from .enter import words
from .journal_tail import GrowingLogs, order_stop
from .pending_reasons import in_words
from .private_part import Sealed
from .squeue_cache import QUEUE
from .unshared.home import UnsharedHome, was_not_seen
from .user_notes import notes_on
from .wakeup_fd import FileNotice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from ...planning import Plan
    from ...progress import Progress
    from ..contract import Attempt, EngineContext, Steps
    from .sbatch_request import SlurmRequest

    Answer = TypeVar("Answer")

SETTLE_SECONDS = 2.0
"""How long after the end of a job its driver's last record may still be on its way through the file system."""
AWAY_SECONDS = 300.0
"""How long a controller that does not respond is asked again to take a job."""
FORCE_SECONDS = 45.0
LOCK_SECONDS = 60.0
SHORTEST_LOOK, LONGEST_LOOK = 0.25, 5.0
AT_ONCE = 4
"""At most this many calls of sbatch at the same time; more would only wait for the controller."""
_submitting: set[SlurmEngine] = set()
_line: list[SlurmEngine] = []
"""Those that wait for their turn."""


class SlurmEngine(Engine):
    """The attempts of one run on a Slurm cluster; several such may live in one process and share one question to Slurm."""

    name = "slurm"
    traits = SLURM

    def __init__(self, context: EngineContext | None = None) -> None:
        super().__init__(context)
        self.job = ""
        self.notice = FileNotice()
        self.settings = Settings()
        self.release()

    @classmethod
    def check(cls) -> None:
        slurm_cli.check()

    def release(self) -> None:
        """Between two attempts: the last one is not followed any more."""
        QUEUE.forget(self.job)
        self.job = self.comment = ""
        self.folder = ""
        self.journal: Tail | None = None
        self.logs: GrowingLogs | None = None
        self.submitted = self.began = self.over = False
        self.outcome: Outcome | None = None
        self.began_at = 0.0
        self.known = 0
        """So far into its journal another driver had followed the attempt."""
        self.ended_at: float | None = None
        self.fresh: list[Mapping[str, Any]] = []
        self.ends: list[Observed] = []
        self.states: dict[tuple[str, int], Observed] = {}
        self.asked_to_stop = ""
        self.requeued = False
        self.final_since: float | None = None
        self.force_at: float | None = None
        self.last_reason = ""
        self.interval = SHORTEST_LOOK
        self.command: slurm_cli.Command | None = None
        self.unshared: UnsharedHome | None = None
        """For an attempt whose nodes do not see its folder."""
        self.private = Sealed(b"")
        """What the driver of the attempt is told that no readable file holds."""

    # Starting

    def start(self, attempt: Attempt, stopped: Callable[[], bool]) -> Steps[Sequence[str]]:
        """Submit the attempt and wait until its driver has begun, or it is over; one that was submitted is only followed."""
        self.folder, self.comment = attempt.folder, _comment(attempt)
        notes: list[str] = []
        if not self._adopt(attempt):
            if attempt.context.run_as:
                raise EngineError("the slurm engine submits jobs as the user it runs as; it cannot run tasks as another")
            asked = cluster_queries.ask(attempt.plan, self.settings)
            self.unshared = UnsharedHome.wanted(self.settings, attempt)
            notes = notes_on(attempt, self.settings, away=self.unshared is not None)
            for name in (layout.DRIVER_ORDERS, layout.DRIVER_EVENTS):
                os.close(os.open(os.path.join(attempt.folder, name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            if self.unshared is not None:
                yield from self.unshared.pack(attempt, asked, lambda work, whose: self._beside(work, whose, stopped))
            else:
                yield from self._prepare(attempt, asked, stopped)
            yield from self._submit(attempt, asked, stopped)
        self._follow()
        while self._still_waits():
            if stopped() and not self.asked_to_stop:
                self.stop(attempt, attempt.plan.options.grace_seconds, "user")
            yield None
        if self.over and not self.began and self.asked_to_stop:
            raise EngineError("stopped while it waited in Slurm's queue")
        return notes

    def _still_waits(self) -> bool:
        self._look()
        return not (self.began or self.over)

    def _adopt(self, attempt: Attempt) -> bool:
        record = SlurmJobRecord.of(attempt.folder)
        if record is None and os.path.exists(os.path.join(attempt.folder, layout.PAYLOAD)):
            found = cluster_queries.find(self.comment)
            record = SlurmJobRecord(found) if found else None
        if record is None:
            return False
        self.job = record.job
        self.unshared = UnsharedHome.of_record(self.settings, attempt.folder, record, attempt.context.home)
        return True

    def _prepare(self, attempt: Attempt, asked: SlurmRequest, stopped: Callable[[], bool]) -> Steps[None]:
        """Everything in the folder that the driver needs, before Slurm hears of it."""
        plan = attempt.plan
        tasks = [(role.name, index) for role in plan.roles.values() for index in range(role.instances)]
        folders = [payload.task_folder(attempt, role, index) for role, index in tasks]
        for folder in folders:
            os.makedirs(folder, exist_ok=True)
        works = workdir.prepare(
            attempt.context.cwd,
            [os.path.join(folder, layout.WORK) for folder in folders],
            attempt.context.work_dir,
            [attempt.context.home],
        )
        places = dict(zip(tasks, works, strict=True))
        provided: Mapping[str, Mapping[str, str]] = {}
        if attempt.context.code:
            yield from self._beside(lambda: copy_code(attempt, works), attempt, stopped)
        if plan.options.code or any(role.provisions for role in plan.roles.values()):
            shared = yield from shared_data(attempt, self, stopped)
            provided = yield from self._beside(lambda: bring(attempt, works, shared), attempt, stopped)
        shown: Sequence[tuple[str, str]] = ()
        own: Mapping[tuple[str, int], ml_mounts.MlFolders] = {}
        if plan.options.channels:
            own = ml_mounts.make(
                plan.options.channels, os.path.join(attempt.folder, layout.ML), dict(zip(tasks, folders, strict=True))
            )
            shown = yield from self._fill_channels(attempt, own, stopped)
        container = self.settings["slurm_container"]
        fetched = [os.path.dirname(path) for paths in provided.values() for path in paths.values()]
        around = wrappers(plan, container, attempt.folder, attempt.checkpoints, [*works, *(path for path, _ in shown)], fetched)
        seen = {task: see(view, around.get(task[0], ()), container) for task, view in own.items()}
        made = payload.build(attempt, asked.components, places, provided, around, seen=seen)
        public, private = private_part.split(made, attempt)
        self.private = private_part.seal(private, attempt)
        told = public.replace(script=asked.script).to_json()
        private_part.write_own(attempt.folder, layout.PAYLOAD, json.dumps(told).encode())

    def _fill_channels(
        self, attempt: Attempt, own: Mapping[tuple[str, int], ml_mounts.MlFolders], stopped: Callable[[], bool]
    ) -> Steps[Sequence[tuple[str, str]]]:
        """The folders of the job's channels, by links; among many runs a child of its own does that."""
        first = next(iter(own.values()))

        def make(tell: Callable[[Progress], None] = lambda _: None) -> tuple[Sequence[Sequence[str]], Mapping[str, str]]:
            filled = ml_folders.make(
                first.chosen, first.shared, attempt.context.cache, attempt.context.cwd, tell=tell, rules=attempt.context.rules
            )
            ml_mounts.fill(own, mounted=False)
            return filled.shown, filled.files

        if not self.context.many_runs and not attempt.context.rules.server and not ml_folders.fetched(first.chosen):
            shown, files = make()
        else:
            from ..preparation.background_child import News, in_a_child

            news, whose = News(), whose_work(attempt, ())
            shown, files = yield from in_a_child(
                lambda: make(news.tell), attempt.descriptors, self, stopped, news, self.progressed, whose
            )
        ml_folders.Filled(shown, files).keep(first.shared)
        return [(path, place) for path, place in shown]

    def _beside(self, work: Callable[[], Answer], attempt: Attempt, stopped: Callable[[], bool]) -> Steps[Answer]:
        """Among many runs, and on a server, a child of its own opens what a job names."""
        if not self.context.many_runs and not attempt.context.rules.server:
            return work()
        from ..preparation.background_child import in_a_child

        return (yield from in_a_child(work, attempt.descriptors, self, stopped, whose=whose_work(attempt, ())))

    def _submit(self, attempt: Attempt, asked: SlurmRequest, stopped: Callable[[], bool]) -> Steps[None]:
        environment = slurm_cli.environment(os.environ)
        environment.update(
            PAILOT_ATTEMPT=attempt.folder,
            PAILOT_CODE=code_bundle.code(attempt.context.home),
            PAILOT_PYTHON=code_bundle.interpreter(),
        )
        script, code = asked.script, None
        if self.unshared is not None:
            environment.update(self.unshared.variables)
            script, code = self.unshared.script, self.unshared.code
        else:
            environment.update(self.private.variables)
            private_part.write_own(attempt.folder, private_part.FILE, self.private.data)
        until, pause = time.monotonic() + AWAY_SECONDS, 1.0
        while True:
            yield from self._turn(stopped)
            words = ["sbatch", "--parsable", f"--comment={self.comment}", "--export=ALL"]
            if self.context.dependency and not attempt.number:
                words += [f"--dependency={self.context.dependency}", "--kill-on-invalid-dep=yes"]
            try:
                self.command = slurm_cli.Command(words, environment, script, self)
                yield from self._ended(self.command)
            finally:
                self._leave()
            if self.command.status == 0:
                self.job = self.command.out.strip().partition(";")[0]
                break
            problem = slurm_cli.complain("sbatch", self.command.err)
            if not isinstance(problem, slurm_cli.Away) or time.monotonic() > until:
                private_part.remove(attempt.folder)
                raise problem
            self.context.waiting(f"{problem}; it is asked again")
            moment = time.monotonic() + pause
            while time.monotonic() < moment:
                yield moment
                if stopped():
                    raise EngineError("stopped while Slurm did not answer")
            pause = min(pause * 2, 15.0)
            found = cluster_queries.find(self.comment)  # it may have taken the job, and only not have said so
            if found:
                self.job = found
                break
        record = SlurmJobRecord(self.job, self.comment, time.time(), code)
        write_record(os.path.join(attempt.folder, layout.SLURM_JOB), record.to_json(), durable=False)
        where = f" in partition '{asked.partition}'" if asked.partition else ""
        self.context.waiting(f"submitted to Slurm as job {self.job}{where}")

    def _turn(self, stopped: Callable[[], bool]) -> Steps[None]:
        """Wait until this run may call sbatch; the run that has called it wakes the next."""
        if len(_submitting) < AT_ONCE:
            _submitting.add(self)
            return
        _line.append(self)
        while self not in _submitting:
            yield None
            if stopped():
                self._leave()
                raise EngineError("stopped before it was submitted")

    def _leave(self) -> None:
        if self in _line:
            _line.remove(self)
        if self in _submitting:
            _submitting.discard(self)
            if _line:
                following = _line.pop(0)
                _submitting.add(following)
                CHILDREN.touched[following] = None

    def _ended(self, command: slurm_cli.Command) -> Steps[None]:
        while command.status is None:
            CHILDREN.reap()
            if command.status is None:
                yield None

    def _follow(self) -> None:
        self.submitted = True
        self.journal, self.logs = Tail(os.path.join(self.folder, layout.DRIVER_EVENTS)), GrowingLogs(self.folder)
        self.known = (FollowedRecord.read(os.path.join(self.folder, layout.FOLLOWED)) or FollowedRecord()).offset
        self.notice.watch(self.journal.path)
        QUEUE.follow(self.job, self, float(self.settings["slurm_poll_seconds"]))
        self.notice.arm(SHORTEST_LOOK)

    # Looking

    def _look(self) -> None:
        """Take in what is new in the folder and, now and then, what Slurm says."""
        if self.journal is None or self.logs is None or self.over:
            return
        changed = self.notice.take()
        entries = self.journal.entries()
        for entry, offset in entries:
            self._heard(entry, known=offset <= self.known)
        if entries:
            followed = FollowedRecord(self.journal.offset)
            write_record(os.path.join(self.folder, layout.FOLLOWED), followed.to_json(), durable=False)
        told = {path for path in changed if path != self.journal.path}
        grown = self.logs.grown(told or (set() if changed else None))
        self.fresh += [{"event": "grown", "role": role, "index": index, "attempt": number} for role, index, number in grown]
        # What came without the kernel's word comes from another machine: then we have to look often.
        silent = bool(entries or grown) and not changed
        self.interval = SHORTEST_LOOK if silent else min(self.interval * 1.5, LONGEST_LOOK)
        soonest = min(self.interval, QUEUE.look())
        if not self.over:
            self._judge()
        self._keep_mirror()
        if self.force_at is not None and time.monotonic() >= self.force_at:
            self.force_at = None
            self._scancel()
        if self.final_since is not None or self.ended_at is not None:
            soonest = min(soonest, 0.5)
        self.notice.arm(soonest)

    def _keep_mirror(self) -> None:
        seen = QUEUE.seen.get(self.job)
        if self.unshared is not None and not self.over and seen is not None and seen.state == "RUNNING":
            self.unshared.keep_mirror(self.job, self)

    def _heard(self, entry: Mapping[str, Any], *, known: bool = False) -> None:
        """Take in an event; what another driver has told already is not told again."""
        kind = entry["event"]
        if kind == "began":
            self.began, self.began_at = True, time.monotonic()
        elif kind == "running":
            assert self.logs is not None
            key = entry["role"], entry["index"], entry["attempt"]
            self.logs.sizes[key] = -1
            self.notice.watch(self.logs.path(*key))
            self.states[key[:2]] = Observed(*key[:2], TASK_RUNS)
        elif kind == "task":
            seen = Observed(
                entry["role"], entry["index"], ENDED if entry["state"] == "ended" else LOST, TaskRecord.from_json(entry["final"])
            )
            self.states[seen.role, seen.index] = seen
            if not known:
                self.ends.append(seen)
            self._last_words(seen.role, seen.index)
        elif kind == "result":
            if entry["cause"] == "foreign":
                QUEUE.soon()  # Slurm ended it; what for, it will say itself
                self.ended_at = time.monotonic()
            else:
                verdict = Verdict(*(entry[name] for name in ("state", "reason", "role", "index", "exitCode")))
                self._end(Outcome(entry["cause"], verdict))
        if kind == "claimed" or (kind in ("running", "retry", "held") and not known):
            self.fresh.append(entry)

    def _last_words(self, role: str, index: int) -> None:
        """The last of a log may have come with its end: it is told once more."""
        assert self.logs is not None
        for key in [key for key in self.logs.sizes if key[:2] == (role, index)]:
            self.fresh.append({"event": "grown", "role": role, "index": index, "attempt": key[2]})
            del self.logs.sizes[key]

    def _judge(self) -> None:
        """Whether Slurm says that there is nothing left to follow, although the driver has not said so."""
        seen = QUEUE.seen.get(self.job)
        if seen is None:
            return
        seen = self._ours(seen)
        if seen.state == "PENDING":
            if self.began and QUEUE.when[self.job] > self.began_at:
                self._requeued()
            elif seen.reason != self.last_reason and seen.reason not in ("None", ""):
                self.last_reason = seen.reason
                self.context.waiting(f"Slurm job {self.job} waits: {in_words(seen.reason, self.job)}")
        now = time.monotonic()
        if not seen.final:
            self.final_since = None
            if self.ended_at is not None and now - self.ended_at > LOCK_SECONDS:
                self._end(ending("CANCELLED", self.asked_to_stop == "user"))
            return
        if self.final_since is None:
            self.final_since = now
        waited = now - self.final_since
        if self.began and self.ended_at is None and waited < SETTLE_SECONDS:
            return
        if self.began and self._driver_lives() and waited < LOCK_SECONDS:
            return  # on a node that Slurm has lost sight of: nothing may run twice
        self._end(self._without_result(seen))

    def _ours(self, seen: slurm_cli.JobSeen) -> slurm_cli.JobSeen:
        """A controller that lost its memory gives numbers anew: what has ours may be another job."""
        return seen if seen.comment in (self.comment, "") else slurm_cli.JobSeen(self.job, "GONE")

    def _without_result(self, seen: slurm_cli.JobSeen) -> Outcome:
        if self.requeued:
            return Outcome("platform", Verdict(FAILED, "Slurm requeued the job, and what was begun is not begun again in place"))
        if not self.began and not self.asked_to_stop and self.context.dependency:
            never = self.context.never_starts()
            if never or "Dependency" in seen.reason:
                words = never or f"what it follows did not succeed, so Slurm cancelled it ({self.context.dependency})"
                return Outcome("stopped", Verdict(STOPPED, words))
        if seen.state == "GONE" and (self.asked_to_stop or self.ended_at is not None):
            return ending("CANCELLED", self.asked_to_stop == "user")
        if not self.began and seen.state in ("FAILED", "COMPLETED"):
            words = _last_line(os.path.join(self.folder, layout.DRIVER_LOG))
            if self.unshared is None and was_not_seen(self.settings, self.folder, self.job):
                words = "its node does not see the job's folder; the next attempt takes along what it needs"
                return Outcome("platform", Verdict(FAILED, f"{words} (slurm_shared_home = no does so at once)"))
            hint = words or f"does the node see {self.folder}?"
            return Outcome("platform", Verdict(FAILED, f"the driver of Slurm job {self.job} did not start ({hint})"))
        if seen.state == "GONE":
            words = f"Slurm does not know job {self.job} any more, and its driver left no result"
            return Outcome("platform", Verdict(FAILED, words))
        return ending(seen.state, self.asked_to_stop == "user")

    def _requeued(self) -> None:
        """Begun, and waiting again: it was requeued, or the controller lost its state. It is not begun twice."""
        if not self.requeued:
            self.requeued = True
            self._scancel()
            QUEUE.soon()

    def _driver_lives(self) -> bool:
        try:
            descriptor = os.open(os.path.join(self.folder, layout.DRIVER_LOCK), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False  # a file system without locks
        finally:
            os.close(descriptor)
        return False

    def _end(self, outcome: Outcome) -> None:
        self.outcome, self.over = outcome, True
        private_part.remove(self.folder)  # a job that was cancelled before it began has not read it
        self.notice.arm(0.001)  # there is one more change to see
        if self.logs is not None:
            for role, index, _ in list(self.logs.sizes):
                self._last_words(role, index)
        QUEUE.forget(self.job)

    # Without a driver on our side

    def observe(self, folder: str) -> Observation:
        """As the journal of the attempt's driver tells; Slurm is asked if that does not say how it ended."""
        self.folder = folder
        record = SlurmJobRecord.of(folder)
        if record is None:
            killed = Verdict(FAILED, "its launcher was killed before Slurm had taken the job")
            return Observation(WAITING, outcome=Outcome("platform", killed))
        self.job, self.comment = record.job, record.comment
        self.unshared = UnsharedHome.of_record(self.settings, folder, record) if record.code else None
        self.submitted, self.journal, self.logs = True, Tail(os.path.join(folder, layout.DRIVER_EVENTS)), GrowingLogs(folder)
        for entry, _ in self.journal.entries():
            self._heard(entry)
        orders = read_lines(os.path.join(folder, layout.DRIVER_ORDERS))
        self.asked_to_stop = str(orders[0]["why"]) if orders else ""
        if not self.over:
            words = ["squeue", "-h", "-t", "all", "-j", self.job, "-o", slurm_cli.FORMAT]
            status, out, err = slurm_cli.run(words, slurm_cli.environment(os.environ))
            if status and "Invalid job id" not in err:
                return Observation(UNKNOWN, self._observed())
            seen = self._ours(slurm_cli.parse_jobs(out).get(self.job) or slurm_cli.JobSeen(self.job, "GONE"))
            if self.unshared is not None and seen.state == "RUNNING":
                self.unshared.start_mirror(self.job, self)
            for entry, _ in self.journal.entries():  # what was said before Slurm said that it is over
                self._heard(entry)
            if self.outcome is None and seen.final and not self._driver_lives():
                self._end(self._without_result(seen))
        return Observation(RUNNING if self.began or self.over else WAITING, self._observed(), self.outcome)

    def _observed(self) -> tuple[Observed, ...]:
        """What is known of each task; one that ran when its allocation ended is lost."""
        lost = TaskRecord(LOST, reason="its allocation ended")
        return tuple(
            Observed(seen.role, seen.index, LOST, lost) if self.over and seen.state == TASK_RUNS else seen
            for seen in self.states.values()
        )

    def stop_detached(self, folder: str, grace: float, *, now: bool) -> None:
        order_stop(folder, "user", grace, now=now)
        record = SlurmJobRecord.of(folder)
        if record is not None:
            for words in _telling(record.job):
                slurm_cli.run(words, slurm_cli.environment(os.environ))

    # The engine's interface

    def newly_ended(self, attempt: Attempt) -> list[Observed]:
        """In the order in which the driver counted them."""
        self._look()
        found, self.ends = self.ends, []
        return found

    def events(self) -> list[Mapping[str, Any]]:
        self._look()
        found, self.fresh = self.fresh, []
        return found

    def alive(self) -> bool:
        return self.submitted and (not self.over or bool(self.ends))

    def decided(self, attempt: Attempt) -> Outcome | None:
        """How the attempt ended, as the driver beside the tasks decided; one verdict, not two."""
        return self.outcome

    def changes(self) -> int:
        return self.notice.fileno()

    def stop(self, attempt: Attempt, grace: float, why: str, *, now: bool = False) -> str:
        """The order is written first, then the driver is told to look; a job that still waits is cancelled."""
        if why == "completed" and not now:
            return why  # the driver has decided, and does so itself
        order_stop(attempt.folder, why, grace, now=now)
        self.asked_to_stop = self.asked_to_stop or why
        if self.job:
            for words in _telling(self.job):
                slurm_cli.Command(words, slurm_cli.environment(os.environ), owner=self)
        self.force_at = time.monotonic() + (0 if now else grace) + FORCE_SECONDS
        QUEUE.soon()
        return why

    @classmethod
    def dependency(cls, ends: Sequence[tuple[str, bool]]) -> str:
        """In the words of sbatch's option of that name; empty if one of the attempts was not submitted yet."""
        words = []
        for folder, succeeds in ends:
            record = SlurmJobRecord.of(folder)
            if record is None:
                return ""
            words.append(f"{'afterok' if succeeds else 'afterany'}:{record.job}")
        return ",".join(words)

    def preview(self, plan: Plan, hidden: Sequence[str] = ()) -> str:
        return cluster_queries.script(plan)

    def shell_prefix(self, task_folder: str, *, terminal: bool) -> list[str]:
        return words(task_folder, terminal=terminal)

    def _scancel(self) -> None:
        slurm_cli.Command(["scancel", self.job], slurm_cli.environment(os.environ), owner=self)

    def close(self) -> None:
        """The job goes on; we only look away."""
        self._leave()
        QUEUE.forget(self.job)
        self.notice.close()


def _telling(job: str) -> list[list[str]]:
    """A job that waits is cancelled; the driver of one that runs is told to read its orders."""
    return [["scancel", "--quiet", "--state=PENDING", job], ["scancel", "--quiet", "--batch", "--signal=USR1", job]]


def _comment(attempt: Attempt) -> str:
    """By this our job is known in Slurm, whatever number it has."""
    run = os.path.basename(os.path.dirname(os.path.dirname(attempt.folder)))
    return f"pailot {run} {attempt.number}"


def _last_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return (stream.read().strip().splitlines() or [""])[-1]
    except OSError:
        return ""
