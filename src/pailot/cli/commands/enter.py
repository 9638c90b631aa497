"""`pailot enter RUN ROLE INDEX`: a shell in a task's folder, with its environment."""

from __future__ import annotations

import json
import os
import sys

from ... import credentials
from ...engines.registry import create, traits_of_run
from ...errors import PailotError
from ...runfolder import layout
from ...runtime.container_shim import entering
from ...runtime.shim import read_environment
from ...settings import current_user
from ...userruns.queries import find, task_attempts
from ..main import OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import NoReturn


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or id")
    parser.add_argument("role", nargs="?", metavar="ROLE")
    parser.add_argument("index", nargs="?", type=int, default=0, metavar="INDEX")
    parser.add_argument("--command", metavar="COMMAND", help="run this instead of an interactive shell")
    parser.add_argument("--json", action="store_true", help="print folder and environment as JSON, start nothing")


def run(args: Namespace) -> int:  # noqa: RET503  # ends by becoming the shell

    row, folder = find(args.run, current_user())
    roles = folder.plan().get("taskRoles", {})
    role = args.role or next(iter(roles), "")
    if role not in roles:
        raise PailotError(f"'{row.name}' has no role '{role}'")
    attempt = max(0, folder.attempts() - 1)
    count = task_attempts(folder, attempt, role, args.index)
    if not count:
        raise PailotError(f"{role}:{args.index} of '{row.name}' has not run")
    last = layout.task_attempt_folder(folder.task(attempt, role, args.index), count - 1)
    environment = read_environment(os.path.join(last, layout.ENVIRONMENT))
    work = environment.get("PAI_WORK_DIR", last)
    if args.json:
        print(json.dumps({"folder": work, "logs": last, "environment": environment}, indent=2))
        return OK
    inside = entering(os.path.dirname(os.path.dirname(last)), last, args.command, terminal=sys.stdin.isatty())
    if inside is not None:
        if os.path.exists(os.path.join(os.path.dirname(os.path.dirname(last)), layout.FINAL)):
            raise PailotError(f"{role}:{args.index} of '{row.name}' has ended, and its container is gone")
        os.execvp(inside[0], inside)  # noqa: S606  # the shell is the point
    step = _in_the_cluster(row.engine, os.path.dirname(os.path.dirname(last)))
    own = {name: value for name, value in os.environ.items() if not (name.startswith("PAILOT_") or credentials.is_harmless(name))}
    _become_shell({**own, **environment}, work, args.command, step)


def _in_the_cluster(engine: str, task: str) -> list[str]:
    """The words that bring a shell to the node of a task that is still there."""
    if traits_of_run(engine).on_this_machine or os.path.exists(os.path.join(task, layout.FINAL)):
        return []
    return create(engine).shell_prefix(task, terminal=sys.stdin.isatty())


def _become_shell(environment: dict[str, str], work: str, wanted: str | None, step: list[str]) -> NoReturn:
    exports = environment.get("PAI_EXPORTS_FILE", "")
    if not step:
        os.chdir(work)
    prepare = f'[ ! -e "{exports}" ] || . "{exports}"; cd "{work}"; '
    command = [*step, "bash", "-c", prepare + (wanted or "exec bash -i")]
    os.execvpe(command[0], command, {**environment, "TERM": os.environ.get("TERM", "dumb")})  # noqa: S606  # the shell is the point
