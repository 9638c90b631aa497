"""What an instance runs: its place, its requirements, how it finds the others, then exactly the user's command."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys

from . import requirements as packages
from .alibaba_types import JobType
from .requirements import HERE, NODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

ROLE = "worker"
COMMAND = "pailot_command"
"""The parameter that holds a command with `<%` in it: only the values of parameters are never taken for templates."""
LONGEST = 128 * 1024 - 1
"""Bytes in a variable, with its name, or in an argument: the kernel takes no more."""

_HOSTFILE = f"""\
export PAI_HOSTFILE="$PAI_CONFIG_DIR/hostfile"
printf '%s\\n' "$PAI_TASK_ROLE_{ROLE}_HOST_LIST" | tr , '\\n' | sed "s/:.*/ slots=$NPROC_PER_NODE/" >"$PAI_HOSTFILE"
export OMPI_MCA_orte_default_hostfile="$PAI_HOSTFILE" I_MPI_HYDRA_HOST_FILE="$PAI_HOSTFILE\""""

_RABIT = """\
export DMLC_TRACKER_URI="$MASTER_ADDR" DMLC_TRACKER_PORT="$MASTER_PORT" DMLC_NUM_WORKER="$WORLD_SIZE"
export DMLC_TASK_ID="$RANK" DMLC_ROLE=worker"""


def commands(
    command: str | Sequence[str],
    job_type: str,
    requirements: Sequence[str],
    requirements_file: str | None,
    *,
    place: str,
    image: str,
    code_in_cwd: bool,
) -> tuple[list[str], dict[str, object]]:
    """The commands of the role, and the parameters that they refer to."""
    lines = []
    if code_in_cwd:
        lines.append('cp -R ./. "$PAI_WORKING_DIR"')
    lines.append('cd "$PAI_WORKING_DIR"')
    if place in (HERE, NODE) and sys.executable:
        # As an image brings its Python along, so does the program that starts a job without one.
        put = f'export PATH={shlex.quote(os.path.dirname(sys.executable))}:"$PATH"'
        lines.append(put if place == HERE else f"[ ! -x {shlex.quote(sys.executable)} ] || {put}")
    if requirements or requirements_file != "":
        lines.append(packages.install(requirements, requirements_file, place, image))
    if job_type == JobType.MPIJob:
        lines.append(_HOSTFILE)
    if job_type == JobType.XGBoostJob:
        lines.append(_RABIT)
    last = f"exec {shlex.join(words_of(command))}"
    if "<%" not in last:
        return [*lines, last], {}
    return [*lines, f"<% $parameters.{COMMAND} %>"], {COMMAND: last}


def words_of(command: str | Sequence[str]) -> list[str]:
    """The program and its arguments."""
    return ["sh", "-c", command] if isinstance(command, str) else list(command)


def variables(parameters: Mapping[str, Any], name: str, processes: int) -> tuple[dict[str, str], list[str]]:
    """The variables of the contract that do not depend on where an instance is; and those that are too long to be any."""
    texts = {key: str(value) for key, value in parameters.items()}
    found = {
        "PAI_TRAINING_JOB_ID": name,
        "NPROC_PER_NODE": str(processes),
        "PAI_HPS": json.dumps(texts),
        "PAI_USER_ARGS": " ".join(f"--{key} {value}" for key, value in texts.items()),
        **{variable_of(key): value for key, value in texts.items()},
    }
    long = [key for key, value in found.items() if too_long(key, value)]
    return {key: value for key, value in found.items() if key not in long}, long


def variable_of(parameter: str) -> str:
    """The variable that holds one parameter."""
    return f"PAI_HPS_{re.sub(r'[^A-Za-z0-9_]', '_', parameter).upper()}"


def too_long(*parts: str) -> bool:
    return len("=".join(parts).encode(errors="replace")) >= LONGEST
