"""Tasks as processes of this machine: one forked shim each."""

from __future__ import annotations

import gc
import os
import signal
import time

from ...lifecycle import exit_classes
from ...runfolder import layout
from ...runfolder.atomic_json import DISK_FULL, DISK_FULL_STATUS, claim, write_record
from ...runfolder.careful_files import make_folders
from ...runfolder.records import TaskRecord
from ...runfolder.stop_reason import claim_stop
from ...runtime import cgroups, cleanup, processes
from ...runtime.shim import which
from ...runtime.shim_events import Channel
from ...runtime.shim_process import fork_shim, prepare_forks, run_and_exit
from ..contract import Engine, EngineError
from ..observation import ENDED, Observed, observe_task
from ..preparation import machine, workdir
from ..preparation.child_registry import CHILDREN, keep_only
from ..preparation.gpus import Gpus, GpusBusy, discover, of_type, variables
from ..preparation.ports import Ports
from ..preparation.tasks import own_variables, place_ports, record_placement, shared_variables, task_of
from ..traits import LOCAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from ...data.ml_mounts import MlFolders
    from ...job_values import Channels
    from ...planning import Plan, RolePlan
    from ...planning import placement as placing
    from ...progress import Progress
    from ...runtime.task_spec import Task
    from ..contract import Attempt, EngineContext, Steps
    from ..preparation.background_child import Whose
    from ..preparation.gpus import Gpu, Released
    from ..preparation.unix_owner import Owner

MAX_TASKS = 4_000
MAX_LIMITED_TASKS = 128  # to enter a control group takes the kernel 10 ms, one task after the other
USUAL_SHM_MB = 64  # what version 1 asks for by default
TOGETHER = 40
"""Prepare this many tasks, then fork their shims together: memory pages that are written between two forks are copied."""
ADDRESS = "127.0.0.1"
NOTHING_SHARED: Mapping[tuple[str, str], str] = {}


class LocalEngine(Engine):
    """Runs the attempts of one run on this machine; several such may live in one process and share its children."""

    name = "local"
    traits = LOCAL

    def __init__(self, context: EngineContext | None = None) -> None:
        super().__init__(context)
        self.shims: dict[int, tuple[str, int]] = {}
        self.ended: dict[tuple[str, int], int] = {}
        self._killed: dict[tuple[str, int], int] = {}
        """Tasks whose shims a signal ended, and which."""
        self._ended_them = False
        """Whether it was we who sent it."""
        self._memory_kills = ""
        """How often the kernel had killed for want of memory when the attempt began."""
        self._fresh: list[tuple[str, int]] = []
        """Tasks whose shims were collected and that were not reported yet."""
        self._without_space: set[tuple[str, int]] = set()
        """Tasks whose shims could not write down how they ended."""
        self._unwritten: dict[tuple[str, int], TaskRecord] = {}
        """How they ended, as their shims told."""
        self._told: list[Mapping[str, Any]] = []
        self.shown: Sequence[tuple[str, str]] = ()
        """What of this machine the tasks see below /ml, as (path, place there)."""
        self.roots: Sequence[str] = ()
        """Folders of the settings that links below /ml lead into: on a server nothing that a job names is itself mounted."""
        self.views: Mapping[tuple[str, int], MlFolders] = {}
        """What each task sees as /ml."""
        self.ports: Ports | None = None
        self.gpus: Gpus | None = None
        self._awaited: Released | None = None
        """While the run waits for a GPU: what tells that one was given back."""
        self.channel = Channel()
        self._liveness, self._alive = os.pipe2(os.O_CLOEXEC)
        processes.become_subreaper()

    def start(self, attempt: Attempt, stopped: Callable[[], bool]) -> Steps[Sequence[str]]:
        """Everything the tasks need first, then all of them at once."""
        plan = attempt.plan
        if plan.task_count > MAX_TASKS:
            raise EngineError(f"{plan.task_count} tasks are more than the {MAX_TASKS} that one machine is asked to run")
        notes = [] if self.context.many_runs else self._notes(attempt)  # among many runs they are not read, and asking takes time
        tasks = [(role, index) for role in plan.roles.values() for index in range(role.instances)]
        gpus = yield from self._take_gpus(attempt, stopped)
        placement = self._place(attempt)
        folders = {(role.name, index): _task_folder(attempt, role.name, index) for role, index in tasks}
        for folder in folders.values():
            make_folders(folder, exist_ok=False)
        works = workdir.prepare(
            attempt.context.cwd,
            [os.path.join(folder, layout.WORK) for folder in folders.values()],
            attempt.context.work_dir,
            [attempt.context.home],
        )
        yield from self._copy_code(attempt, works, stopped)
        owner = self._hand_over(attempt, works)
        provided = yield from self._provide(attempt, works, stopped)
        peers = record_placement(attempt, placement, ADDRESS)
        if owner is not None:
            owner.give_file(peers)
        wrapper: tuple[str, ...] = ()
        seen: Sequence[tuple[str, str]] = ()
        if plan.options.channels:
            wrapper, seen = yield from self._fill_channels(attempt, plan.options.channels, folders, owner, stopped)
        if attempt.context.sandbox:
            from ..preparation.sandbox import wrapper as sandbox

            wrapper = sandbox([attempt.folder, attempt.checkpoints, *dict.fromkeys(works)], owner.user if owner else None)
        self.shown = seen
        inside = bool(wrapper) or self.traits.own_filesystem
        if len(tasks) > 1 and attempt.context.hidden:
            prepare_forks()
        if not self.context.many_runs:
            gc.freeze()  # or each shim would soon copy all the memory that it shares with us
            which("bash", attempt.context.environment.get("PATH", os.defpath))  # or each shim would look for it
        self._killed.clear()
        self._memory_kills = processes.memory_kills() if self.context.many_runs else ""
        shared = {**self._inherited(attempt), **shared_variables(attempt, placement)}
        made: list[Task] = []
        self.first_task_began = time.time()
        for number, ((role, index), work) in enumerate(zip(tasks, works, strict=True), 1):
            view = self.views.get((role.name, index))
            told = view.variables(inside=inside) if view else {}
            given = variables(gpus.get((role.name, index), ())) if role.resources.gpu else {}
            given = {**given, **provided.get(role.name, {})}
            environment = {**shared, **own_variables(attempt, role, index, placement, work, told, given)}
            words = (*wrapper, *view.bound(seen)) if wrapper and view else wrapper
            task = self._task(attempt, role, index, work, environment, words)
            if owner is not None:
                task = task.replace(owner=owner.user)
            made.append(self._around(task, attempt, role, gpus.get((role.name, index), ())))
            if number % TOGETHER == 0 or number == len(tasks):
                for task in made:
                    self._fork(task, attempt.descriptors)
                made.clear()
        return notes

    def _inherited(self, attempt: Attempt) -> Mapping[str, str]:
        """What a task takes from the environment of the process that started the job."""
        return attempt.context.environment

    def _around(self, task: Task, attempt: Attempt, role: RolePlan, gpus: Sequence[Gpu]) -> Task:
        """The task with what an engine puts around it."""
        return task

    def _address(self, role: str, index: int) -> str:
        """Where the others reach a task."""
        return ADDRESS

    def newly_ended(self, attempt: Attempt) -> list[Observed]:
        """The tasks whose shims ended since the last call, in the order of their end."""
        self._reap()
        fresh, self._fresh = self._fresh, []
        found = [self._observe_ended(attempt, role, index) for role, index in fresh]
        for number, each in enumerate(found):
            folder = _task_folder(attempt, each.role, each.index)
            crashed = each.final is not None and each.final.give_up
            if crashed or (each.state != ENDED and not os.path.exists(os.path.join(folder, layout.FINAL))):
                self._kill_orphans()
                cleanup.clean_up(folder, wait=False)
                found[number] = self._blamed(attempt, each)
        return sorted(found, key=lambda each: (each.final.ended if each.final else None) or 0)

    def _observe_ended(self, attempt: Attempt, role: str, index: int) -> Observed:
        seen = observe_task(_task_folder(attempt, role, index), role, index, alive=False)
        if seen.final and seen.state == ENDED:
            return seen
        if (role, index) not in self._without_space:
            return seen
        self._take()  # its last words came before its end
        unknown = TaskRecord("failed", disk_full=True, reason=DISK_FULL, ended=time.time())
        return Observed(role, index, ENDED, self._unwritten.get((role, index), unknown))

    def _blamed(self, attempt: Attempt, lost: Observed) -> Observed:
        """A task whose shim was killed: lost by the platform, unless it can have done that itself and no other cause is known.

        On a server that is a failure of the job. What the platform loses is tried again for free, and a user must not gain that.
        """
        number = self._killed.get((lost.role, lost.index))
        may_have = self.context.many_runs and not self.traits.own_filesystem and not attempt.context.run_as
        if not number or not may_have or self._ended_them or processes.memory_kills() != self._memory_kills:
            return lost
        words = exit_classes.words(exit_classes.End(None, number))
        reason = f"the process that keeps it {words}, which only its own user can have done"
        final = TaskRecord("failed", signal=number, phase="main", reason=reason, attempt=0, ended=time.time())
        try:
            write_record(os.path.join(_task_folder(attempt, lost.role, lost.index), layout.FINAL), final.to_json(), durable=False)
        except OSError:
            pass  # the disk is full; what counts is what is returned
        return Observed(lost.role, lost.index, ENDED, final)

    def changes(self) -> int:
        """What the shims tell, or that a GPU was given back while the run waits for one."""
        return self.channel.fileno() if self._awaited is None else self._awaited.fileno()

    def events(self) -> Sequence[Mapping[str, Any]]:
        """What the shims have told since the last call."""
        self._take()
        told, self._told = self._told, []
        return told

    def _take(self) -> None:
        for event in self.channel.take():
            if event["event"] == "unwritten":
                end = TaskRecord.from_json(event["end"])
                if end is not None:
                    self._unwritten[event["role"], event["index"]] = end
            else:
                self._told.append(event)

    def stop(self, attempt: Attempt, grace: float, why: str, *, now: bool = False) -> str:
        """The reason is written first, then every shim is told to look."""
        try:
            stands = claim_stop(attempt.folder, why, grace)
            if now:
                claim(os.path.join(attempt.folder, layout.KILL), durable=False)
        except OSError:
            # Not even the reserve is left: better killed without a word than not stopped at all.
            self._ended_them = True
            self.abandon()
            return why
        processes.send(self.shims, signal.SIGTERM)
        return stands

    def alive(self) -> bool:
        """Whether any shim is still there."""
        return bool(self.shims)

    def abandon(self) -> Sequence[tuple[str, int]]:
        """Every shim, with all below it."""
        killed = dict(self.shims)
        for pid in killed:
            processes.kill_all(pid)
        processes.send(killed, signal.SIGKILL)
        return tuple(killed.values())

    def close(self) -> None:
        """Take back ports and GPUs; a shim that is still there is told by the closing pipe."""
        for each in (self.ports, self.gpus):
            if each is not None:
                each.close()
        self.ports = self.gpus = None
        self.channel.close()
        os.close(self._alive)
        os.close(self._liveness)

    def release(self) -> None:
        """Between two attempts: ports and GPUs are taken anew."""
        for each in (self.ports, self.gpus):
            if each is not None:
                each.close()
        self.ports = self.gpus = None
        self.ended.clear()
        self._without_space.clear()
        self._unwritten.clear()

    # Before the start

    def _notes(self, attempt: Attempt) -> list[str]:
        plan = attempt.plan
        images = ", ".join(sorted({role.image.uri for role in plan.roles.values()}))
        if attempt.number:
            return []  # said already
        where = "in a sandbox of this machine" if attempt.context.sandbox else "as they are, and they change this machine"
        advice = "-e docker uses it" if attempt.context.sandbox else "-e docker uses it, --sandbox keeps the machine as it is"
        notes = [f"the local engine runs commands {where}; the image {images} is not used ({advice})", *too_much(plan)]
        if cgroups.available() is None:
            notes.append(f"memory and CPU limits are not enforced here: {cgroups.why_not()}")
        elif plan.task_count > MAX_LIMITED_TASKS:
            notes.append(f"memory and CPU limits are not enforced in a job of more than {MAX_LIMITED_TASKS} tasks")
        without_effect = [
            name
            for name, used in (
                (plan.storages_key, plan.storages or plan.default_storages),
                ("extras.hivedScheduler", plan.priority != "test"),
                (
                    "extraContainerOptions.shmMB",
                    any(role.resources.shm_mb not in (None, 0, USUAL_SHM_MB) for role in plan.roles.values()),
                ),
                ("extraContainerOptions.infiniband", any(role.resources.infiniband for role in plan.roles.values())),
                ("extras.pailot.authFile", plan.options.auth_file),
            )
            if used
        ]
        if without_effect:
            notes.append(f"without effect on the local engine: {', '.join(without_effect)}")
        return notes

    def _take_gpus(self, attempt: Attempt, stopped: Callable[[], bool]) -> Steps[dict[tuple[str, int], tuple[Any, ...]]]:
        plan = attempt.plan
        wanted = [
            (role.name, index, role.resources.gpu)
            for role in plan.roles.values()
            for index in range(role.instances)
            if role.resources.gpu
        ]
        if not wanted:
            return {}
        found = self._right_gpus(discover(), plan.options.gpu_type)
        total = sum(count for _, _, count in wanted)
        if total > len(found):
            kind = f" of type '{plan.options.gpu_type}'" if found and of_type(found, plan.options.gpu_type or "") else ""
            amount = f"{total} GPU{'' if total == 1 else 's'}{kind}"
            self.context.waiting(f"the job asks for {amount}, this machine has {len(found)}; it goes on with those")
        self.gpus = Gpus(found, plan.full_name)
        given: dict[tuple[str, int], tuple[Any, ...]] = {}
        while True:
            try:
                taken = list(self.gpus.take(min(total, len(found))))
                break
            except GpusBusy as busy:
                self.context.waiting(f"waiting for GPUs: {busy.holders}")
                yield from self._wait_for_a_gpu(self.gpus, stopped)
        for role, index, count in wanted:
            given[role, index], taken = tuple(taken[:count]), taken[count:]
        return given

    def _right_gpus(self, found: tuple[Gpu, ...], wanted: str | None) -> tuple[Gpu, ...]:
        """The GPUs of the type that the job wants; all of them, and a word on it, where there is no such GPU."""
        right = of_type(found, wanted) if wanted else found
        if wanted and not right:
            here = ", ".join(dict.fromkeys(gpu.name or "one of unknown type" for gpu in found)) or "none"
            self.context.waiting(
                f"no such GPU here: the job asks for type '{wanted}', there is {here}; it goes on without the type"
            )
            return found
        return right

    def _place(self, attempt: Attempt) -> placing.Placement:
        self.ports = Ports()
        if self.ports.problem:
            self.context.waiting(self.ports.problem)
        return place_ports(attempt.plan, self.ports, self._address)

    def _hand_over(self, attempt: Attempt, works: Sequence[str]) -> Owner | None:
        if not attempt.context.run_as:
            return None
        from ..preparation.unix_owner import Owner

        if not self.traits.unix_users:
            raise EngineError(f"the engine {self.name} cannot run tasks as Unix user {attempt.context.run_as}; the local one can")
        owner = Owner(attempt.context.run_as)
        owner.hand_over(attempt, works)
        owner.give(attempt.context.cache)
        if any(each.kind == "ssh-key" for role in attempt.plan.roles.values() for each in role.provisions):
            owner.give(os.path.join(attempt.folder, layout.SSH))
        return owner

    def _wait_for_a_gpu(self, gpus: Gpus, stopped: Callable[[], bool]) -> Steps[None]:
        with gpus.released() as self._awaited:
            try:
                while not self._awaited.is_set():
                    yield None
                    if stopped():
                        raise EngineError("stopped while waiting for GPUs") from None
            finally:
                self._awaited = None

    def _fill_channels(
        self,
        attempt: Attempt,
        chosen: Channels,
        folders: Mapping[tuple[str, int], str],
        owner: Owner | None,
        stopped: Callable[[], bool],
    ) -> Steps[tuple[tuple[str, ...], list[tuple[str, str]]]]:
        """The folders of the job's channels; what takes long is done beside the other runs of this process.

        Answers the words before `bash` that make room for a /ml, and what of this machine is shown there.
        """
        from ...data import ml_folders, ml_mounts
        from ...data.addresses import folder_of

        ml = os.path.join(attempt.folder, layout.ML)
        make_folders(ml)
        wrapper: tuple[str, ...] = ()
        if chosen.mount and not attempt.context.sandbox and not self.traits.own_filesystem:
            from ..preparation.sandbox import with_ml

            wrapper = with_ml(ml, owner.user if owner else None)
        mounted = bool(wrapper) or attempt.context.sandbox or self.traits.own_filesystem

        self.views = ml_mounts.make(chosen, ml, folders)

        if owner is not None:
            for folder in dict.fromkeys(folder for view in self.views.values() for folder in (view.shared, view.own)):
                owner.give(folder)

        def make(tell: Callable[[Progress], None] = lambda _: None) -> tuple[Sequence[Sequence[str]], Mapping[str, str]]:
            filled = ml_folders.make(
                chosen, ml, attempt.context.cache, attempt.context.cwd, mounted=mounted, tell=tell, rules=attempt.context.rules
            )
            ml_mounts.fill(self.views, mounted=mounted)
            return filled.shown, filled.files

        far = ml_folders.fetched(chosen)
        if far and not attempt.number:
            self.context.waiting(f"fetching {', '.join(far)}")
        if not far and not (self.context.many_runs and chosen.code) and not attempt.context.rules.server:
            shown, files = make()
        else:
            from ..preparation.background_child import News, in_a_child

            news = News()
            whose = whose_work(attempt, ml_folders.places(chosen))
            shown, files = yield from in_a_child(
                lambda: make(news.tell), attempt.descriptors, self, stopped, news, self.progressed, whose
            )
        ml_folders.Filled(shown, files).keep(ml)
        if attempt.context.rules.server:
            self.roots = sorted({folder_of(path, attempt.context.rules) for path, _ in shown} - {""})
            return wrapper, []
        return wrapper, [(path, place) for path, place in shown]

    def _copy_code(self, attempt: Attempt, works: Sequence[str], stopped: Callable[[], bool]) -> Steps[None]:
        """The code that was sent along, from our own folder into new ones; among many runs a child of its own does that."""
        if not attempt.context.code:
            return
        if not self.context.many_runs:
            copy_code(attempt, works)
            return
        from ..preparation.background_child import in_a_child

        yield from in_a_child(lambda: copy_code(attempt, works), attempt.descriptors, self, stopped)

    def _provide(
        self, attempt: Attempt, works: Sequence[str], stopped: Callable[[], bool]
    ) -> Steps[Mapping[str, Mapping[str, str]]]:
        """What has to be fetched, made or copied first; on a server a child does that, as the job's user."""
        plan = attempt.plan
        if not any(role.provisions for role in plan.roles.values()) and not plan.options.code:
            return {}
        if not self.context.many_runs and not attempt.context.rules.server:
            return bring(attempt, works, (yield from shared_data(attempt, self, stopped)))
        from ..preparation.background_child import in_a_child

        shared = yield from shared_data(attempt, self, stopped)
        whose = whose_work(attempt, [each.source for role in plan.roles.values() for each in role.provisions])
        return (yield from in_a_child(lambda: bring(attempt, works, shared), attempt.descriptors, self, stopped, whose=whose))

    def _task(
        self, attempt: Attempt, role: RolePlan, index: int, work: str, environment: Mapping[str, str], wrapper: tuple[str, ...]
    ) -> Task:
        task = task_of(attempt, role, index, work, environment).replace(inherited=self._inherited(attempt), wrapper=wrapper)
        return task if attempt.plan.task_count <= MAX_LIMITED_TASKS else task.replace(memory_mb=0, cpus=0)

    # Shims

    def _fork(self, task: Task, descriptors: Sequence[int]) -> None:
        pid = fork_shim()
        if pid == 0:
            gc.disable()
            channel, liveness = self.channel.writer, self._liveness
            os.close(self._alive)
            held = [descriptor for each in (self.ports, self.gpus) if each is not None for descriptor in each.descriptors]
            if self.context.many_runs:
                keep_only((channel, liveness, *held, *descriptors))
            run_and_exit(task, channel, liveness)
        self.shims[pid] = (task.role, task.index)
        CHILDREN.add(pid, self)

    def child_ended(self, pid: int, status: int) -> None:
        """One of our shims was collected."""
        task = self.shims.pop(pid)
        how = os.waitstatus_to_exitcode(status)
        if how == DISK_FULL_STATUS:
            self._without_space.add(task)
        elif how < 0:
            self._killed[task] = -how
        self.ended[task] = pid
        self._fresh.append(task)

    def _reap(self) -> None:
        CHILDREN.reap()

    def _kill_orphans(self) -> None:
        """What a killed shim left behind has become our child."""
        processes.kill_all(os.getpid(), frozenset(CHILDREN.owners))


def whose_work(attempt: Attempt, places: Iterable[str]) -> Whose:
    """The user for which a child opens what a job names."""
    from ..preparation.background_child import Whose

    return Whose(attempt.context.rules, attempt.context.run_as, tuple(places))


def copy_code(attempt: Attempt, works: Sequence[str]) -> None:
    """The code that was sent along, in each working directory."""
    import shutil

    for work in dict.fromkeys(works):
        shutil.copytree(attempt.context.code, work, symlinks=True, dirs_exist_ok=True)


def shared_data(attempt: Attempt, engine: Engine, stopped: Callable[[], bool]) -> Steps[Mapping[tuple[str, str], str]]:
    """Have the data sets of the library here that the job uses: their paths by label and address."""
    if (
        not any(each.shared for role in attempt.plan.roles.values() for each in role.provisions)
        or not attempt.context.data_folder
    ):
        return {}
    from ..preparation.shared_data import bring_shared

    return (yield from bring_shared(attempt, engine, stopped))


def bring(
    attempt: Attempt, works: Sequence[str], shared: Mapping[tuple[str, str], str] = NOTHING_SHARED
) -> Mapping[str, Mapping[str, str]]:
    """The provisions of all roles, and the job's code in the working directories; returns the variables of each role."""
    plan, context = attempt.plan, attempt.context
    from ...data import provisions

    provided: Mapping[str, Mapping[str, str]] = {}
    if any(role.provisions for role in plan.roles.values()):
        provided = provisions.provide(
            plan,
            attempt.folder,
            context.cache,
            secrets=context.secrets,
            cwd=context.cwd,
            rules=context.rules,
            shared=shared,
        )
    if plan.options.code:
        tasks = [(role.name, index) for role in plan.roles.values() for index in range(role.instances)]
        places = dict(zip(tasks, works, strict=True))
        private = len(set(works)) > 1 or context.rules.server or context.work_dir == workdir.PRIVATE
        provisions.bring_code(
            plan,
            places,
            context.cache,
            secrets=context.secrets,
            cwd=context.cwd,
            private=private,
            leave_out=[context.home],
            rules=context.rules,
        )
    return provided


def too_much(plan: Plan) -> list[str]:
    """Notes on what the job asks for beyond what the machine has."""
    cpus = sum(role.instances * role.resources.cpu for role in plan.roles.values())
    memory = sum(role.instances * role.resources.memory_mb for role in plan.roles.values())
    notes = []
    if cpus > machine.cpus():
        notes.append(f"the job asks for {cpus} CPUs, this machine has {machine.cpus()}; it goes on with those")
    if memory > machine.memory_mb():
        notes.append(f"the job asks for {memory} MB of memory, this machine has {machine.memory_mb()} MB; it goes on with that")
    return notes


def _task_folder(attempt: Attempt, role: str, index: int) -> str:
    return layout.task_folder(attempt.folder, role, index)
