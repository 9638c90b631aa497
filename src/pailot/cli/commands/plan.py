"""`pailot plan FILE`: what runs, in what order, with what; nothing is started."""

from __future__ import annotations

import sys

from ...errors import PailotError, suggestion
from ...loading import plan
from ...protocol.secrecy import hidden_in_records
from ..job_options import add_job_options, load_job
from ..main import OK
from ..problem_report import print_problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

    from ...planning import Plan, RolePlan
    from ...protocol import Job


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="job file, '-' for standard input")
    parser.add_argument("-e", "--engine", default=None, help="also show what this engine is asked for: slurm")
    parser.add_argument("--role", metavar="ROLE", help="show this role only")
    parser.add_argument("--index", type=int, metavar="I", help="show the environment of this task of each role")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    add_job_options(parser)


def run(args: Namespace) -> int:
    engine = None
    if args.engine is not None:
        from ...engines.registry import create

        engine = create(args.engine)  # refused if there is none of that name
    job = load_job(args, args.file)
    made = plan(job)
    mask = _mask(job)
    if args.role is not None and args.role not in made.roles:
        raise PailotError(f"--role: there is no role '{args.role}'{suggestion(args.role, made.roles)}")
    chosen = [role for name, role in made.roles.items() if args.role in (None, name)]
    if args.index is not None:
        for role in chosen:
            if not 0 <= args.index < role.instances:
                raise PailotError(f"--index: role '{role.name}' has tasks 0 to {role.instances - 1}")
    if args.json:
        import json

        print(json.dumps(_json(made, args.role, args.index, mask), indent=2, ensure_ascii=False))
        return OK
    print_problems(made.warnings, sys.stderr)
    text = engine.preview(made, hidden_in_records(job)) if engine is not None else ""
    if text:
        print(mask(text) if mask else text, end="")
        return OK
    print(_headline(made))
    for role in chosen:
        text = "\n" + "\n".join(_role_lines(role, made, args.index))
        print(mask(text) if mask else text)
    return OK


def _mask(job: Job) -> Callable[[str], str] | None:
    """What is printed shows no credential that stands in the job; None where there is none."""
    hidden = hidden_in_records(job)
    if not hidden:
        return None
    from ...runfolder.masking import text_masker

    return text_masker(hidden)


def _json(made: Plan, role: str | None, index: int | None, mask: Callable[[str], str] | None) -> dict[str, object]:
    shown = made.to_json(role)
    if mask:
        from ...userruns.masked_job_file import shown_plan

        shown = shown_plan(shown, mask)
    if index is not None:
        for each in shown["taskRoles"].values():
            each["taskEnvironment"] = [each["taskEnvironment"][index]]
    return shown


def _headline(made: Plan) -> str:
    limit = made.options.max_run_seconds
    limits = f", at most {limit:g} s" if limit else ""
    retries = f", tried again {_times(made.job_retry_count)} if it fails" if made.job_retry_count else ""
    roles, tasks = len(made.roles), made.task_count
    counts = f"{_count(roles, 'role')}, {_count(tasks, 'task')}"
    return f"{made.full_name}: {counts} in virtual cluster '{made.virtual_cluster}'{limits}{retries}"


def _role_lines(role: RolePlan, made: Plan, index: int | None) -> list[str]:
    lines = [f"{role.name}: {_count(role.instances, 'task')} of {role.image.uri}"]
    lines += [f"  {label:<14}{text}" for label, text in _facts(role, made) if text]
    if index is None:
        lines.append(f"  {'environment':<14}{len(role.environment)} variables; --index I shows those of a task")
    else:
        lines += _block(f"environment of {role.name}:{index}", _environment_lines(role, index))
    for title, script in (("start", role.scripts.start), ("commands", role.scripts.main), ("exit", role.scripts.exit)):
        if script:
            lines += _block(title, script.rstrip("\n").split("\n"))
    return lines


def _facts(role: RolePlan, made: Plan) -> list[tuple[str, str]]:
    wanted, bounds = role.resources, role.completion
    ports = ", ".join(label if count == 1 else f"{label} x{count}" for label, count in wanted.ports.items())
    gpus = f", {_count(wanted.gpu, 'GPU')}" if wanted.gpu else ""
    shared = f", {wanted.shm_mb} MB shared" if wanted.shm_mb else ""
    infiniband = ", InfiniBand" if wanted.infiniband else ""
    ends = []
    if bounds.min_failed is not None:
        ends.append(f"{bounds.min_failed} failed: job FAILED")
    if bounds.min_succeeded is not None:
        ends.append(f"{bounds.min_succeeded} succeeded: job SUCCEEDED")
    retries = f"a failed task is tried again {_times(role.task_retry_count)}" if role.task_retry_count else ""
    auth = role.image.auth
    return [
        ("needs", f"{_count(wanted.cpu, 'CPU')}, {wanted.memory_mb} MB{shared}{gpus}{infiniband}, ports {ports}"),
        ("ends", "; ".join(ends) or "with its last task"),
        ("retries", retries),
        ("registry", f"{auth.registry or 'Docker Hub'} as {auth.username}, password masked" if auth else ""),
        ("prerequisites", ", ".join(role.prerequisites)),
        (
            "storages",
            ", ".join(f"{each.name} at {each.mount_path}" for each in made.storages)
            or ("your default ones" if made.default_storages else ""),
        ),
        ("brought", ", ".join(f"{each.kind} {each.source}".strip() for each in role.provisions)),
    ]


def _environment_lines(role: RolePlan, index: int) -> list[str]:
    variables = {**role.environment, **role.task_environment(index)}
    return [f"{name}={value if len(value) <= 100 else value[:97] + '...'}" for name, value in sorted(variables.items())]


def _block(title: str, lines: list[str]) -> list[str]:
    return [f"  {title}", *(f"    | {line}".rstrip() for line in lines)]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"up to {number} times")
