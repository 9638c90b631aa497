"""The variables of a task that are known before it is placed.

OpenPAI's REST server spells a role as the file does, its runtime in lower case without underscores;
jobs in the wild rely on either, so both are exported.
"""

from __future__ import annotations

from ..protocol.lazy_regex import pattern
from .quick_md5 import hex_md5

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..protocol.model import Job, TaskRole

MAX_NAMED_PEERS = 128
MAX_VALUE = 100_000  # the kernel takes no variable above 128 KiB; PAI_PEERS_FILE has them all
PRINT_AT_ONCE = {"PYTHONUNBUFFERED": "1"}
"""Else Python keeps what it prints until it ends, and loses it when it is killed. What the job sets wins."""
_NOT_IN_NAMES = pattern("[^A-Za-z0-9_]")
_NOT_CONVERTED = pattern("[^a-z0-9]")


def converted(role: str) -> str:
    """A role's name as OpenPAI's runtime spells it: `ps_Server` is `psserver`."""
    return _NOT_CONVERTED.sub("", role.lower())


def spellings(role: str) -> tuple[str, ...]:
    """Both spellings of a role's name, as parts of variable names."""
    raw = _NOT_IN_NAMES.sub("_", role)
    short = converted(role)
    return (raw,) if short in (raw, "") else (raw, short)


def job_environment(job: Job, user: str) -> dict[str, str]:
    """What all tasks of a job share."""
    full_name = f"{user}~{job.name}"
    roles = list(job.task_roles.values())
    role_list = ",".join(job.task_roles)
    tasks, role_count = str(job.task_count), str(len(roles))
    few = job.task_count < MAX_VALUE // 3  # else the list would be too long in any case
    instances = ",".join(f"{converted(role.name)}:{index}" for role in roles for index in range(role.instances)) if few else ""
    variables = {
        "PAI_FRAMEWORK_NAME": full_name,
        "PAI_JOB_NAME": full_name,
        "PAI_USER_NAME": user,
        "PAI_USERNAME": user,
        "PAI_DEFAULT_FS_URI": "",
        "PAI_VIRTUAL_CLUSTER": job.virtual_cluster,
        "PAI_TASK_ROLE_COUNT": role_count,
        "PAI_TASK_ROLES_NUM": role_count,
        "PAI_JOB_TASK_ROLE_COUNT": role_count,
        "PAI_TASK_ROLE_LIST": role_list,
        "PAI_JOB_TASK_ROLE_LIST": role_list,
        "PAI_TASKS_NUM": tasks,
        "PAI_JOB_TASK_COUNT": tasks,
        **({"PAI_TASK_ROLE_INSTANCES": instances} if few and len(instances) < MAX_VALUE else {}),
        "FC_FRAMEWORK_NAME": hex_md5(full_name.encode()),
        **PRINT_AT_ONCE,
    }
    if len(roles) <= MAX_NAMED_PEERS:
        for role in roles:
            variables.update(_about(role))
    options = job.extras.options
    for name, value in (
        ("PAI_DATA_DIR", options.data_dir),
        ("PAI_OUTPUT_DIR", options.output_dir),
        ("PAI_CODE_DIR", options.code),
    ):
        if value:
            variables[name] = value
    variables.update(options.environment)
    return variables


def role_environment(job: Job, role: TaskRole, shared: dict[str, str]) -> dict[str, str]:
    """What the tasks of one role share: the job's variables and their own."""
    variables = {
        **shared,
        "PAI_CURRENT_TASK_ROLE_NAME": role.name,
        "FC_TASKROLE_NAME": converted(role.name),
        "WORLD_SIZE": str(role.instances),
    }
    if len(job.task_roles) > MAX_NAMED_PEERS:  # it is told of itself only: the variables would grow with the square
        variables.update(_about(role))
    if role.resources.gpu == 0:
        variables["NVIDIA_VISIBLE_DEVICES"] = "none"
        variables["CUDA_VISIBLE_DEVICES"] = ""
    variables.update(job.extras.options.environment)
    return variables


def _about(role: TaskRole) -> dict[str, str]:
    wanted, bounds = role.resources, role.completion
    facts = {
        "PAI_TASK_ROLE_TASK_COUNT": str(role.instances),
        "PAI_RESOURCE": f"{wanted.gpu},{wanted.cpu},{wanted.memory_mb},{wanted.shm_mb or 0}",
        "PAI_MIN_FAILED_TASK_COUNT": str(-1 if bounds.min_failed is None else bounds.min_failed),
        "PAI_MIN_SUCCEEDED_TASK_COUNT": str(-1 if bounds.min_succeeded is None else bounds.min_succeeded),
    }
    return {f"{name}_{spelling}": value for spelling in spellings(role.name) for name, value in facts.items()}
