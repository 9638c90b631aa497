"""A plan as text, and back: `decode(encode(plan)) == plan`.

A document is a list of lists in the order below, whose first item is the number of its format: so it is quick to make and to
read, and small. A later field is added at the end of its list, with a default for documents that lack it; a document of a
higher format is refused. What `plan --json` prints is another form, for people and programs, and cannot be read back.

In plan.json the document stands below the key `document`, with everything masked that may not lie in a file; `masked` takes
that out, to be kept sealed, and `restored` puts it back.
"""

from __future__ import annotations

import json

from ..errors import PailotError
from ..job_values import Auth, Channels, Completion, Options, Resources, Storage
from ..problem import Problem, Rest
from .plan import STORAGES, Image, Plan, PlannedCallback, Provision, RolePlan, Scripts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

FORMAT = 1
KEY = "document"
"""Of plan.json, where the whole plan stands."""


class PlanFormatError(PailotError):
    """A document is no plan, or one of a later Pailot."""


def encode(plan: Plan) -> str:
    """The plan as one line of JSON."""
    return json.dumps(document(plan), separators=(",", ":"))


def decode(text: str) -> Plan:
    """The plan that `encode` wrote; PlanFormatError if it is none."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise PlanFormatError(f"the plan is no JSON: {error}") from None
    return plan_of(found)


def document(plan: Plan) -> list[Any]:
    """The plan as lists, texts and numbers."""
    roles = plan.roles.values()
    shared: Mapping[str, str] = next((role.environment for role in roles), {})
    return [
        FORMAT,
        plan.name,
        plan.user,
        plan.job_retry_count,
        plan.virtual_cluster,
        plan.priority,
        plan.gang,
        _options(plan.options),
        [(each.name, each.mount_path) for each in plan.storages],
        plan.default_storages,
        [_problem(each) for each in plan.warnings],
        shared,
        [_role(role, shared) for role in roles],
        *((plan.storages_key,) if plan.storages_key != STORAGES else ()),
    ]


def plan_of(found: Any) -> Plan:
    """The plan that a document holds; PlanFormatError if it holds none."""
    if not isinstance(found, list) or not found or not isinstance(found[0], int):
        raise PlanFormatError("this is no plan")
    if found[0] > FORMAT:
        raise PlanFormatError(f"the plan was written by a later Pailot, in format {found[0]}; this one reads up to {FORMAT}")
    try:
        return _plan_of(found)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise PlanFormatError(f"the plan is damaged: {error}") from None


def whole_plan(record: Mapping[str, Any], taken: Iterable[Taken] = ()) -> Plan | None:
    """The plan in the content of a plan.json; None where an earlier Pailot wrote it, without the whole plan.

    `taken` is what was sealed of it; PlanFormatError if the plan cannot be read.
    """
    kept = record.get(KEY)
    return None if kept is None else plan_of(restored(kept, taken))


def with_whole_plan(shown: str, kept: str) -> str:
    """The content of plan.json: what `plan --json` prints, masked, and with it the whole plan; both are texts of JSON."""
    return f'{shown[:-1]},"{KEY}":{kept}}}'


# What may not lie in a file


if TYPE_CHECKING:
    from typing import TypeAlias

    Taken: TypeAlias = "tuple[list[int | str], str]"
    """Where a text stood in a document, as keys from the outermost list on, and the text."""


def masked(kept: list[Any], mask: Callable[[str], str]) -> tuple[list[Any], list[Taken]]:
    """A document with every text masked, and the texts that this changed."""
    taken: list[Taken] = []

    def shown(value: Any, path: list[int | str]) -> Any:
        if isinstance(value, str):
            text = mask(value)
            if text != value:
                taken.append((path, value))
            return text
        if isinstance(value, dict):
            return {key: shown(item, [*path, key]) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [shown(item, [*path, position]) for position, item in enumerate(value)]
        return value

    return shown(kept, []), taken


def restored(kept: Any, taken: Iterable[Taken]) -> Any:
    """A document as it was before `masked`; it is changed in place."""
    for path, text in taken:
        place = kept
        try:
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = text
        except (TypeError, LookupError):
            raise PlanFormatError("what was sealed of the plan does not fit to it") from None
    return kept


# Each kind of value: its list, and back


def _plan_of(found: list[Any]) -> Plan:
    _, name, user, retries, cluster, priority, gang, options, storages, defaults, warnings, shared, roles, *later = found
    made = [_role_of(role, shared) for role in roles]
    return Plan(
        name,
        user,
        {role.name: role for role in made},
        retries,
        cluster,
        priority,
        gang,
        _options_of(options),
        tuple([Storage(*each) for each in storages]),
        defaults,
        tuple([_problem_of(each) for each in warnings]),
        later[0] if later else STORAGES,
    )


def _role(role: RolePlan, shared: Mapping[str, str]) -> list[Any]:
    image, scripts, resources = role.image, role.scripts, role.resources
    return [
        role.name,
        role.instances,
        (image.uri, image.auth and (image.auth.username, image.auth.password, image.auth.registry)),
        role.entrypoint,
        (scripts.main, scripts.start, scripts.exit),
        _difference(role.environment, shared),
        (resources.cpu, resources.memory_mb, resources.gpu, resources.shm_mb, resources.infiniband, resources.ports),
        role.task_retry_count,
        (role.completion.min_failed, role.completion.min_succeeded),
        role.prerequisites,
        [(each.prerequisite, each.event, each.commands, each.ignore_failure) for each in role.callbacks],
        [_provision(each) for each in role.provisions],
        role.port_base,
        role.peers_by_name,
    ]


def _provision(each: Provision) -> tuple[str, ...]:
    told = each.kind, each.source, each.variable, each.sha256
    return (*told, each.shared) if each.shared else told


def _role_of(found: list[Any], shared: dict[str, str]) -> RolePlan:
    (
        name, instances, (uri, auth), entrypoint, scripts, environment, resources, retries, completion, prerequisites, callbacks,
        provisions, port_base, by_name, *_,
    ) = found  # fmt: skip
    return RolePlan(
        name,
        instances,
        Image(uri, auth and Auth(*auth)),
        entrypoint,
        Scripts(*scripts),
        _same_but(environment, shared),
        Resources(*resources),
        retries,
        Completion(*completion),
        tuple(prerequisites),
        tuple([PlannedCallback(where, event, tuple(commands), ignore) for where, event, commands, ignore in callbacks]),
        tuple([Provision(*each) for each in provisions]),
        port_base,
        by_name,
    )


def _difference(environment: Mapping[str, str], shared: Mapping[str, str]) -> list[Any]:
    """The variables of a role beside those of the first one: in a job of many roles nearly all are the same."""
    if environment is shared:
        return []
    more = {name: value for name, value in environment.items() if shared.get(name) != value}
    return [more, [name for name in shared if name not in environment]]


def _same_but(difference: list[Any], shared: dict[str, str]) -> dict[str, str]:
    if not difference:
        return shared
    more, without = difference
    made = {**shared, **more}
    for name in without:
        del made[name]
    return made


def _options(options: Options) -> list[Any]:
    channels = options.channels
    return [
        options.max_run_seconds,
        options.grace_seconds,
        options.retry_delay_seconds,
        options.hold_on_failure_minutes,
        options.hold_command,
        options.code,
        options.environment,
        options.data_dir,
        options.output_dir,
        options.gpu_type,
        options.auth_file,
        options.port_base,
        options.labels,
        channels
        and (
            channels.inputs,
            channels.outputs,
            channels.sources,
            channels.targets,
            channels.code,
            channels.hyperparameters,
            channels.mount,
        ),
        *((options.after,) if options.after else ()),
    ]


def _options_of(found: list[Any]) -> Options:
    channels, after = found[13], tuple(found[14]) if len(found) > 14 else ()
    return Options(*(*found[:13], channels and _channels_of(*channels), after))


def _channels_of(inputs: list[str], outputs: list[str], *rest: Any) -> Channels:
    return Channels(tuple(inputs), tuple(outputs), *rest)


def _problem(problem: Problem) -> list[Any]:
    more = [problem.count] if isinstance(problem, Rest) else []
    return [
        problem.code,
        problem.message,
        problem.file,
        problem.line,
        problem.column,
        problem.path,
        problem.source,
        problem.hint,
        *more,
    ]


def _problem_of(found: list[Any]) -> Problem:
    return Rest(*found) if len(found) == 9 else Problem(*found)
