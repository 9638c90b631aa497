"""`Job` to `Plan`: pure, and the same every time."""

from __future__ import annotations

from ..protocol.problems import InvalidJob
from .environment import MAX_NAMED_PEERS, job_environment, role_environment
from .plan import Image, Plan, Provision, RolePlan
from .prerequisite_expansion import expand, storages
from .scripts import build_scripts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..protocol.model import Auth, Job, TaskRole
    from ..protocol.problems import Problem
    from .prerequisite_expansion import Expansion


def plan(job: Job, user: str = "user") -> Plan:
    """Exactly what a job will run; raises InvalidJob where a plugin refuses its parameters."""
    shared = job_environment(job, user)
    problems: list[Problem] = []
    roles: dict[str, RolePlan] = {}
    for name, role in job.task_roles.items():
        expansion = expand(job, role)
        problems += expansion.problems
        roles[name] = _role_plan(job, role, expansion, role_environment(job, role, shared))
    found = tuple(dict.fromkeys(problems))
    if any(problem.is_error for problem in found):
        raise InvalidJob((*found, *job.warnings))
    mounts, defaults = storages(job)
    return Plan(
        name=job.name,
        user=user,
        roles=roles,
        job_retry_count=job.job_retry_count,
        virtual_cluster=job.virtual_cluster,
        priority=job.extras.hived.priority if job.extras.hived else "test",
        gang=job.extras.gang,
        options=job.extras.options,
        secrets=job.secrets,
        storages=mounts,
        default_storages=defaults,
        warnings=(*job.warnings, *found),
    )


def check(job: Job) -> tuple[Problem, ...]:
    """What planning would find wrong or doubtful, without making the plan."""
    problems = [problem for role in job.task_roles.values() for problem in expand(job, role).problems]
    return tuple(dict.fromkeys(problems))


def _role_plan(job: Job, role: TaskRole, expansion: Expansion, environment: dict[str, str]) -> RolePlan:
    options = job.extras.options
    provisions = list(expansion.provisions)
    if options.code:
        provisions.insert(0, Provision("code", options.code))
    return RolePlan(
        name=role.name,
        instances=role.instances,
        image=_image(role, job.registry_auth),
        entrypoint=role.entrypoint,
        scripts=build_scripts(role.entrypoint, expansion.callbacks),
        environment=environment,
        resources=role.resources,
        task_retry_count=role.task_retry_count,
        completion=role.completion,
        prerequisites=tuple(each.name for each in role.prerequisites),
        callbacks=tuple(expansion.callbacks),
        provisions=tuple(provisions),
        port_base=options.port_base.get(role.name, {}),
        peers_by_name=job.task_count <= MAX_NAMED_PEERS or any(each.kind == "ssh-key" for each in provisions),
    )


def _image(role: TaskRole, auth: Auth | None) -> Image:
    for each in role.prerequisites:
        if each.type == "dockerimage" and each.name == role.docker_image:
            return Image(str(each.uri), each.auth or auth)
    return Image(role.docker_image, auth)
