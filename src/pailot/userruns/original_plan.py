"""What a run was begun with, for a driver that takes it up later: its plan, its secrets, its environment."""

from __future__ import annotations

import os

from ..credentials import of_environment
from ..engines.contract import LaunchContext
from ..job_values import Completion, Options, Resources
from ..library import Library
from ..planning import plan as make_plan
from ..planning.plugins import exists as is_plugin
from ..planning.private_values import secret_values
from ..protocol import read
from ..runfolder import layout, plan_codec
from ..runfolder.atomic_json import read_record
from ..runfolder.plan import Image, Plan, RolePlan, Scripts
from ..settings import Settings
from .masked_job_file import kept_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runfolder.records import RunRecord
    from .masked_job_file import Kept
    from .run_folder import JobFolder


def plan_to_follow(folder: JobFolder, kept: Kept) -> Plan:
    """The plan for a driver that starts no task: the server that runs the job retries it, and counts the time."""
    plan = plan_codec.whole_plan(folder.plan(), kept.taken) or _few_facts(folder)
    return plan.replace(job_retry_count=0, options=Options(grace_seconds=plan.options.grace_seconds))


def _few_facts(folder: JobFolder) -> Plan:
    """As much of the plan as such a driver needs, of a folder that an earlier Pailot wrote."""
    shown = folder.plan()
    options = shown.get("options") or {}
    roles = shown["taskRoles"].items()
    return Plan(
        name=shown["name"],
        user=_job(folder).user,
        roles={
            name: RolePlan(name, role["instances"], Image(""), "", Scripts(""), {}, Resources(0, 0, 0), 0, Completion(None, None))
            for name, role in roles
        },
        job_retry_count=0,
        virtual_cluster="",
        priority="",
        gang=True,
        options=Options(grace_seconds=float(options.get("graceSeconds") or 30)),
    )


def as_it_was(folder: JobFolder) -> tuple[Plan, LaunchContext]:
    """The plan and the context that the run began with: its secrets, its environment."""
    settings, record = Settings(), _job(folder)
    kept = kept_for(settings.home, folder)
    plan = plan_codec.whole_plan(folder.plan(), kept.taken) or _planned_again(folder, kept)
    payload = read_record(os.path.join(folder.attempt(max(0, folder.attempts() - 1)), layout.PAYLOAD)) or {}
    environment = {**payload.get("environment", {}), **kept.environment}
    context = LaunchContext(
        cwd=record.cwd or ".",
        work_dir=record.work_dir,
        environment=environment,
        secrets=secret_values(kept.secrets, plan),
        hidden=tuple(dict.fromkeys((*kept.hidden, *of_environment(environment)))),
        cache=settings.cache,
        home=settings.home,
        sandbox=record.sandbox,
        rotate_bytes=int(settings.log_rotate_mb * 1_000_000),
        data_folder=settings.own_data_folder,
        data_bytes=settings.data_bytes,
    )
    return plan, context


def _planned_again(folder: JobFolder, kept: Kept) -> Plan:
    """The plan of a folder that an earlier Pailot wrote: from its job file, with what was kept sealed of that."""
    record, changes = _job(folder), tuple(kept.changes())
    text = folder.read_text(layout.JOB_FILE)
    shelf = Library.from_settings(())
    job = read(text, file="job.yaml", changes=changes, lenient=True, library=shelf.find, is_plugin=is_plugin)
    return make_plan(job.replace(name=record.name), record.user)


def _job(folder: JobFolder) -> RunRecord:
    job = folder.job()
    assert job is not None  # a run without this record is damaged, and is not driven on
    return job
