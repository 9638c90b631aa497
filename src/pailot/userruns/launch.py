"""Starting a run: its folder and record first, then its driver, here or detached."""

from __future__ import annotations

import os
import resource
import time

from .. import credentials
from ..engines.contract import EngineContext, LaunchContext
from ..engines.registry import create as create_engine
from ..engines.registry import traits as engine_traits
from ..errors import PailotError
from ..planning.private_values import private_values
from ..runfolder import journal, plan_codec
from ..runfolder.atomic_json import DISK_FULL, is_full
from ..runfolder.records import RunRecord
from ..runtime.processes import ENOUGH_FILES, LEAST_FILES, boot_id
from ..settings import Settings
from ..store import StoreError
from ..store.index import Index, JobRow, NameInUse, new_id
from ..store.network_filesystems import index_path
from .masked_job_file import recorded, seal
from .run_folder import JobFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..engines.contract import Steps
    from ..lifecycle.completion import Verdict
    from ..planning import Plan
    from ..protocol import Job
    from ..runfolder.records import VerdictRecord
    from .driver import Watcher
    from .following import Following


class Conflict(PailotError):
    """A run of this name is still active."""


class Run:
    """A run that was recorded and can now be driven."""

    def __init__(
        self,
        folder: JobFolder,
        plan: Plan,
        index: Index,
        row_id: str,
        context: LaunchContext,
        engine: str,
        lock: int | None = None,
        follows: Following | None = None,
    ) -> None:
        self.follows = follows
        """The runs whose ends this one waits for."""
        self.folder, self.plan, self.index, self.id = folder, plan, index, row_id
        self.context = context
        self.engine = engine
        self.lock = lock
        """The driver's lock: held from before the run can be found, so that it never looks like one without a driver."""

    def leave(self) -> None:
        """Another process has the lock now."""
        lock, self.lock = self.lock, None
        if lock is not None:
            os.close(lock)


def prepare(
    job: Job,
    plan: Plan,
    text: str,
    *,
    cwd: str,
    work_dir: str = "",
    sandbox: bool = False,
    detached: bool = False,
    engine: str = "local",
    labels: Mapping[str, str] | None = None,
) -> Run:
    """Record a run: its folder and its row in the index exist before the first process does. `text` is the job file."""
    _check_descriptors()

    settings = Settings()
    os.makedirs(settings.home, mode=0o700, exist_ok=True)
    index = Index(index_path(settings.home))
    run_id = new_id()
    active = index.active(plan.name, plan.user)
    if active is not None and _still_active(active, index):
        raise _conflict(plan.name)
    follows = None
    if plan.options.after:
        from . import following

        follows = following.find(plan.options.after, plan.user, index)
    path = os.path.join(settings.home, "jobs", run_id)
    submitted = time.time()
    record = RunRecord(
        id=run_id,
        name=plan.name,
        user=plan.user,
        engine=engine,
        submitted=submitted,
        cwd=cwd,
        work_dir=work_dir,
        sandbox=sandbox,
        detached=detached,
        boot=_boot(),
        file=job.origin.file if job.origin else "-",
        virtual_cluster=plan.virtual_cluster,
        labels={**plan.options.labels, **(labels or {})},
    )
    kept = recorded(job, text, plan)
    traits = engine_traits(engine)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PAILOT_")}
    try:
        folder = JobFolder.create(path, record, kept.source, {**kept.plan, plan_codec.KEY: kept.document})
        seal(settings.home, folder, run_id, kept, environment if traits.can_be_driven_on else {})
        lock = folder.lock()
    except OSError as error:
        _remove(path)
        if is_full(error):
            raise PailotError(f"{DISK_FULL} ({settings.home}); pailot gc makes room") from None
        raise
    row = JobRow(
        id=run_id,
        name=plan.name,
        user=plan.user,
        state="WAITING",
        engine=engine,
        folder=path,
        submitted=submitted,
        tasks=plan.task_count,
        vc=plan.virtual_cluster,
        labels=record.labels or None,
    )
    try:
        index.add(row, exclusive=True)
    except StoreError as error:
        if lock is not None:
            os.close(lock)
        _remove(path)
        if isinstance(error, NameInUse):
            raise _conflict(plan.name) from None
        raise
    folder.note(journal.submitted(plan.name, plan.user))

    private = private_values(job, plan)
    context = LaunchContext(
        cwd=cwd,
        work_dir=work_dir,
        environment=environment,
        secrets=private.secrets,
        logins=private.logins,
        hidden=tuple(dict.fromkeys((*kept.hidden, *credentials.of_environment(environment)))),
        cache=settings.cache,
        home=settings.home,
        sandbox=sandbox,
        rotate_bytes=int(settings.log_rotate_mb * 1_000_000),
        data_folder=settings.own_data_folder,
        data_bytes=settings.data_bytes,
        source=_whole_source(job) if traits.takes_job_file else "",
    )
    return Run(folder, plan, index, run_id, context, engine, lock, follows)


def _remove(path: str) -> None:
    """What was made of a folder that will not be used."""
    from ..runfolder.removing import remove_tree

    remove_tree(path, ignore_errors=True)


def _check_descriptors() -> None:
    """Refuse at once what would fail somewhere on its way."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit < LEAST_FILES:
        raise PailotError(
            f"the limit on open files (ulimit -n) is {limit}, {LEAST_FILES} are needed and {ENOUGH_FILES} are enough"
        )


def _whole_source(job: Job) -> str:
    from ..protocol.export import outgoing

    return outgoing(job)


def _conflict(name: str) -> Conflict:
    return Conflict(f"'{name}' is running already (pailot show {name}); use --name or --unique for another run")


def drive_here(run: Run, watcher: Watcher | None = None) -> VerdictRecord:
    """Drive a run in this process, to its verdict."""
    return _drive(run, watcher, None)


def drive_detached(run: Run) -> VerdictRecord | None:
    """Leave the run to a supervisor of its own; returns once it has started, or with the verdict if it never did."""
    run.index.close()
    from ..runtime.daemon import apart

    reader = apart(lambda writer: _drive(run, None, writer))
    run.leave()
    told = os.read(reader, 64)  # not to the end: shims inherit the other side
    os.close(reader)
    if told:
        return None
    verdict = run.folder.verdict()
    if verdict is None:
        raise PailotError(f"the supervisor of '{run.plan.name}' ended before the job had started; see pailot why {run.id}")
    return verdict


def drive_and_tell(run: Run, started: int) -> VerdictRecord:
    """Drive a run in this process, and say so on a descriptor once it has started."""
    return _drive(run, None, started)


def _drive(run: Run, watcher: Watcher | None, started: int | None) -> VerdictRecord:
    from .driver import Driver
    from .single_run_loop import drive

    lock = run.folder.lock() if run.lock is None else run.lock
    if lock is None:
        raise PailotError(f"another process drives {run.id} already")

    def tell_started() -> None:
        try:
            run.index.update(run.id, state="RUNNING", started=driver.began or time.time())
        except StoreError:
            pass  # the folder tells as well
        tell_parent()

    def tell_parent() -> None:
        nonlocal started
        descriptor, started = started, None  # once: a later attempt has no caller to tell
        if descriptor is not None:
            try:
                os.write(descriptor, b"started")
            except OSError:
                pass  # the waiter is gone
            os.close(descriptor)

    def waiting(words: str) -> None:
        entry = run.folder.note(journal.waiting(words))
        tell_parent()
        if watcher is not None:
            watcher.happened(entry)

    around = EngineContext(waiting)
    before = None
    if run.follows is not None:
        around, before = _follow(run, run.follows, around)
    driver = Driver(run.folder, run.plan, create_engine(run.engine, around), run.context, watcher)
    driver.before_first = before
    driver.on_started = tell_started
    verdict = drive(driver)
    run.index.record_end(run.id, verdict)
    os.close(lock)
    return verdict


def _follow(
    run: Run, follows: Following, around: EngineContext
) -> tuple[EngineContext, Callable[[Callable[[], bool]], Steps[Verdict | None]] | None]:
    """Leave the wait for other runs to the engine if it has means of its own, else to the driver."""
    from ..lifecycle.following import failure_words, waiting_words
    from . import following

    follows = follows.look(run.index)
    dependency = following.dependency(follows, run.engine, run.index) if follows.failed is None else ""
    if not dependency:
        return around, lambda stopped: following.wait(follows, run.index, around.waiting, stopped)

    around.waiting(f"{waiting_words(follows.left)}; the cluster's own line sees to that ({dependency})")

    def never() -> str:
        failed = follows.look(run.index).failed
        return failure_words(failed) if failed is not None else ""

    return around.replace(dependency=dependency, never_starts=never), None


def _still_active(row: Any, index: Index) -> bool:
    from .queries import refresh

    return refresh(row, index).ended is None


def _boot() -> str:
    return boot_id()
