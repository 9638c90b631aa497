"""`Job` to `Plan`: pure, and the same every time."""

from __future__ import annotations

from ..problem import together
from ..protocol.limits import JOB_LIMITS, MIB, TooMuch
from ..protocol.problems import InvalidJob
from ..runfolder.plan import MASK, Image, Plan, Provision, RolePlan
from .environment import MAX_NAMED_PEERS, job_environment, role_environment
from .prerequisite_expansion import Expander, storages
from .private_values import auth_of, is_reference
from .scripts import build_scripts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..job_values import Auth
    from ..problem import Problem
    from ..protocol.model import Job, TaskRole
    from ..protocol.problems import Finding
    from .prerequisite_expansion import Expansion


def plan(job: Job, user: str = "user") -> Plan:
    """Exactly what a job will run; raises InvalidJob where a plugin refuses its parameters."""
    expansions, found = _expansions(job)
    if any(problem.is_error for problem in found):
        raise InvalidJob((*found, *job.warnings))
    shared = job_environment(job, user)
    if len(job.task_roles) * (sum(map(len, shared)) + sum(map(len, shared.values()))) > JOB_LIMITS.VARIABLES:
        size = f"{JOB_LIMITS.VARIABLES // MIB} MiB"
        message = f"the variables of all roles come to more than {size}; set fewer in extras.pailot.environment, or split the job"
        raise InvalidJob((job.problem("job-limit", message, ("taskRoles",)), *job.warnings))
    by_name = job.task_count <= MAX_NAMED_PEERS
    roles = {
        name: _role_plan(job, role, expansions[name], role_environment(job, role, shared), by_name)
        for name, role in job.task_roles.items()
    }
    mounts, defaults, key = storages(job)
    return Plan(
        name=job.name,
        user=user,
        roles=roles,
        job_retry_count=job.job_retry_count,
        virtual_cluster=job.virtual_cluster,
        priority=job.extras.hived.priority if job.extras.hived else "test",
        gang=job.extras.gang,
        options=job.extras.options,
        storages=mounts,
        default_storages=defaults,
        storages_key=key,
        warnings=together((*job.warnings, *found)),
    )


def check(job: Job) -> tuple[Problem, ...]:
    """What planning would find wrong or doubtful, without making the plan."""
    return _expansions(job)[1]


def findings(job: Job) -> list[Finding]:
    """The same before the places are known; of a job that goes beyond a limit, that it does."""
    try:
        return [finding for expansion in _expanded(job).values() for finding in expansion.findings]
    except TooMuch as error:
        return [error.finding]


def _expansions(job: Job) -> tuple[dict[str, Expansion], tuple[Problem, ...]]:
    """What the prerequisites of each role come to, and what is wrong or doubtful in them."""
    try:
        expansions = _expanded(job)
    except TooMuch as error:
        raise InvalidJob((*job.problems([error.finding]), *job.warnings)) from None
    found = [finding for expansion in expansions.values() for finding in expansion.findings]
    return expansions, job.problems(found) if found else ()


def _expanded(job: Job) -> dict[str, Expansion]:
    expander = Expander(job)
    return {name: expander.expand(role) for name, role in job.task_roles.items()}


def _role_plan(job: Job, role: TaskRole, expansion: Expansion, environment: dict[str, str], by_name: bool) -> RolePlan:
    options = job.extras.options
    provisions = list(expansion.provisions)
    if options.code:
        provisions.insert(0, Provision("code", options.code))
    return RolePlan(
        name=role.name,
        instances=role.instances,
        image=_image(role, job.registry_auth),
        entrypoint=role.entrypoint,
        scripts=build_scripts(role.entrypoint, expansion.callbacks, job.extras.options.output_dir or ""),
        environment=environment,
        resources=role.resources,
        task_retry_count=role.task_retry_count,
        completion=role.completion,
        prerequisites=tuple(each.name for each in role.prerequisites),
        callbacks=tuple(expansion.callbacks),
        provisions=tuple(provisions),
        port_base=options.port_base.get(role.name, {}),
        peers_by_name=by_name or any(each.kind == "ssh-key" for each in provisions),
    )


def _image(role: TaskRole, auth: Auth | None) -> Image:
    """A password that is written out, in the job or in its `authFile`, travels beside the plan (see `private_values`)."""
    uri = next(
        (str(each.uri) for each in role.prerequisites if each.type == "dockerimage" and each.name == role.docker_image),
        role.docker_image,
    )
    found = auth_of(role, auth)
    if found is not None and found.password and not is_reference(found.password):
        found = found.replace(password=MASK)
    return Image(uri, found)
