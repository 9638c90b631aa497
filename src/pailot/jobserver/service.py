"""The team service: everything a server for several people does with jobs, for front doors that translate.

    async with running_team(settings) as team:
        record = await team.submit(Caller("ann"), text)
        async for event in team.subscribe_job(Caller("ann"), "ann~hello"):
            ...

A job is named by its full name, `user~name`. Every method checks whether the caller may do what is asked
(`policy`), raises an exception of `errors`, and may be called from the event loop that the team runs in, only.
"""

from __future__ import annotations

import asyncio  # only a server loads this
import json
import os
import time
from urllib.parse import quote

from ..data import server_rules
from ..engines.contract import LaunchContext
from ..engines.registry import traits
from ..library.content import content_of
from ..lifecycle.states import FINAL_JOB_STATES, WAITING
from ..loading import shell_syntax
from ..runfolder import layout
from ..runfolder import logs as log_files
from ..runfolder.log_search import roles_of
from ..runfolder.removing import remove_tree
from ..scheduling.capacity import Share
from ..store.secrets import SecretBox
from ..store.server import JobRecord, NameTaken, new_id
from ..userruns import task_usage
from ..userruns.masked_job_file import Kept
from ..userruns.queries import describe, explain
from ..userruns.run_folder import JobFolder
from . import job_history, subscriptions
from .accounts import DEFAULT_CLUSTER
from .alerts import Alerts, counted, seen_by
from .batched_writer import Writer
from .capacity_history import CapacityHistory, Use
from .code import CodeStore, Quota
from .dispatcher import QUEUED, SETTLING, SUBMITTED_BY, Dispatcher, Entry, log_job, request_of
from .errors import BadRequest, Conflict, Forbidden, Invalid, NoSuchCode, NoSuchJob, NoSuchLog, NoSuchTag, ShuttingDown
from .following import kept_after, predecessors_of, resolve
from .log_searches import LogSearches
from .logs import Log
from .models import CapacityReport, Checked, ClusterRules, ClusterUse, Holder, Shares, Standing, TaskView, TeamFigures
from .notifications import Notices
from .policy import Policy
from .reading_pool import SMALL_TEXT, ReadingPool
from .server_home import data_folder
from .server_log import current_request
from .submission import JobReader, check_places, check_scripts, demand
from .subscriptions import Watched
from .unix_users import UnixUsers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
    from typing import Any, ParamSpec, TypeVar

    from ..library.entries import Entry as LibraryEntry
    from ..lifecycle.following import Predecessor
    from ..runfolder.journal import Event as JournalEvent
    from ..runfolder.log_search import Wanted
    from ..scheduling.capacity import Capacity
    from ..scheduling.requests import Reason
    from ..settings import Settings
    from ..store.server import ServerStore
    from .alerts import Alert
    from .log_searches import Told
    from .models import Caller, Event, JobDetail, LogPiece
    from .skus import Sku
    from .submission import Prepared

    P = ParamSpec("P")
    T = TypeVar("T")

JUST_SENT_SECONDS = 3600.0
ALL_JOBS = Watched()
SHOWN = 200
"""Of the jobs that run, and of those that wait, at a glance."""
LIBRARY = "library"
"""In `more` of a record: what of the server's library the job uses."""
MOST_COUNTED = 1_000
"""The tasks of a job that a list of jobs counts by state."""
COUNTS_KEPT = 10_000
ID_LENGTH = 16
"""Of the ids that `new_id` makes."""


class Team:
    """The jobs of a team on one machine."""

    def __init__(
        self,
        settings: Settings,
        store: ServerStore,
        reader: JobReader,
        *,
        engine: str,
        machine: Capacity,
        environment: Mapping[str, str],
    ) -> None:
        self.settings, self.store, self.reader, self.engine = settings, store, reader, engine
        self.library = reader.library
        self.home = settings.home
        self.policy = Policy(open_to_all=bool(settings["open"]))
        self.code = CodeStore(self.home, Quota(int(settings["code_quota_mb"] * 1_000_000), int(settings["code_quota_files"])))
        self.box = SecretBox(self.home)
        self.environment = environment
        self.rules = server_rules.read(settings)
        self.unix = UnixUsers(settings["unix_users"], lambda name: getattr(store.accounts.user(name), "unix_user", None))
        self.writer = Writer(store, asyncio.get_running_loop())
        self.reading = ReadingPool()
        self.searches = LogSearches()
        self.machine = machine
        self.clusters: dict[str, ClusterRules] = {DEFAULT_CLUSTER: ClusterRules()}
        self.skus: Mapping[str, Sku] = {}
        """The kinds of cells; where they are set, jobs can name no others."""
        self.skus_are_set = False
        self._alerts = Alerts()
        self._task_states: dict[str, Mapping[str, int]] = {}
        """Of jobs that are over, which stays so."""
        self.floor = Dispatcher(
            settings,
            store,
            self.writer,
            engine=engine,
            machine=machine,
            prepare_again=self._prepare_again,
            context=self._context,
        )
        self.notices = Notices(settings, store, self.writer)
        self.floor.on_change = self.notices.of_change
        self.history = CapacityHistory(self.home, self._use)
        self.submitted = 0
        self.closed = False
        self._local_store = store.database.kind != "postgresql"
        self._data_folder = data_folder(settings)
        self._caches = os.path.join(settings.cache, "users")

    async def begin(self) -> None:
        """Take up everything that was left; `running_team` calls this."""
        await self.floor.begin()
        self.notices.begin()
        self.history.begin()

    async def end(self) -> None:
        """Let everything go; what runs goes on without us."""
        self.closed = True
        await self.history.end()
        await self.notices.end()
        await self.floor.end()
        self.code.close()
        self.reading.close()
        await asyncio.to_thread(self.writer.close)

    # Doing

    async def submit(
        self,
        caller: Caller,
        text: str,
        *,
        code: str | None = None,
        name: str | None = None,
        secrets: Mapping[str, Any] | None = None,
        secrets_of: str | None = None,
        submit_from: str = "",
        after: Sequence[str] = (),
    ) -> JobRecord:
        """Check, plan and keep a job; it is durable when this returns, and then waits or runs.

        `text` is a job file (v2 YAML, or v1 JSON). `code` is the SHA-256 of an uploaded archive: tasks start in it. `name` and
        `secrets` win over those of the file. `secrets_of` names a job of the caller's own: what is masked in the text is taken
        from there. The job starts after the jobs that `after` and the file name (`JOB[:success|:end]`).
        Raises Invalid with all problems, Conflict for a name the user has used,
        Forbidden for a virtual cluster that is not the caller's, NoSuchCode, ShuttingDown.
        """
        self._check_open()
        source = await self._own_secrets(caller, secrets_of) if secrets_of else None

        def prepare() -> Prepared:
            with_code = code is not None
            return self.reader.prepare(text, caller.name, name=name, secrets=secrets, with_code=with_code, copied_from=source)

        quick = len(text) <= SMALL_TEXT and not secrets and source is None
        prepared = prepare() if quick else await self.reading.read(caller.name, prepare)
        await self._check_scripts(caller, prepared)
        return await self._keep(caller, prepared, code=code, submit_from=submit_from, after=after)

    async def _check_scripts(self, caller: Caller, prepared: Prepared) -> None:
        """Refuse a job whose scripts bash will not read, where it is this machine's bash that reads them."""
        if traits(self.engine).runs_plain_processes and not shell_syntax.are_known_to_be_right(prepared.plan):
            await self.reading.read(caller.name, lambda: check_scripts(prepared, runs_here=True))

    async def check(
        self, caller: Caller, text: str, *, code: str | None = None, name: str | None = None, secrets_of: str | None = None
    ) -> Checked:
        """What `submit` would make of a job file, and what the job would wait for. Nothing is kept.

        Raises what `submit` raises, but for a name that is in use: `Checked.name_taken` tells that.
        """
        source = await self._own_secrets(caller, secrets_of) if secrets_of else None

        here = traits(self.engine).runs_plain_processes

        def prepare() -> Prepared:
            made = self.reader.prepare(text, caller.name, name=name, with_code=code is not None, copied_from=source)
            return made.replace(plan=check_scripts(made, runs_here=here))

        prepared = await self.reading.read(caller.name, prepare)
        self._check_rights(caller, prepared, code)
        record = self._new_record(caller, prepared, code=code)
        taken = (caller.name, record.name) in self.floor.names
        taken = taken or await self._read(self.store.jobs.by_name, caller.name, record.name) is not None
        return Checked(prepared, self.floor.queue.would_wait(request_of(record)), name_taken=taken)

    async def _own_secrets(self, caller: Caller, job: str) -> Kept:
        """What was kept sealed of a job of the caller's own; Forbidden for the job of another user."""
        _, record = await self._find(job if "~" in job else f"{caller.name}~{job}")
        if record.user != caller.name:
            raise Forbidden(f"the secrets of {job} are its owner's: give your own")
        sealed = await self._read(self.store.jobs.secrets, record.id)
        return Kept.opened(self.box.open_all(record.id, sealed)) if sealed is not None else Kept()

    def _check_rights(self, caller: Caller, prepared: Prepared, code: str | None) -> None:
        """What a caller may submit: code that he sent, a virtual cluster of his, places that a job may name."""
        if code is not None and not self.code.may_use(code, caller.name):
            raise NoSuchCode(f"{caller.name} has uploaded no code with the SHA-256 {code}")
        plan = prepared.plan
        if not caller.admin or plan.virtual_cluster not in self.clusters:
            self.policy.check_cluster(caller, plan.virtual_cluster, frozenset(self.clusters))
        self._check_skus(prepared)
        check_places(prepared.job, plan, prepared.private.secrets, self.rules)
        self.unix.check(caller.name)
        if self.settings["data_cache_user"] and self.unix.of(caller.name) == self.settings["data_cache_user"]:
            raise Forbidden("tasks cannot run as the Unix user that fetches data sets for all (data_cache_user)")

    async def _keep(
        self, caller: Caller, prepared: Prepared, *, code: str | None, submit_from: str, after: Sequence[str] = ()
    ) -> JobRecord:
        """What every way to a new job ends in, so that no way leads to code that the caller has not sent."""
        self._check_rights(caller, prepared, code)
        plan = prepared.plan
        wishes = (*plan.options.after, *after)
        follows = await resolve(wishes, caller, self.policy, self._record) if wishes else ()
        if (caller.name, plan.name) in self.floor.names:
            raise Conflict(f"Job {caller.name}~{plan.name} already exists.")
        record = self._new_record(caller, prepared, code=code, submit_from=submit_from, follows=follows)
        sealed = prepared.sealed(self.box, record.id)
        try:
            await self.writer.do(lambda: self._add(record, prepared, sealed))
        except NameTaken:
            raise Conflict(f"Job {caller.name}~{plan.name} already exists.") from None
        self.submitted += 1
        log_job("job submitted", record)
        self.floor.add(record, prepared)
        return record

    def data_content(self, entry: LibraryEntry) -> list[dict[str, Any]]:
        """Where the content of a data set lies, for each of its addresses."""
        return content_of(entry, self._data_folder)

    def _add(self, record: JobRecord, prepared: Prepared, sealed: bytes | None) -> None:
        self.store.jobs.add(record, prepared.source, prepared.plan_text, sealed)
        if prepared.library:
            self.library.note_uses(prepared.library, record.submitted)

    def _new_record(
        self,
        caller: Caller,
        prepared: Prepared,
        *,
        code: str | None,
        submit_from: str = "",
        follows: Sequence[Predecessor] = (),
    ) -> JobRecord:
        plan, job = prepared.plan, prepared.job
        cpus, memory, gpus = demand(plan)
        number = new_id()
        more: dict[str, object] = {**kept_after(follows)}
        if current_request.get():
            more[SUBMITTED_BY] = current_request.get()
        if job.extras.notify_on:
            more["notify"] = sorted(job.extras.notify_on)
        if plan.options.hold_on_failure_minutes:
            more["hold"] = True
        if prepared.library:
            more[LIBRARY] = dict(prepared.library)
        return JobRecord(
            number,
            caller.name,
            plan.name,
            time.time(),
            vc=plan.virtual_cluster,
            priority=job.extras.hived.priority if job.extras.hived else None,
            tasks=plan.task_count,
            roles=len(plan.roles),
            gpus=gpus,
            cpus=cpus,
            memory_mb=memory,
            folder=os.path.join(self.home, "jobs", number),
            engine=self.engine,
            submit_from=submit_from or str(job.extras.raw.get("submitFrom") or ""),
            labels=plan.options.labels,
            code=code,
            more=more,
        )

    def _check_skus(self, prepared: Prepared) -> None:
        """Where the kinds of cells are set, a role names one of them; else this machine is what all of them mean."""
        cluster, hived = prepared.plan.virtual_cluster, prepared.job.extras.hived
        if hived is None or not self.skus_are_set:
            return
        offered = [name for name, sku in self.skus.items() if sku.offered_by(cluster)]
        for role, wishes in hived.roles.items():
            if wishes.sku_type is not None and wishes.sku_type not in offered:
                known = ", ".join(offered) or "none"
                raise Invalid(f"task role {role}: the virtual cluster {cluster} has no skuType {wishes.sku_type}, but {known}")

    async def stop(self, caller: Caller, job: str, *, grace: float | None = None, now: bool = False) -> JobRecord:
        """Ask a job to stop: SIGTERM, its grace, SIGKILL. A finished job stays as it is. Owner or administrator."""
        entry, record = await self._find(job)
        self.policy.check_change(caller, record)
        if entry is None or record.state in FINAL_JOB_STATES:
            return record
        log_job("job to be stopped", record, request=current_request.get(), by=caller.name)
        return await self.floor.stop(entry, grace=grace, now=now)

    async def rerun(
        self, caller: Caller, job: str, *, name: str | None = None, secrets: Mapping[str, Any] | None = None
    ) -> JobRecord:
        """The same job once more, under a new name. Its secrets and its code are those of who sent them: others give their own.

        That holds for administrators, too. What a job prints is its author's choice, and who gives its secrets is an author:
        they stand in its script as they are.
        """
        self._check_open()
        _, record = await self._find(job)
        self.policy.check_read(caller, record)
        if record.code is not None and not self.code.may_use(record.code, caller.name):
            words = "submit the job with code of your own (pailot submit JOB --code DIR)"
            raise Forbidden(f"the code of {job} is its owner's: {words}")
        text = await self._read(self.store.jobs.config, record.id) or ""
        kept = Kept()
        sealed = await self._read(self.store.jobs.secrets, record.id)
        if sealed is not None:
            kept = Kept.opened(self.box.open_all(record.id, sealed))
            if caller.name != record.user:
                if kept.written:
                    raise BadRequest(f"{job} holds credentials of its owner outside of 'secrets'; submit a file with your own")
                if not secrets:
                    raise BadRequest(f"the secrets of {job} are its owner's; give your own to run it")
                kept = Kept()
        chosen = name or await self._free_name(caller.name, record.name)
        prepared = await self.reading.read(
            caller.name,
            lambda: self.reader.prepare(
                text,
                caller.name,
                name=chosen,
                secrets=secrets,
                with_code=record.code is not None,
                kept=kept,
                library=record.more.get(LIBRARY),
            ),
        )
        await self._check_scripts(caller, prepared)
        return await self._keep(caller, prepared, code=record.code, submit_from="rerun")

    def warnings(self, record: JobRecord) -> list[str]:
        """Return what the owner of a new job should know at once: that it can never start."""
        entry = self.floor.entries.get(record.id)
        never = self.floor.queue.never_starts(request_of(record)) if entry is not None and entry.phase == QUEUED else ""
        return [never] if never else []

    async def delete(self, caller: Caller, job: str) -> None:
        """Forget a finished job and remove its folder. Conflict while it is not finished. Owner or administrator."""
        entry, record = await self._find(job)
        self.policy.check_change(caller, record)
        if entry is not None or record.state not in FINAL_JOB_STATES:
            raise Conflict(f"job {job} is {record.state}: stop it before you delete it")
        await self.writer.do(lambda: self.store.jobs.remove(record.id))
        await asyncio.to_thread(remove_tree, record.folder, ignore_errors=True)

    async def add_tag(self, caller: Caller, job: str, tag: str) -> None:
        """Give a job a tag; once is enough. Owner or administrator. BadRequest for an empty tag or one with a comma."""
        await self._tag(caller, job, tag, self.store.jobs.tag_add)

    async def remove_tag(self, caller: Caller, job: str, tag: str) -> None:
        """Take a tag away; NoSuchTag if it has none such. Owner or administrator."""
        if not await self._tag(caller, job, tag, self.store.jobs.tag_remove):
            raise NoSuchTag(f"job {job} has no tag {tag}")

    async def check_change(self, caller: Caller, job: str) -> None:
        """Whether the caller may stop, tag or delete a job: NoSuchJob, Forbidden."""
        _, record = await self._find(job)
        self.policy.check_change(caller, record)

    async def _tag(self, caller: Caller, job: str, tag: str, change: Callable[[str, str], bool]) -> bool:
        if not tag or "," in tag or not tag.isprintable():
            raise BadRequest("a tag is a text of printable characters, without a comma")
        self.policy.check_owner(caller, job)
        entry, record = await self._find(job)
        self.policy.check_change(caller, record)
        done = bool(await self.writer.do(lambda: change(record.id, tag)))
        fresh = await self._read(self.store.jobs.get, record.id)
        if entry is not None and fresh is not None:
            entry.record = entry.record.replace(tags=fresh.tags)
        return done

    # Looking

    def may_read(self, caller: Caller | None, record: JobRecord) -> bool:
        """Whether the caller may see config, logs and events of a job; None is a caller without a token."""
        return self.policy.may_read(caller, record)

    async def get(self, caller: Caller | None, job: str, *, details: bool = False) -> JobRecord:
        """The record of a job; NoSuchJob. With `details` only for who may read its config and logs, else Forbidden."""
        _, record = await self._find(job)
        if details:
            self.policy.check_read(caller, record)
        return record

    async def config(self, caller: Caller | None, job: str) -> str:
        """The job file as submitted, its secrets masked."""
        record = await self.get(caller, job, details=True)
        return await self._read(self.store.jobs.config, record.id) or ""

    async def plan(self, caller: Caller | None, job: str) -> dict[str, object]:
        """What was planned, as `pailot plan --json` prints it."""
        return await self._plan(await self.get(caller, job, details=True))

    async def detail(self, caller: Caller | None, job: str, attempt: int | None = None) -> JobDetail:
        """A job and one of its attempts (the latest); NoSuchJob for an attempt that never was."""
        record = await self.get(caller, job)
        plan = await self._plan(record)
        if record.tasks > 64:
            shown = await asyncio.to_thread(job_history.detail, record, plan, attempt)
        else:
            shown = job_history.detail(record, plan, attempt)
        return shown if self.policy.may_read(caller, record) else shown.replace(readable=False)

    async def task_attempts(
        self, caller: Caller | None, job: str, attempt: int | None, role: str, index: int
    ) -> tuple[TaskView, Sequence[TaskView]]:
        """A task of an attempt of a job (None: the latest), and each attempt of that task, newest first."""
        record = await self.get(caller, job)
        views = await asyncio.to_thread(job_history.task_attempts, record, await self._plan(record), attempt, role, index)
        return views[0], views[1:]

    async def record(self, caller: Caller | None, job: str, attempt: int | None = None) -> dict[str, Any]:
        """The same as `pailot show --json`; with an `attempt`, the tasks as they were in that one (NoSuchJob if it never was)."""
        record = await self.get(caller, job)
        plan = await self._plan(record)
        folder = JobFolder(record.folder)
        if attempt is not None and not 0 <= attempt < max(1, folder.attempts()):
            raise NoSuchJob(f"job {record.user}~{record.name} has no attempt {attempt}")
        shown = await asyncio.to_thread(lambda: describe(record, folder, plan, attempt))
        more: dict[str, object] = {"exitCode": record.exit_code, "reason": record.reason or None, "retries": record.retries}
        follows = predecessors_of(record)
        if follows:
            more["after"] = [{"name": each.name, "on": each.on, "state": each.state or None} for each in follows]
        if not self.policy.may_read(caller, record):  # where its logs are is not shown to others either
            shown |= {"folder": None, "lastLines": []}
            for task in (task for role in shown["taskRoles"].values() for task in role["tasks"]):
                task["logs"], task["failedCommand"], task["usage"] = {}, None, None
        return {**shown, **more}

    async def usage(self, caller: Caller | None, job: str, attempt: int | None = None) -> list[dict[str, object]]:
        """What each task of an attempt (the latest) uses now, and its peaks; NoSuchJob for an attempt that never was."""
        record, number = await self._attempt_to_read(caller, job, attempt)
        plan = await self._plan(record)
        return await asyncio.to_thread(lambda: task_usage.of_tasks(JobFolder(record.folder), plan, number))

    async def task_usage(
        self, caller: Caller | None, job: str, role: str, index: int, attempt: int | None, points: int
    ) -> dict[str, object]:
        """What a task used over time."""
        record, number = await self._attempt_to_read(caller, job, attempt)
        plan = await self._plan(record)
        return await asyncio.to_thread(lambda: task_usage.of_task(JobFolder(record.folder), plan, number, role, index, points))

    async def _attempt_to_read(self, caller: Caller | None, job: str, attempt: int | None) -> tuple[JobRecord, int]:
        """A job that the caller may read, and the number of an attempt of it."""
        record = await self.get(caller, job, details=True)
        count = max(1, JobFolder(record.folder).attempts())
        if attempt is not None and not 0 <= attempt < count:
            raise NoSuchJob(f"job {record.user}~{record.name} has no attempt {attempt}")
        return record, count - 1 if attempt is None else attempt

    async def journal(self, caller: Caller | None, job: str) -> list[JournalEvent]:
        """What happened to a job, oldest first."""
        record = await self.get(caller, job, details=True)
        return await asyncio.to_thread(job_history.events, record)

    async def why(self, caller: Caller | None, job: str) -> list[str]:
        """Why a job is in the state it is in: what it waits for and who holds that, or how it failed."""
        entry, record = await self._find(job)
        self.policy.check_read(caller, record)
        lines = await asyncio.to_thread(lambda: explain(record, JobFolder(record.folder)))
        if entry is None or record.state in FINAL_JOB_STATES:
            if not JobFolder(record.folder).verdict():
                lines[-1] = f"{record.name} is {record.state}: {record.reason}"
            return lines
        if entry.phase == QUEUED and record.state == WAITING:
            lines[-1] = f"{record.name} is {WAITING}: {self.floor.wait_reason(entry).text}"
        elif entry.phase == SETTLING:
            lines[-1] = f"{record.name} is {record.state}: the process that kept it has gone, and what it left behind is ending"
        elif entry.note:
            lines[-1] = f"{record.name} is {record.state}: {entry.note}"
        return lines

    async def wait_reason(self, caller: Caller | None, job: str) -> Reason | None:
        """What a waiting job waits for, as the queue knows it; None for a job that does not wait in the queue."""
        entry, record = await self._find(job)
        self.policy.check_read(caller, record)
        in_line = entry is not None and entry.phase == QUEUED and record.state == WAITING
        return self.floor.wait_reason(entry) if entry is not None and in_line else None

    def reason_of(self, number: str) -> Reason | None:
        """What a job in the queue waits for; None for any other."""
        entry = self.floor.entries.get(number)
        in_line = entry is not None and entry.phase == QUEUED and entry.record.state == WAITING
        return self.floor.wait_reason(entry) if entry is not None and in_line else None

    def task_states(self, record: JobRecord) -> Mapping[str, int] | None:
        """How many tasks of a job are in each state; None for a job with very many. For a thread beside the loop."""
        known = self._task_states.get(record.id)
        if known is not None:
            return known
        if record.state == WAITING and record.started is None:
            return {WAITING: record.tasks}
        if record.tasks > MOST_COUNTED:
            return None
        plan = json.loads(self.store.jobs.plan(record.id) or "{}")
        counts: dict[str, int] = {}
        for tasks in job_history.detail(record, plan, None).roles.values():
            for task in tasks:
                counts[task.state] = counts.get(task.state, 0) + 1
        if record.state in FINAL_JOB_STATES:
            if len(self._task_states) >= COUNTS_KEPT:
                self._task_states.clear()
            self._task_states[record.id] = counts
        return counts

    def line(self, caller: Caller) -> tuple[list[Holder], list[tuple[Holder, Reason]]]:
        """The jobs that hold a part of the machine, the largest first, and those that wait, in line; at most `SHOWN` of each.

        A job that the caller may not see is left out.
        """
        queue = self.floor.queue

        def seen(ids: Sequence[str]) -> list[Holder]:
            entries = [self.floor.entries[each] for each in ids if each in self.floor.entries]
            names = [
                f"{each.record.user}~{each.record.name}"
                for each in entries
                if self.policy.may_see(caller, each.record.user, each.record.vc)
            ]
            return [found for found in map(self.holder, names) if found is not None]

        holders = sorted(seen(queue.running()), key=lambda each: (-each.gpus, -each.cpus, -each.memory_mb, each.job))
        waits = seen(queue.waiting()[:SHOWN])
        reasons = [(each, queue.why(self.floor.names[each.user, each.job.partition("~")[2]].record.id)) for each in waits]
        return holders[:SHOWN], reasons

    def holder(self, name: str) -> Holder | None:
        """The job of a full name that runs or waits, with what it holds."""
        user, _, job = name.partition("~")
        entry = self.floor.names.get((user, job))
        if entry is None:
            return None
        record = entry.record
        return Holder(name, user, record.vc, record.cpus, record.memory_mb, record.gpus, record.started)

    async def log(
        self,
        caller: Caller | None,
        job: str,
        role: str,
        index: int,
        *,
        attempt: int | None = None,
        task_attempt: int | None = None,
        stream: str = "all",
    ) -> Log:
        """The log of a task attempt (None: the latest): its size, its bytes from any offset, whether it has ended."""
        record = await self.get(caller, job, details=True)
        return self.find_log(record, role, index, attempt, task_attempt, stream)

    def find_log(
        self, record: JobRecord, role: str, index: int, attempt: int | None, task_attempt: int | None, stream: str
    ) -> Log:
        """The log in the folder of a job; NoSuchLog, BadRequest for an unknown stream."""
        if stream not in layout.STREAMS:
            raise BadRequest(f"there is no stream {stream!r}, but {', '.join(layout.STREAMS)}")
        folder = JobFolder(record.folder)
        number = max(0, folder.attempts() - 1) if attempt is None else attempt
        if "/" in role or role.startswith("."):
            raise NoSuchLog(f"job {record.user}~{record.name} has no task role {role!r}")
        task = folder.task(number, role, index)
        count = layout.begun_attempts(task)
        chosen = max(0, count - 1) if task_attempt is None else task_attempt
        path = layout.task_attempt_folder(task, chosen)
        if not 0 <= chosen < count or not (os.path.exists(os.path.join(path, stream)) or log_files.size(path, stream)):
            raise NoSuchLog(f"{role}:{index} of job {record.user}~{record.name} has no log yet, or no such attempt")
        over = record.state in FINAL_JOB_STATES or number < folder.attempts() - 1
        ended = over or os.path.exists(os.path.join(path, layout.EXIT))
        return Log(record.id, path, stream, number, chosen, ended=ended)

    async def search_logs(self, caller: Caller | None, job: str, wanted: Wanted, limit: int) -> AsyncGenerator[Told, None]:
        """Lines of a job's logs, in batches, and at last how the search ended. Raises BadRequest for a pattern that is none."""
        record = await self.get(caller, job, details=True)
        roles = roles_of(await self._plan(record))
        found = self.searches.run(caller.name if caller else "", record.folder, roles, wanted, limit)
        await anext(found)  # which tells a wrong pattern
        return found

    # Following

    def subscribe_jobs(self, caller: Caller, after: int | None = None, wanted: Watched = ALL_JOBS) -> AsyncIterator[Event]:
        """Changes of state of the jobs that the caller may see and wants, from now on, or from after an event id.

        They come in bursts, at most four a second; of a job that changed several times in between, the last is told.
        """
        return subscriptions.jobs(self, caller, after, wanted)

    def subscribe_list(
        self, caller: Caller, after: int | None = None, wanted: Watched = ALL_JOBS
    ) -> AsyncIterator[tuple[int, list[Event] | None]]:
        """The same, one burst at a time, with the id to go on from; None: too much was missed, look at everything again."""
        return subscriptions.changes(self, caller, after, wanted)

    def subscribe_job(self, caller: Caller | None, job: str, after: int | None = None) -> AsyncIterator[Event]:
        """A job as it is now, then what happens to it, to its end: `job`, `task` and one `end` event."""
        return subscriptions.job(self, caller, job, after)

    def subscribe_log(
        self,
        caller: Caller | None,
        job: str,
        role: str,
        index: int,
        *,
        attempt: int | None = None,
        task_attempt: int | None = None,
        stream: str = "all",
        offset: int = 0,
        after: str = "",
    ) -> AsyncIterator[LogPiece]:
        """The log of a task as it grows, from an offset, or from where the piece with id `after` ended.

        With `attempt` and `task_attempt` only that one; without, the latest, and every retry that follows, to the end of the
        job. The last piece has `ended`.
        """
        return subscriptions.log(self, caller, job, role, index, attempt, task_attempt, stream, offset, after)

    def begin_of_log(self, record: JobRecord, role: str, index: int, stream: str = "all") -> str:
        """Where `subscribe_log` begins by default, as its `after`: with the latest attempt of the task."""
        return subscriptions.begin_of_log(self, record, role, index, stream)

    # Code

    async def has_code(self, caller: Caller, digest: str) -> bool:
        """Whether the caller has uploaded an archive with this SHA-256; what others have is not told."""
        return self.code.may_use(digest, caller.name)

    async def put_code(self, caller: Caller, digest: str, content: AsyncIterator[bytes]) -> bool:
        """Keep a .tar.gz; False if the caller had sent it before. What another user has sent is kept once for both.

        BadRequest where digest or archive are wrong (paths that lead out of it), QuotaExceeded where there is no room for it.
        """
        self._check_open()
        self.unix.check(caller.name)
        new, size = not self.code.may_use(digest, caller.name), 0
        if new:
            if await self.code.is_tight(caller.name):
                await self._make_room(caller.name)
            size = await self.code.put(digest, caller.name, content, run_as=self.unix.owner(caller.name) or "")
        await self.writer.do(lambda: self.store.code.add(digest, size, time.time()))
        return new

    async def _make_room(self, user: str) -> None:
        """Remove what this user has sent and no job has, but for what a job may just be about to name."""
        before = time.time() - JUST_SENT_SECONDS

        def remove() -> None:
            for blob in self.store.code.unused(before, 1000):
                if self.code.may_use(blob.digest, user) and self.store.code.remove_unused(blob.digest, before):
                    self.code.remove(blob.digest)

        await asyncio.to_thread(remove)

    # The machine

    async def capacity(self) -> CapacityReport:
        """What there is, what is used, and per virtual cluster."""
        queue = self.floor.queue
        waiting: dict[str, int] = {}
        running: dict[str, int] = {}
        for entry in self.floor.entries.values():
            counted = waiting if entry.phase == QUEUED else running
            counted[entry.record.vc] = counted.get(entry.record.vc, 0) + 1
        clusters = {
            name: ClusterUse(
                name,
                Shares(rules.cpus, rules.memory_mb, rules.gpus),
                _shares(queue.used_by(name)),
                running.get(name, 0),
                waiting.get(name, 0),
                rules,
            )
            for name, rules in self.clusters.items()
        }
        if clusters[DEFAULT_CLUSTER].guaranteed == Shares():
            others = [rules for name, rules in self.clusters.items() if name != DEFAULT_CLUSTER]
            rest = Shares(
                max(0, self.machine.cpu - sum(each.cpus for each in others)),
                max(0, self.machine.memory_mb - sum(each.memory_mb for each in others)),
                max(0, self.machine.gpu - sum(each.gpus for each in others)),
            )
            clusters[DEFAULT_CLUSTER] = clusters[DEFAULT_CLUSTER].replace(guaranteed=rest, is_rest=True)
        return CapacityReport(_shares(self.machine), _shares(queue.used()), clusters, os.uname().nodename, self.skus)

    def _use(self) -> Use:
        used, queue = self.floor.queue.used(), self.floor.queue
        return Use(used.cpu, used.memory_mb, used.gpu, len(queue.running()), len(queue.waiting()))

    async def alerts(self, caller: Caller) -> list[Alert]:
        """What is wrong now, as far as it is the caller's business."""
        return seen_by(caller, await self._alerts.look(self))

    async def alert_counts(self) -> Mapping[str, int]:
        """How many alerts of each name there are; for /metrics."""
        return counted(await self._alerts.look(self))

    async def standing(self) -> list[Standing]:
        """All jobs that are not over, with their tasks, in the order they came."""
        records = sorted((entry.record for entry in self.floor.entries.values()), key=lambda each: each.submitted)

        def look() -> list[Standing]:
            found = []
            for record in records:
                plan = json.loads(self.store.jobs.plan(record.id) or "{}")
                shown = job_history.detail(record, plan, None)
                found.append(Standing(record, plan, shown.roles, shown.attempt))
            return found

        return await asyncio.to_thread(look)

    async def set_clusters(self, clusters: Mapping[str, Mapping[str, Any]]) -> None:
        """Virtual clusters changed: what is set for each (see `ClusterRules`) by name; `default` is always there."""
        made = {name: ClusterRules.read(each) for name, each in clusters.items()}
        self.clusters = {DEFAULT_CLUSTER: ClusterRules(), **made}
        shares = {name: rules.share for name, rules in self.clusters.items() if rules.share != Share()}
        self.floor.queue.resize(self.machine, shares, {name: rules.limits for name, rules in self.clusters.items()})
        self.floor.decide_soon()

    def figures(self) -> TeamFigures:
        """What is counted, for /metrics."""
        entries = self.floor.entries.values()
        states: dict[str, int] = {}
        for entry in entries:
            states[entry.record.state] = states.get(entry.record.state, 0) + 1
        queue, counts = self.floor.queue, self.floor.counts
        return TeamFigures(
            states=states,
            queued=sum(entry.phase == QUEUED for entry in entries),
            submitted=self.submitted,
            started=counts["started"],
            ended=dict(self.floor.ends),
            preempted=counts["preempted"],
            platform_retries=counts["platformRetries"],
            keepers_replaced=counts["keepers"],
            total=_shares(self.machine),
            used=_shares(queue.used()),
            clusters={name: _shares(queue.used_by(name)) for name in self.clusters},
        )

    async def shutdown(self, how: str = "hand-over") -> None:
        """End: `hand-over` leaves running jobs to the next server, `drain` waits for them, `stop-jobs` stops them."""
        if how not in ("hand-over", "drain", "stop-jobs"):
            raise BadRequest(f"a server ends by hand-over, drain or stop-jobs, not {how!r}")
        self.closed = self.floor.holding_back = True
        if how == "hand-over":
            return
        if how == "stop-jobs":
            for entry in list(self.floor.entries.values()):
                if entry.phase != QUEUED:
                    await self.floor.stop(entry, grace=None, now=False)
        seen = self.floor.idle.count
        while any(entry.phase != QUEUED for entry in self.floor.entries.values()):
            seen = await self.floor.idle.wait(seen)

    # Parts

    def _check_open(self) -> None:
        if self.closed:
            raise ShuttingDown("the server is ending and takes no more jobs; try again soon")

    async def _read(self, ask: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
        """Ask the store: a local file takes microseconds, another machine does not."""
        if self._local_store:
            return ask(*args, **keywords)
        return await asyncio.to_thread(ask, *args, **keywords)

    async def _find(self, job: str) -> tuple[Entry | None, JobRecord]:
        user, separator, name = job.partition("~")
        if not separator:
            raise NoSuchJob(f"Job {job} is not found.")
        entry = self.floor.names.get((user, name))
        if entry is not None:
            return entry, entry.record
        record = await self._read(self.store.jobs.by_name, user, name)
        if record is None and len(name) == ID_LENGTH:
            record = await self._read(self.store.jobs.get, name)  # an id names a job as well, whosever it is
            if record is not None and record.id in self.floor.entries:
                entry = self.floor.entries[record.id]
                return entry, entry.record
        if record is None:
            raise NoSuchJob(f"Job {job} is not found.")
        return None, record

    async def _record(self, job: str) -> JobRecord:
        return (await self._find(job))[1]

    async def _plan(self, record: JobRecord) -> dict[str, object]:
        text = await self._read(self.store.jobs.plan, record.id)
        found: dict[str, object] = json.loads(text or "{}")
        return found

    async def _free_name(self, user: str, name: str) -> str:
        base = name[:240]
        while True:
            chosen = f"{base}-{os.urandom(3).hex()}"
            if (user, chosen) not in self.floor.names and await self._read(self.store.jobs.by_name, user, chosen) is None:
                return chosen

    def _prepare_again(self, record: JobRecord) -> Prepared:
        text = self.store.jobs.config(record.id) or ""
        sealed = self.store.jobs.secrets(record.id)
        kept = Kept.opened(self.box.open_all(record.id, sealed)) if sealed is not None else Kept()
        library = record.more.get(LIBRARY)
        return self.reader.prepare(text, record.user, with_code=record.code is not None, kept=kept, library=library)

    def _context(self, record: JobRecord, prepared: Prepared) -> LaunchContext:
        run_as = self.unix.of(record.user)
        return LaunchContext(
            cwd="",
            work_dir="",
            environment=self.unix.environment(run_as, self.environment),
            secrets=prepared.private.secrets,
            logins=prepared.private.logins,
            hidden=prepared.hidden,
            cache=self._cache(record.user, run_as),
            home=self.home,
            rotate_bytes=int(self.settings.log_rotate_mb * 1_000_000),
            code=self.code.tree(record.code) if record.code else "",
            run_as=run_as,
            rules=self.rules,
            data_folder=self._data_folder,
            data_bytes=self.settings.data_bytes,
            data_user=self.settings["data_cache_user"],
        )

    def _cache(self, user: str, run_as: str) -> str:
        """A user's own: what a user has fetched is not shared. Where tasks run as a Unix user, that user can reach it."""
        if run_as:
            return os.path.join(self.home, "cache", f"unix-{run_as}")
        return f"{self._caches}/user-{quote(user, safe='')}"


def _shares(of: Capacity) -> Shares:
    return Shares(of.cpu, of.memory_mb, of.gpu)
