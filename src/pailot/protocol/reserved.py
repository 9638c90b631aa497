"""The variables that a job cannot set: Pailot sets them for each task, and programs of the task rely on them.

Every other name is the job's, other `PAI_*` names included: OpenPAI's and Alibaba's clients send some of them with the job.
What is set elsewhere in the house must be here, or be named in the test that looks for it.
"""

from __future__ import annotations

import re

PREFIXES = ("PAILOT_", "FC_")
"""All names that begin so."""
FIXED = (
    "CHECKPOINT_DIR", "CODE_DIR", "CONFIG_DIR", "CONTAINER_HOST_IP", "CONTAINER_HOST_PORT", "CONTAINER_HOST_PORT_LIST",
    "CONTAINER_SSH_PORT", "CURRENT_CONTAINER_IP", "CURRENT_CONTAINER_PORT", "CURRENT_TASK_ROLE_CURRENT_TASK_INDEX",
    "CURRENT_TASK_ROLE_NAME", "DATA_DIR", "EXPORTS_FILE", "FRAMEWORK_NAME", "JOB_NAME", "JOB_SSH_KEY", "JOB_TASK_COUNT",
    "JOB_TASK_ROLE_COUNT", "JOB_TASK_ROLE_LIST", "OUTPUT_DIR", "PEERS_FILE", "SSH_DIR", "TASKS_NUM", "TASK_EXIT_CODE",
    "TASK_INDEX", "TASK_LOG_DIR", "TASK_OUTCOME", "TASK_REASON", "TASK_ROLES_NUM", "TASK_ROLE_COUNT", "TASK_ROLE_INSTANCES",
    "TASK_ROLE_LIST", "USERNAME", "USER_NAME", "VIRTUAL_CLUSTER", "WORKING_DIR", "WORK_DIR",
)  # fmt: skip
"""After `PAI_`: what every task has, or may have."""
_ANY = "[A-Za-z0-9_]"
NAMED = (
    f"CONTAINER_HOST_{_ANY}+_PORT_LIST", f"FETCH_{_ANY}+", f"HOST_IP_{_ANY}+", f"INPUT_{_ANY}+", f"MIN_FAILED_TASK_COUNT_{_ANY}+",
    f"MIN_SUCCEEDED_TASK_COUNT_{_ANY}+", f"OUTPUT_{_ANY}+", f"PORT_LIST_{_ANY}+", f"RESOURCE_{_ANY}+",
    f"TASK_ROLE_TASK_COUNT_{_ANY}+", f"TASK_ROLE_{_ANY}+_HOST_LIST", f"{_ANY}+_[0-9]+_{_ANY}+_PORT",
)  # fmt: skip
"""After `PAI_`: what carries the name of a role, a port, a channel or a prerequisite."""
PATTERN = f"(({'|'.join(PREFIXES)}){_ANY}*|PAI_({'|'.join((*FIXED, *NAMED))}))"
HINT = "Pailot sets it for each task; choose another name"


def is_reserved(name: str) -> bool:
    """Whether a job may not set this variable.

    >>> is_reserved("PAI_CHECKPOINT_DIR"), is_reserved("PAI_HPS"), is_reserved("MASTER_ADDR"), is_reserved("FC_X")
    (True, False, False, True)
    """
    return re.fullmatch(PATTERN, name) is not None
