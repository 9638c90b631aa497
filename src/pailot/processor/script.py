"""What an instance runs: its place, its requirements, how it finds the others, then exactly the user's command."""

from __future__ import annotations

import os
import shlex
import sys

from .records import JobType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

ROLE = "worker"
COMMAND = "pailot_command"
"""The parameter that holds a command with `<%` in it: only the values of parameters are never taken for templates."""

HERE, CONTAINER, SERVER = "here", "container", "server"
"""Where it runs: in processes of this machine, in a container, or wherever a server runs it."""

_PATHS = 'printf \'%s\\n\' {known} >"$(echo "$environment"/lib/python3*/site-packages)/of-the-user.pth"'

_HOSTFILE = f"""\
export PAI_HOSTFILE="$PAI_CONFIG_DIR/hostfile"
printf '%s\\n' "$PAI_TASK_ROLE_{ROLE}_HOST_LIST" | tr , '\\n' | sed "s/:.*/ slots=$NPROC_PER_NODE/" >"$PAI_HOSTFILE.$RANK"
mv "$PAI_HOSTFILE.$RANK" "$PAI_HOSTFILE"
export OMPI_MCA_orte_default_hostfile="$PAI_HOSTFILE" I_MPI_HYDRA_HOST_FILE="$PAI_HOSTFILE\""""

_RABIT = """\
export DMLC_TRACKER_URI="$MASTER_ADDR" DMLC_TRACKER_PORT="$MASTER_PORT" DMLC_NUM_WORKER="$WORLD_SIZE"
export DMLC_TASK_ID="$RANK" DMLC_ROLE=worker"""

_ENVIRONMENT = """\
environment="${{XDG_CACHE_HOME:-${{HOME:-/tmp}}/.cache}}/pailot/environments/{key}"
mkdir -p "${{environment%/*}}"
(
    flock 9 && {{ [ -e "$environment/.complete" ] || {{
        rm -rf "$environment" && {python} -m venv --system-site-packages {without} "$environment" &&
            {paths} &&
            {install} &&
            touch "$environment/.complete"
    }}; }}
) 9>"$environment.lock" || {{ echo "the requirements could not be installed" >&2; exit 1; }}
export VIRTUAL_ENV="$environment" PATH="$environment/bin:$PATH\""""


def commands(
    command: str | Sequence[str],
    job_type: str,
    requirements: Sequence[str],
    requirements_file: str,
    *,
    place: str,
    code_in_cwd: bool,
) -> tuple[list[str], dict[str, Any]]:
    """The commands of the role, and the parameters that they refer to."""
    lines = []
    if code_in_cwd:
        lines.append('cp -R ./. "$PAI_WORKING_DIR"')
    lines.append('cd "$PAI_WORKING_DIR"')
    if place == HERE and sys.executable:
        # As an image brings its Python along, so does the program that starts a job without one.
        lines.append(f'export PATH={shlex.quote(os.path.dirname(sys.executable))}:"$PATH"')
    if requirements or requirements_file:
        lines.append(_install(requirements, requirements_file, place))
    if job_type == JobType.MPIJob:
        lines.append(_HOSTFILE)
    if job_type == JobType.XGBoostJob:
        lines.append(_RABIT)
    words = ["sh", "-c", command] if isinstance(command, str) else list(command)
    last = f"exec {shlex.join(words)}"
    if "<%" not in last:
        return [*lines, last], {}
    return [*lines, f"<% $parameters.{COMMAND} %>"], {COMMAND: last}


def variables(parameters: Mapping[str, Any], name: str, processes: int) -> dict[str, str]:
    """The variables of the contract that do not depend on where an instance is."""
    import json
    import re

    texts = {key: str(value) for key, value in parameters.items()}
    return {
        "PAI_TRAINING_JOB_ID": name,
        "NPROC_PER_NODE": str(processes),
        "PAI_HPS": json.dumps(texts),
        "PAI_USER_ARGS": " ".join(f"--{key} {value}" for key, value in texts.items()),
        **{f"PAI_HPS_{re.sub(r'[^A-Za-z0-9_]', '_', key).upper()}": value for key, value in texts.items()},
    }


def _install(requirements: Sequence[str], requirements_file: str, place: str) -> str:
    """The file first, then the argument, which so wins a conflict. Outside a container: never into the user's interpreter."""

    def steps(pip: str) -> str:
        pip = f"{pip} --disable-pip-version-check install --quiet"
        files = [f"{pip} -r requirements.txt"] if requirements_file else []
        return " && ".join([*files, *([f"{pip} {shlex.join(requirements)}"] if requirements else [])])

    in_image = f'{{ {steps("python3 -m pip")}; }} || {{ echo "the requirements could not be installed" >&2; exit 1; }}'
    if place == CONTAINER:
        return in_image
    from hashlib import sha256

    # A server has a Python of its own, and may or may not run tasks in containers.
    python, known = ("python3", []) if place == SERVER else (sys.executable or "python3", _packages())
    text = "\n".join([sys.version if place == HERE else SERVER, python, requirements_file, *requirements])
    ours = place == HERE and _has_pip()  # which then need not be installed into each environment first
    inside = '"$environment/bin/python"'
    own = _ENVIRONMENT.format(
        key=sha256(text.encode()).hexdigest()[:32],
        python=shlex.quote(python),
        paths=_PATHS.format(known=shlex.join(known)) if known else ":",
        without="--without-pip" if ours else "",
        install=steps(f"{shlex.quote(python)} -m pip --python {inside}" if ours else f"{inside} -m pip"),
    )
    if place == HERE:
        return own
    return f"if [ -e /.dockerenv ] || [ -e /run/.containerenv ]; then\n{in_image}\nelse\n{own}\nfi"


def _has_pip() -> bool:
    from importlib.util import find_spec

    return find_spec("pip") is not None


def _packages() -> list[str]:
    return [path for path in sys.path if path.endswith("site-packages")]
