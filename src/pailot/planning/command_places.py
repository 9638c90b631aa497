"""Where the commands of the job file stand in the scripts of a task, so that one of them can be named by a line of the script."""

from __future__ import annotations

from ..protocol.js_semantics import WHITE_SPACE, trim
from ..protocol.model import START
from ..protocol.templates import Renderer
from ..values import Value
from .scripts import bodies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ..protocol.model import Job, Prerequisite, TaskRole
    from ..protocol.yaml.document import Step
    from ..runfolder.plan import PlannedCallback, RolePlan

    Path = tuple[Step, ...]

SCRIPTS = ("start", "main", "exit")
LONGEST_SCRIPT = 16_384
MOST_COMMANDS = 200
"""More commands of one script are not kept: to find the place of each takes time at every start."""


class PlacedCommand(Value):
    """One command of the job file in a script: its lines there, counted from 1, and what it is in the file."""

    first: int
    last: int
    name: str
    """`command 2 of worker`"""
    path: tuple[str | int, ...] = ()
    """Its place in the job file; empty where it is not from there."""
    is_verdict: bool = False
    """Whether it is not the command itself, but the line with which a script ends because of it."""


def commands_in(job: Job, planned: RolePlan, script: str) -> tuple[PlacedCommand, ...]:
    """The commands of a role's script, in their order; none where they cannot be told apart."""
    if script == "main":
        return _in_main(job, job.task_roles[planned.name], planned.scripts.main)
    return _in_callbacks(job, planned, script)


def _in_main(job: Job, role: TaskRole, main: str) -> tuple[PlacedCommand, ...]:
    written = list(_commands(job, role))
    texts = [trim(text) for _, _, text in written]
    if not job.legacy and any("<%" in text for text in texts):
        renderer = Renderer(role.scope, job.secrets.reveal())
        texts = [renderer.render(text) for text in texts]
    whole = "\n".join(texts)
    if trim(whole) != role.entrypoint:  # a tag goes from one command to the next
        return ()
    header = main[: len(main) - len(role.entrypoint) - 1]
    line = header.count("\n") + 1 - whole[: len(whole) - len(whole.lstrip(WHITE_SPACE))].count("\n")
    placed = []
    for (name, path, _), text in zip(written, texts, strict=True):
        last = line + text.count("\n")
        if text:
            placed.append(PlacedCommand(line, last, name, path))
        line = last + 1
    return tuple(placed)


def _commands(job: Job, role: TaskRole) -> Iterator[tuple[str, Path, str]]:
    """What a role runs, with what a deployment adds: the name, the place and the text of each command."""
    name, chosen = role.name, job.deployment
    adapted = job.deployments[chosen].roles.get(name) if chosen is not None else None
    base: Path = ("deployments", list(job.deployments).index(chosen), "taskRoles", name) if chosen is not None else ()
    for number, text in enumerate(adapted.pre_commands if adapted else ()):
        yield f"preCommand {number + 1} of deployment {chosen} for {name}", (*base, "preCommands", number), text
    for number, text in enumerate(role.commands):
        yield f"command {number + 1} of {name}", ("taskRoles", name, "commands", number), text
    for number, text in enumerate(adapted.post_commands if adapted else ()):
        yield f"postCommand {number + 1} of deployment {chosen} for {name}", (*base, "postCommands", number), text


def _in_callbacks(job: Job, planned: RolePlan, script: str) -> tuple[PlacedCommand, ...]:
    placed = []
    seen: dict[tuple[str, str], int] = {}
    numbers: dict[int, int] = {}
    for callback, first, is_body in bodies(planned.callbacks, script, planned.scripts.start):
        key = callback.prerequisite, callback.event
        if not is_body:
            path, exact = _path(job, callback, numbers[id(callback)])
            name = f"{callback.event} of {callback.prerequisite}"
            placed.append(PlacedCommand(first, first, name, path[:-1] if exact else path, is_verdict=True))
            continue
        numbers[id(callback)] = seen[key] = seen.get(key, -1) + 1
        path, exact = _path(job, callback, seen[key])
        line = first
        for number, text in enumerate(callback.commands):
            last = line + text.rstrip("\n").count("\n")
            name = f"command {number + 1} of {callback.event} of {callback.prerequisite}"
            placed.append(PlacedCommand(line, last, name, (*path, number) if exact else path))
            line = last + 1
    return tuple(placed)


def _path(job: Job, callback: PlannedCallback, number: int) -> tuple[Path, bool]:
    """Where a callback stands in the file, and whether its commands stand there one by one; number counts those of one event."""
    own = next((each for each in job.prerequisites if each.name == callback.prerequisite and each.path), None)
    if own is not None:
        place: Path = own.path
        lists = _lists_of(own, callback.event)
    else:
        plugin = next((each for each in job.extras.runtime_plugins if each.plugin == callback.prerequisite), None)
        if plugin is None:
            return (), False
        place, parameters = plugin.path, plugin.parameters if isinstance(plugin.parameters, dict) else {}
        key = "preCommands" if callback.event == START else "postCommands"
        lists = [(("parameters", key), parameters[key])] if isinstance(parameters.get(key), list) else []
    if number < len(lists) and len(lists[number][1]) == len(callback.commands):
        return (*place, *lists[number][0]), True
    return place, False


def _lists_of(own: Prerequisite, event: str) -> Sequence[tuple[Path, Sequence[str]]]:
    """The lists of commands of a prerequisite for one event, as they stand in the file."""
    if own.plugin not in ("cmd", "docker"):
        return []
    found: list[tuple[Path, Sequence[str]]] = [
        (("callbacks", number, "commands"), each.commands)
        for number, each in enumerate(own.callbacks)
        if each.event == event and each.commands
    ]
    key = "preCommands" if event == START else "postCommands"
    if not own.callbacks and isinstance(own.fields.get(key), list):
        found.append(((key,), own.fields[key]))
    return found


def table(job: Job, planned: RolePlan) -> dict[str, object]:
    """The commands of a role as they are kept beside the plan: by script, first and last line, name, place, whether to quote it.

    `lines` counts those of each script: one that was masked over several lines cannot be quoted. A long script is left out.
    """
    found: dict[str, Any] = {"lines": {}}
    for script in SCRIPTS:
        text = getattr(planned.scripts, script)
        if text and len(text) <= LONGEST_SCRIPT:
            commands = commands_in(job, planned, script)
            if len(commands) <= MOST_COMMANDS:
                found["lines"][script] = text.count("\n")
                found[script] = [
                    [each.first, each.last, each.name, job.place(each.path), not each.is_verdict] for each in commands
                ]
    return found


def at_line(commands: Iterable[PlacedCommand], line: int) -> PlacedCommand | None:
    """The command that a line of the script belongs to."""
    return next((each for each in commands if each.first <= line <= each.last), None)
