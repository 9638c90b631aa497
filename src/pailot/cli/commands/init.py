"""`pailot init`: a commented job to start from, and the schema by which an editor checks it."""

from __future__ import annotations

import json
import os

from ...errors import PailotError
from ...protocol.schema import json_schema
from ..main import OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence


SCHEMA = "job.schema.json"
MODELINE = f"# yaml-language-server: $schema={SCHEMA}\n"
"""By this line an editor finds the schema, which lies beside the job."""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", default="job.yaml", metavar="FILE", help="where to write it (job.yaml); '-' for standard output"
    )
    parser.add_argument("--roles", type=int, default=1, metavar="N", help="number of task roles")
    parser.add_argument("--distributed", action="store_true", help="roles of several tasks that form one group")
    parser.add_argument("--json", action="store_true", help="print the name of the file as JSON")


def run(args: Namespace) -> int:
    if not 1 <= args.roles <= 50:
        raise PailotError("--roles: between 1 and 50")
    text = starter(args.roles, distributed=args.distributed)
    if args.file == "-":
        print(json.dumps({"text": text}) if args.json else text, end="\n" if args.json else "")
        return OK
    try:
        with open(args.file, "x", encoding="utf-8") as stream:
            stream.write(MODELINE + text)
    except FileExistsError:
        raise PailotError(f"{args.file} is there already; name another file, or '-' to print the job") from None
    _write_schema(os.path.join(os.path.dirname(args.file), SCHEMA))
    print(json.dumps({"file": os.path.abspath(args.file)}) if args.json else f"wrote {args.file}; try: pailot plan {args.file}")
    return OK


def _write_schema(path: str) -> None:
    """Write the schema, unless there is one: it may be the user's own."""
    try:
        with open(path, "x", encoding="utf-8") as stream:
            json.dump(json_schema(), stream, indent=2, ensure_ascii=False)
    except FileExistsError:
        pass


def starter(roles: int = 1, *, distributed: bool = False) -> str:
    """The text of a starter job. The tasks of a distributed one form one group, over all roles."""
    names = ["worker"] if roles == 1 else ["master", "worker", *(f"helper{number}" for number in range(1, roles - 1))]
    return _HEAD + "".join(_role(names, position, distributed) for position in range(roles)) + _TAIL


def _role(names: Sequence[str], position: int, distributed: bool) -> str:
    name, first = names[position], position == 0
    several = len(names) > 1
    instances = 2 if distributed and not (first and several) else 1
    bound: int | None
    if several and distributed:
        bound, why = -1, "-1: the job has succeeded when all tasks have ended"
    elif several and first:
        bound, why = 1, "when it has succeeded the job has, and the other roles are stopped"
    elif several:
        bound, why = -1, "-1: its success does not end the job"
    else:
        bound, why = None, ""
    succeeded = "" if bound is None else f"\n      minSucceededInstances: {bound}  # {why}"
    commands = _COMMANDS if not distributed else (_one_group(names, position) if several else "") + _DISTRIBUTED_COMMANDS
    return f"""\
  {name}:
    instances: {instances}
    completion:
      minFailedInstances: 1  # one failed task fails the job{succeeded}
    taskRetryCount: 0  # how often a failed task is tried again
    dockerImage: image
    resourcePerInstance:
      cpu: 1
      memoryMB: 1024
      gpu: 0
    commands:  # run in order by bash; the first that fails ends the task
{commands}"""


def _one_group(names: Sequence[str], position: int) -> str:
    """The commands that number the tasks of all roles through; by themselves RANK and its like are about the role alone."""
    before = "".join(f"PAI_TASK_ROLE_TASK_COUNT_{name} + " for name in names[:position])
    return f"""\
      # One group over all roles: the ranks of a role begin after those of the roles above it.
      - export RANK=$(({before}PAI_TASK_INDEX)) WORLD_SIZE=$PAI_TASKS_NUM
      - export MASTER_ADDR=$PAI_HOST_IP_{names[0]}_0 MASTER_PORT=$PAI_PORT_LIST_{names[0]}_0_http
"""


_HEAD = """\
# A job in the OpenPAI job protocol, version 2. Check it with `pailot validate`, look at it with `pailot plan`.
protocolVersion: 2
name: my-job  # letters, digits, '-' and '_'
type: job

prerequisites:  # what the roles below refer to by name
  - name: image
    type: dockerimage
    uri: python:3.11  # used where jobs run in containers

parameters:  # read as <% $parameters.NAME %>; change one with --set parameters.epochs=3
  epochs: 2

# secrets:  # read as <% $secrets.NAME %>, never shown; better given with --secret NAME=env:VARIABLE
#   token: ""

jobRetryCount: 0  # how often the whole job is tried again when it fails

taskRoles:
"""
_COMMANDS = """\
      - echo "task $PAI_TASK_INDEX of $PAI_CURRENT_TASK_ROLE_NAME, <% $parameters.epochs %> epochs"
"""
_DISTRIBUTED_COMMANDS = """\
      - echo "task $RANK of $WORLD_SIZE, <% $parameters.epochs %> epochs"
      - echo "rank 0 listens at $MASTER_ADDR:$MASTER_PORT"
"""
_TAIL = """\

# defaults:
#   virtualCluster: default

# extras:
#   pailot:
#     maxRunSeconds: 3600  # time limit of one attempt
#     graceSeconds: 30  # between SIGTERM and SIGKILL when a task is stopped
"""
