"""Attempts as Indexed Jobs of a cluster: made, watched, and brought to the run's folder task by task.

The driver of the run applies the completion policy and gives the orders, which are annotations of pods that take a first
value only: any number of drivers does no harm. Pods go on without any. `kubernetes.json` says where they are.
"""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import tarfile
import tempfile
import threading
import time
from collections import deque
from queue import SimpleQueue

from ...errors import PailotError
from ...lifecycle.attempt_machine import outcome_of_ends
from ...lifecycle.completion import Outcome, RoleRule, Verdict, outcome_of_stop
from ...lifecycle.states import COMPLETED, FAILED, PREEMPTED, RUNNING, UNKNOWN, WAITING
from ...runfolder import layout
from ...runfolder.atomic_json import place_record, write_record
from ...runfolder.engine_records import FollowedRecord, KubernetesRecord
from ...runfolder.journal import Tail
from ...runfolder.records import Placement, StopRecord, TaskRecord
from ...runfolder.stop_reason import claim_stop
from ...runtime.kubernetes import pod_layout
from ...settings import Settings
from ..contract import Attempt, Engine, EngineError
from ..observation import ENDED, LOST, Observation, Observed
from ..observation import RUNNING as TASK_RUNS
from ..preparation.code_folder import bring_files
from ..traits import KUBERNETES
from . import choices as chosen
from . import code_zip, objects, told
from .cluster import BATCH, ApiError, Cluster
from .follower import Away, Brought, Grown, Mirror, PodChanged, PodGone, Pods, Watcher
from .preview import preview
from .reasons import HOPELESS, NOT_STARTED, PodSeen, ended_indexes, pod_seen, why_no_pods
from .rights import findings, role
from .task_pod import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    from ...planning import Plan
    from ...values import Value
    from ..contract import EngineContext, EngineFinding, Steps

    Answer = TypeVar("Answer")

FORCE_SECONDS = 45.0
"""How long after its grace a pod that was ordered to stop may stay silent."""
LOOK_SECONDS = 20.0
"""How long a look at a run without a driver may take to bring what is new."""
MISSING_SECONDS = 5.0
"""How long pods may be missing before it is asked why."""
PREFIX = pod_layout.PREFIX


class _Task:
    """What is known of one task."""

    def __init__(self, role: str, number: int, index: int, folder: str) -> None:
        self.role, self.number, self.index, self.folder = role, number, index, folder
        self.pod: PodSeen | None = None
        self.gone = self.claimed = self.ended = self.is_brought = False
        self.mirror: Mirror | None = None
        self.refused_since: float | None = None
        """Since when its container cannot be started."""
        self.events = Tail(os.path.join(folder, layout.DRIVER_EVENTS))
        self.known = (FollowedRecord.read(os.path.join(folder, layout.FOLLOWED)) or FollowedRecord()).offset


class KubernetesEngine(Engine):
    """The attempts of one run in a cluster."""

    name = "kubernetes"
    traits = KUBERNETES

    def __init__(self, context: EngineContext | None = None) -> None:
        super().__init__(context)
        self.settings = Settings()
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._forget()

    def _forget(self) -> None:
        self._told: deque[Value] = deque()
        self.cluster: Cluster | None = None
        self.names = objects.Names("", 0)
        self.folder = ""
        self.choices = chosen.Choices()
        self.tasks: dict[tuple[int, int], _Task] = {}
        self.watcher: Watcher | None = None
        self.orders: _Orders | None = None
        self.ends: list[Observed] = []
        self.fresh: list[Mapping[str, Any]] = []
        self.stopping = ""
        self.peers_told = False
        self.said = ""
        self.ask_at = 0.0
        self.lost: list[_Task] = []
        """Tasks whose pods are gone for good."""
        self.force_at: float | None = None
        self.timers: list[threading.Timer] = []
        self.first_task_began = None

    @classmethod
    def check(cls) -> None:
        settings = Settings()
        chosen.read(settings)
        Cluster.of_settings(settings).check()

    @classmethod
    def examine(cls) -> Sequence[EngineFinding]:
        return list(findings())

    @classmethod
    def needed_rights(cls) -> str:
        return role(Cluster.of_settings(Settings()).namespace)

    # Starting

    def start(self, attempt: Attempt, stopped: Callable[[], bool]) -> Steps[Sequence[str]]:
        """Make the objects of the attempt and wait until all tasks run; those that were made already are only followed."""
        self.folder, self.choices = attempt.folder, chosen.read(self.settings)
        record = KubernetesRecord.of(attempt.folder)
        notes: list[str] = []
        if record is None:
            self._refuse(attempt)
            cluster = Cluster.of_settings(self.settings)
            rules: list[list[object]] = [
                [r.name, r.instances, r.completion.min_failed, r.completion.min_succeeded] for r in attempt.plan.roles.values()
            ]
            record = KubernetesRecord(_run_of(attempt.folder), attempt.number, cluster.namespace, cluster.access.context, rules)
            write_record(os.path.join(attempt.folder, layout.KUBERNETES), record.to_json(), durable=False)
            notes = self._notes(attempt)
        self._take_record(record)
        cluster = self._cluster
        if not record.created:
            try:
                yield from self._beside(lambda: self._create(attempt, cluster))
            except BaseException:
                self._give_up(quietly=True)
                raise
            write_record(os.path.join(attempt.folder, layout.KUBERNETES), record.replace(created=True).to_json(), durable=False)
            self._say(f"made {self.names.job(0)} in namespace {cluster.namespace}")
        self._follow()
        while not all(task.claimed or task.ended for task in self.tasks.values()):
            if stopped():
                self._give_up()
                raise EngineError("stopped before all of its tasks had begun")
            self._check_refused()
            yield from self._ask_for_missing()
            yield time.monotonic() + 1.0
            self._drain()
            self._take()
        self._write_placement(attempt.plan)
        self._wake()
        return notes

    def _refuse(self, attempt: Attempt) -> None:
        if attempt.context.run_as:
            raise EngineError("the kubernetes engine cannot run tasks as a Unix user of this machine")
        if attempt.context.sandbox:
            raise EngineError("a pod is a sandbox already; leave --sandbox out")
        objects.check(attempt.plan, self.choices)

    def _notes(self, attempt: Attempt) -> list[str]:
        if attempt.number:
            return []
        plan = attempt.plan
        without_effect = [
            name
            for name, used in (
                ("extras.pailot.dataDir", plan.options.data_dir),
                ("extras.pailot.outputDir", plan.options.output_dir),
                ("extras.gangAllocation", not plan.gang),
            )
            if used
        ]
        return [f"without effect on the kubernetes engine: {', '.join(without_effect)}"] if without_effect else []

    def _take_record(self, record: KubernetesRecord) -> None:
        self.names = objects.Names(record.run, record.attempt)
        self.cluster = Cluster.of_settings(self.settings, record.namespace, record.context)
        for number, rule in enumerate(_rules(record)):
            for index in range(rule.instances):
                folder = layout.task_folder(self.folder, rule.name, index)
                os.makedirs(folder, mode=0o700, exist_ok=True)
                task = self.tasks[number, index] = _Task(rule.name, number, index, folder)
                final = TaskRecord.final(folder)
                if final is not None:  # an earlier driver has seen its end, and may not have told it
                    self._end(task, final)
        stop = StopRecord.read(os.path.join(self.folder, layout.STOP))
        self.stopping = (stop.why or "") if stop else ""

    @property
    def _cluster(self) -> Cluster:
        assert self.cluster is not None, "there is an attempt"
        return self.cluster

    def _create(self, attempt: Attempt, cluster: Cluster) -> None:
        """All objects; a second time does no harm. The first Job owns the others, and nothing runs before all are there."""
        plan = attempt.plan
        payload = told.payload_of(attempt, self.choices)
        packed, private = payload.packed(), told.is_private(payload)
        public = {pod_layout.CODE: code_zip.code()}
        if not private:
            public[pod_layout.PAYLOAD] = packed
        files = self._packed_files(attempt)
        if files:
            public[pod_layout.FILES] = files
        logins = [(plan.roles[role].image.uri, auth) for role, auth in attempt.context.logins.items() if role in plan.roles]
        made = [objects.config_map(self.names, public)]
        if private:
            made.append(objects.secret(self.names, {pod_layout.PAYLOAD: packed}))
        if logins:
            made.append(objects.pull_secret(self.names, logins))
        jobs = [
            objects.job(self.names, plan, number, self.choices, private=private, pulls=bool(logins))
            for number in range(len(plan.roles))
        ]
        owner = objects.owner_of(cluster.create(cluster.path("jobs", group=BATCH), jobs[0]))
        for each in (*made, *jobs[1:]):
            each["metadata"]["ownerReferences"] = [owner]
            kind = {"ConfigMap": "configmaps", "Secret": "secrets", "Job": "jobs"}[each["kind"]]
            cluster.create(cluster.path(kind, group=BATCH if kind == "jobs" else "/api/v1"), each)
        if not self.choices.queues.get(plan.virtual_cluster):  # Kueue says itself when they may begin
            for each in jobs:
                cluster.merge(cluster.path("jobs", each["metadata"]["name"], BATCH), {"spec": {"suspend": False}})

    def _packed_files(self, attempt: Attempt) -> bytes:
        """The job's code, which every task finds in its working directory."""
        if not (attempt.context.code or attempt.plan.options.code):
            return b""
        stream = io.BytesIO()
        with tempfile.TemporaryDirectory(prefix="pailot-") as folder:
            files = os.path.join(folder, "files")
            bring_files(attempt, files)
            with tarfile.open(fileobj=stream, mode="w:gz") as archive:
                archive.add(files, ".")
        return stream.getvalue()

    def _beside(self, work: Callable[[], Answer]) -> Steps[Answer]:
        """Something that takes requests to the API, in a thread of its own."""
        done: list[Answer] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                done.append(work())
            except BaseException as error:  # raised again where it is waited for
                failed.append(error)
            finally:
                self._cluster.close()
                self._wake()

        threading.Thread(target=run, daemon=True, name="requests to the cluster").start()
        while not (done or failed):
            yield None
            self._drain()
        if failed:
            raise failed[0]
        return done[0]

    def _follow(self) -> None:
        self.orders = _Orders(self._cluster)
        self.orders.start()
        self.watcher = Watcher(self._cluster, self.names.selector, self._teller())
        self.watcher.start()

    def _check_refused(self) -> None:
        """A container that its node cannot start will not start later: a while is given for what passes."""
        now = time.monotonic()
        for task in self.tasks.values():
            pod = task.pod
            if pod is None or pod.waiting_reason not in NOT_STARTED:
                task.refused_since = None
                continue
            task.refused_since = task.refused_since or now
            if pod.waiting_reason in HOPELESS or now - task.refused_since > self.choices.start_seconds:
                self._give_up()
                raise EngineError(f"{task.role}:{task.index}: {pod.waits}")

    def _ask_for_missing(self) -> Steps[None]:
        """Why there are no pods yet: a quota may be used up, or a rule of the cluster may refuse them."""
        now = time.monotonic()
        self.ask_at = self.ask_at or now + MISSING_SECONDS
        missing = sorted({task.number for task in self.tasks.values() if task.pod is None and not task.ended})
        if not missing or now < self.ask_at:
            return
        self.ask_at = now + MISSING_SECONDS
        cluster, name = self._cluster, self.names.job(missing[0])

        def ask() -> str:
            self._find_lost(cluster, missing)
            try:
                found = cluster.get(cluster.path("events"), fieldSelector=f"involvedObject.kind=Job,involvedObject.name={name}")
            except PailotError:
                return ""  # without the right to read events the reason stays unknown
            return why_no_pods(found.get("items") or [])

        words = yield from self._beside(ask)
        self._end_lost()
        self._say(words and f"{name} waits: {words}")

    def _find_lost(self, cluster: Cluster, numbers: Sequence[int]) -> None:
        """A task without a pod waits for one, unless its pod has ended before, or its Job is gone: then it is lost."""
        for number in numbers:
            try:
                job = cluster.get(cluster.path("jobs", self.names.job(number), BATCH))
            except ApiError as error:
                if error.status != 404:
                    return
                job = None
            without = [task for task in self.tasks.values() if task.number == number and task.pod is None and not task.ended]
            over = None if job is None else ended_indexes(job)
            for task in without:
                if over is None or task.index in over:
                    self.lost.append(task)

    def _end_lost(self) -> None:
        found, self.lost = self.lost, []
        for task in found:
            if task.pod is None and not task.ended:
                self._end(task, TaskRecord("lost", reason="its pod was deleted, and left no record"))

    def _give_up(self, *, quietly: bool = False) -> None:
        """Nothing of the attempt is to go on."""
        self._quiet()
        self._delete(quietly=quietly)
        self.tasks, self.ends = {}, []

    def _write_placement(self, plan: Plan) -> None:
        ports = {
            f"{role.name}:{index}": {label: list(numbers) for label, numbers in told.ports_of(role, index).items()}
            for role in plan.roles.values()
            for index in range(role.instances)
        }
        hosts = {f"{task.role}:{task.index}": task.pod.node for task in self.tasks.values() if task.pod and task.pod.node}
        place_record(
            os.path.join(self.folder, layout.PLACEMENT), Placement(driver=os.getpid(), ports=ports, hosts=hosts).to_json()
        )

    # Looking

    def _teller(self) -> Callable[[Value], None]:
        """By which the threads of this attempt tell what they see; after its end they tell nothing."""
        told = self._told

        def tell(news: Value) -> None:
            told.append(news)
            self._wake()

        return tell

    def _wake(self) -> None:
        try:
            os.write(self._writer, b"!")
        except OSError:
            pass  # enough wake-up calls are waiting, or the engine is closed

    def _drain(self) -> None:
        try:
            os.read(self._reader, 1 << 16)
        except BlockingIOError:
            pass  # nothing new

    def _say(self, words: str) -> None:
        if words and words != self.said:
            self.said = words
            self.context.waiting(words)

    def _take(self) -> None:
        """Take in what the threads have told."""
        while self._told:
            news = self._told.popleft()
            if isinstance(news, Pods):
                self._take_all(news.seen)
            elif isinstance(news, (PodChanged, PodGone)):
                self._take_pod(news.pod, gone=isinstance(news, PodGone))
            elif isinstance(news, Grown):
                self._take_grown(self.tasks.get((news.role, news.index)), news.paths)
            elif isinstance(news, Brought):
                task = self.tasks.get((news.role, news.index))
                if task is not None:
                    task.is_brought = True
                    self._judge(task)
            elif isinstance(news, Away):
                self._say(f"{news.words}; it is asked again" if news.words else "the API of the cluster is there again")
        self._force()

    def _take_all(self, pods: Sequence[PodSeen]) -> None:
        for pod in pods:
            self._take_pod(pod, gone=False)
        there = {pod.name for pod in pods}
        for task in self.tasks.values():
            if task.pod is not None and task.pod.name not in there and not task.gone:
                self._take_pod(task.pod, gone=True)

    def _take_pod(self, pod: PodSeen, *, gone: bool) -> None:
        task = self.tasks.get((pod.role, pod.index))
        if task is None or (task.pod is not None and task.pod.name != pod.name and gone):
            return
        if task.pod is not None and task.pod.name == pod.name and pod.final is None and task.pod.final is not None:
            pod = pod.replace(final=task.pod.final, printed=task.pod.printed)
        task.pod, task.gone = pod, gone
        if not task.ended:
            self._bring(task)
            self._judge(task)
        if pod.waits and not task.claimed:
            self._say(f"{task.role}:{task.index} waits: {pod.waits}")
        self._tell_peers()

    def _bring(self, task: _Task) -> None:
        """Have the folder of the task brought, as long as there is a pod that has it."""
        pod = task.pod
        assert pod is not None
        over = pod.is_over or task.gone
        if task.mirror is None and (pod.is_up or over):
            task.mirror = Mirror(self._cluster, pod, task.role, task.folder, self._teller())
            if over:
                task.mirror.finish(pod)
            task.mirror.start()
        elif task.mirror is not None and over:
            task.mirror.finish(pod)

    def _judge(self, task: _Task) -> None:
        """Whether the task has ended, and how."""
        pod = task.pod
        if task.ended or pod is None:
            return
        if pod.is_cut_off and not task.is_brought and task.mirror is not None:
            task.mirror.close()
            self._end(task, TaskRecord("lost", reason=f"{pod.lost} ({pod.node})"))
        elif task.is_brought:
            final = TaskRecord.final(task.folder) or pod.final
            self._end(task, final or TaskRecord("lost", reason=pod.lost or "its pod is gone, and left no record"))

    def _end(self, task: _Task, final: TaskRecord) -> None:
        if final.outcome == "stopped" and final.stop == PREEMPTED and self.stopping != PREEMPTED:
            words = (task.pod.lost if task.pod else "") or "the cluster ended its pod"
            final = final.replace(outcome="lost", reason=words)
        missing = task.mirror.missing if task.mirror is not None else 0
        if missing:
            self._say(f"{task.role}:{task.index}: {missing} bytes of its log are lost; its node did not keep them")
        path = os.path.join(task.folder, layout.FINAL)
        if TaskRecord.read(path) != final:
            write_record(path, final.to_json(), durable=False)
        self._take_events(task)
        task.ended = task.claimed = True
        self.ends.append(Observed(task.role, task.index, LOST if final.outcome == "lost" else ENDED, final))

    def _take_grown(self, task: _Task | None, paths: Iterable[str]) -> None:
        if task is None:
            return
        grown = set()
        for path in paths:
            first, _, rest = path.partition("/")
            if path == layout.DRIVER_EVENTS:
                self._take_events(task)
            elif first == layout.ATTEMPTS and rest.partition("/")[2] in layout.STREAMS:
                grown.add(rest.partition("/")[0])
            elif path == layout.ALL:
                grown |= {str(number) for number in range(layout.begun_attempts(task.folder))}
        for number in sorted(grown):
            if number.isdigit():
                self.fresh.append({"event": "grown", "role": task.role, "index": task.index, "attempt": int(number)})

    def _take_events(self, task: _Task) -> None:
        """What the first process of the pod has written down; what an earlier driver has told is not told again."""
        entries = task.events.entries()
        for entry, offset in entries:
            kind = entry.get("event")
            if kind in ("claimed", "running"):
                task.claimed = True
                self.first_task_began = self.first_task_began or time.time()
            if kind == "claimed" or (kind in ("running", "retry", "held") and offset > task.known):
                self.fresh.append({**entry, "role": task.role, "index": task.index})
        if entries:
            record = FollowedRecord(task.events.offset)
            write_record(os.path.join(task.folder, layout.FOLLOWED), record.to_json(), durable=False)

    # Orders

    def _tell_peers(self) -> None:
        """Where all tasks are, once all have a place: no task begins before that."""
        if self.peers_told or len(self.tasks) < 2 or self.orders is None:
            return
        pods = [task.pod for task in self.tasks.values()]
        if any(pod is None or not pod.address for pod in pods):
            return
        self.peers_told = True
        text = json.dumps([pod.address for pod in pods if pod is not None])
        for pod in pods:
            assert pod is not None
            self.orders.set(pod.name, pod_layout.PEERS, text)

    def stop(self, attempt: Attempt, grace: float, why: str, *, now: bool = False) -> str:
        """The reason is written down here first, then on each pod; the first one stands."""
        standing = claim_stop(attempt.folder, why, grace)
        self.stopping = standing
        self._order_stop(standing, grace, now=now)
        self._force_after((0 if now else grace) + FORCE_SECONDS)
        return standing

    def _order_stop(self, why: str, grace: float, *, now: bool) -> None:
        assert self.orders is not None
        order = json.dumps({"why": why, "grace": grace})
        for task in self.tasks.values():
            if task.ended:
                continue
            if task.pod is None:
                self._end(task, TaskRecord("stopped", phase="start", reason="was stopped before it ran", stop=why))
                continue
            self.orders.set(task.pod.name, pod_layout.ORDER, order)
            if now:
                self.orders.set(task.pod.name, pod_layout.NOW, "now")

    def _force_after(self, seconds: float) -> None:
        self.force_at = time.monotonic() + seconds
        timer = threading.Timer(seconds + 0.01, self._wake)
        timer.daemon = True
        timer.start()
        self.timers.append(timer)

    def _force(self) -> None:
        """A pod that does not react to an order is on a node that does not respond: it is not waited for."""
        if self.force_at is None or time.monotonic() < self.force_at:
            return
        self.force_at = None
        for task in self.tasks.values():
            if not task.ended and task.pod is not None:
                if task.mirror is not None:
                    task.mirror.close()
                words = f"did not react to the order to stop; its node {task.pod.node} may not respond"
                self._end(task, TaskRecord("stopped", reason=words, stop=self.stopping or None))

    # The engine's interface

    def newly_ended(self, attempt: Attempt) -> list[Observed]:
        self._take()
        found, self.ends = self.ends, []
        return found

    def events(self) -> list[Mapping[str, Any]]:
        self._drain()
        self._take()
        found, self.fresh = self.fresh, []
        return found

    def alive(self) -> bool:
        self._take()
        return bool(self.ends) or any(not task.ended for task in self.tasks.values())

    def changes(self) -> int:
        return self._reader

    def release(self) -> None:
        """Between two attempts: what the last one left in the cluster is removed."""
        self._quiet()
        if self.tasks and all(task.ended for task in self.tasks.values()):
            self._delete()
        self._forget()

    def close(self) -> None:
        """Pods that still run go on; we only look away."""
        self.release()
        for descriptor in (self._reader, self._writer):
            os.close(descriptor)
        self._reader = self._writer = -1

    def _quiet(self) -> None:
        for each in (self.watcher, self.orders, *(task.mirror for task in self.tasks.values())):
            if each is not None:
                each.close()
        for timer in self.timers:
            timer.cancel()

    def _delete(self, *, quietly: bool = False) -> None:
        """The first Job owns all the rest."""
        try:
            for number in sorted({task.number for task in self.tasks.values()}):
                self._cluster.delete(self._cluster.path("jobs", self.names.job(number), BATCH))
        except PailotError as error:
            if not quietly:
                self._say(f"what the job has made in the cluster stays for a week: {error}")
        finally:
            self._cluster.close()

    # Without a driver

    def observe(self, folder: str) -> Observation:
        """What the cluster says of an attempt that no process drives. What its pods have written is brought; if its ends have
        decided, the other tasks are told to stop; and if it is over, what it left in the cluster is removed.
        """
        self.folder = folder
        record = KubernetesRecord.of(folder)
        if record is None or not record.created:
            killed = Verdict(FAILED, "its launcher was killed before the cluster had taken the job")
            return Observation(WAITING, outcome=Outcome("platform", killed))
        try:
            self._take_record(record)
            items, _ = self._cluster.listed(self._cluster.path("pods"), self.names.selector)
        except PailotError:  # the cluster is away, or we may not look at it
            return Observation(UNKNOWN, self._observed())
        pods = [seen for seen in map(pod_seen, items) if seen is not None]
        for pod in pods:
            task = self.tasks.get((pod.role, pod.index))
            if task is not None:
                task.pod = pod
        try:
            self._look_once()
            outcome = self._outcome(record)
            over = all(task.ended for task in self.tasks.values())
            self._order_without_driver(decided=outcome is not None and not self.stopping)
        except PailotError:
            return Observation(UNKNOWN, self._observed())
        begun = any(task.claimed or (task.pod is not None and task.pod.is_up) for task in self.tasks.values())
        return Observation(RUNNING if begun or over else WAITING, self._observed(), outcome if over else None)

    def _order_without_driver(self, *, decided: bool) -> None:
        """What a driver would order: that tasks begin together, and that they stop once the job is decided."""
        alive = [task.pod for task in self.tasks.values() if task.pod is not None and not task.ended]
        addresses = [task.pod.address if task.pod is not None else "" for task in self.tasks.values()]
        orders = {}
        if len(addresses) > 1 and all(addresses) and not any(task.claimed for task in self.tasks.values()):
            orders[pod_layout.PEERS] = json.dumps(addresses)
        if decided:
            orders[pod_layout.ORDER] = json.dumps({"why": COMPLETED, "grace": _grace(self.folder)})
        for pod in alive:
            for name, value in orders.items():
                self._cluster.set_annotation(self._cluster.path("pods", pod.name), f"{PREFIX}{name}", value)

    def _look_once(self) -> None:
        """Bring what is new, of all pods at once, and note what has ended."""
        until = time.monotonic() + LOOK_SECONDS
        self._find_lost(
            self._cluster, sorted({task.number for task in self.tasks.values() if task.pod is None and not task.ended})
        )
        self._end_lost()
        for task in self.tasks.values():
            if task.ended:
                continue
            pod = task.pod
            if pod is None:
                continue
            if pod.is_cut_off:
                self._end(task, TaskRecord("lost", reason=f"{pod.lost} ({pod.node})"))
            elif pod.is_up or pod.is_over:
                task.mirror = Mirror(self._cluster, pod, task.role, task.folder, self._teller(), once=not pod.is_over)
                if pod.is_over:
                    task.mirror.finish(pod)
                task.mirror.start()
        for task in self.tasks.values():
            if task.mirror is not None:
                task.mirror.join(max(0.0, until - time.monotonic()))
                if task.mirror.is_alive():
                    task.mirror.close()
                elif not task.ended and (task.mirror.whole or (task.pod is not None and task.pod.is_over)):
                    task.is_brought = True
                    self._judge(task)

    def _outcome(self, record: KubernetesRecord) -> Outcome | None:
        """What the ends of the tasks have decided, in their order."""
        ends = sorted(self.ends, key=lambda each: (each.final and each.final.ended) or 0)
        lost = next((each for each in ends if each.state == LOST), None)
        counted = [each.final.task_end(each.role, each.index) for each in ends if each.state == ENDED and each.final]
        decided = outcome_of_ends(_rules(record), counted)
        if decided is not None:
            return decided
        if lost is not None and lost.final is not None:
            return Outcome("platform", Verdict(FAILED, f"{lost.role}:{lost.index} was lost: {lost.final.reason}"))
        if all(task.ended for task in self.tasks.values()):
            return outcome_of_stop(self.stopping, None)
        return None

    def _observed(self) -> tuple[Observed, ...]:
        ended = {(each.role, each.index): each for each in self.ends}
        running = (Observed(task.role, task.index, TASK_RUNS) for task in self.tasks.values() if task.pod and task.pod.is_up)
        return (*ended.values(), *(each for each in running if (each.role, each.index) not in ended))

    def stop_detached(self, folder: str, grace: float, *, now: bool) -> None:
        self.folder = folder
        record = KubernetesRecord.of(folder)
        if record is None:
            return
        standing = claim_stop(folder, "user", grace)
        names = objects.Names(record.run, record.attempt)
        cluster = Cluster.of_settings(self.settings, record.namespace, record.context)
        items, _ = cluster.listed(cluster.path("pods"), names.selector)
        for pod in (seen for seen in map(pod_seen, items) if seen is not None):
            path = cluster.path("pods", pod.name)
            cluster.set_annotation(path, f"{PREFIX}{pod_layout.ORDER}", json.dumps({"why": standing, "grace": grace}))
            if now:
                cluster.set_annotation(path, f"{PREFIX}{pod_layout.NOW}", "now")
        cluster.close()

    # For the user

    def preview(self, plan: Plan, hidden: Sequence[str] = ()) -> str:
        """The objects as they would be made, ready for `kubectl apply`; what is secret is left out."""
        return preview(plan, chosen.read(self.settings), hidden)

    def shell_prefix(self, task_folder: str, *, terminal: bool) -> list[str]:
        """A program of ours stands between the terminal and the pod."""
        more = ["--terminal"] if terminal else []
        return [sys.executable, "-P", "-m", "pailot.engines.kubernetes.shell", *more, task_folder, "--"]

    @classmethod
    def listening(cls, task_folder: str) -> set[int]:
        found = find(task_folder)
        return found.listening() if found is not None else set()

    @classmethod
    def dial(cls, task_folder: str, host: str, port: int, seconds: float) -> socket.socket:  # noqa: ARG003  # by the API alone
        found = find(task_folder)
        if found is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "its pod is not running")
        return found.dial(port, seconds)


class _Orders(threading.Thread):
    """Gives annotations of pods their first value, one after another, for as long as that takes."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(name="orders to pods", daemon=True)
        self.cluster = cluster
        self.queue: SimpleQueue[tuple[str, str, str] | None] = SimpleQueue()
        self.quit = threading.Event()

    def set(self, pod: str, name: str, value: str) -> None:
        self.queue.put((pod, name, value))

    def close(self) -> None:
        self.quit.set()
        self.queue.put(None)

    def run(self) -> None:
        while not self.quit.is_set():
            order = self.queue.get()
            if order is None:
                break
            pod, name, value = order
            pause = 0.1
            while not self.quit.is_set():
                try:
                    self.cluster.set_annotation(self.cluster.path("pods", pod), f"{PREFIX}{name}", value)
                    break
                except PailotError:
                    self.quit.wait(pause)  # the watcher says that the API is away
                    pause = min(pause * 1.5, 5.0)
        self.cluster.close()


def _rules(record: KubernetesRecord) -> list[RoleRule]:
    return [RoleRule(*each) for each in record.rules]  # type: ignore[arg-type]  # checked when it was read


def _run_of(folder: str) -> str:
    return os.path.basename(os.path.dirname(os.path.dirname(folder))).lower()


def _grace(folder: str) -> float:
    stop = StopRecord.read(os.path.join(folder, layout.STOP))
    return stop.grace if stop is not None and stop.grace is not None else 30.0
