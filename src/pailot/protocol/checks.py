"""Rules beyond the shape of the document: what refers to what, and what excludes what."""

from __future__ import annotations

from ..printable import cut
from . import limits
from .job_builder import PLUGIN_PREFIX
from .prerequisites import own_parameters
from .problems import Finding, Near
from .schema import MOST_TASKS
from .templates import FORGIVEN, Renderer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .model import Job, Prerequisite, TaskRole

BUILTIN_PLUGINS = ("cmd", "docker", "git", "ssh", "tensorboard", "teamwise_storage", "python", "fetch")


def check(job: Job, root: Any, is_plugin: Callable[[str], bool] | None = None) -> list[Finding]:
    """Everything about references that the shape cannot say (roles' own references were checked when built)."""
    findings: list[Finding] = []
    tasks = sum(role.instances for role in job.task_roles.values())
    if tasks > MOST_TASKS:
        findings.append(Finding("out-of-range", f"should have at most {MOST_TASKS} tasks in all, has {tasks}", ("taskRoles",)))
    if job.extras.raw:
        findings += _hived(job, root)
        findings += _runtime_plugins(job)
    findings += _plugins(job, is_plugin)
    findings += _callback_templates(job)
    findings += _auth_templates(job)
    return findings


def check_masked(root: object) -> list[Finding]:
    """A copy whose secrets were masked cannot be run; say so rather than 'wrong type'."""
    given = root.get("secrets") if isinstance(root, dict) else None
    if not given:
        return []
    from .document_secrets import leaves
    from .secrecy import MASK

    masked = [name for name, value in given.items() if MASK in leaves(value)] if isinstance(given, dict) else []
    if given != MASK and not masked:
        return []
    message = "the secrets of this copy are masked; give them again with --secret NAME=VALUE"
    return [Finding("masked-secrets", message, ("secrets", *masked[:1]))]


def _hived(job: Job, root: Any) -> Iterable[Finding]:
    extras = root["extras"]
    for spelling in ("hivedScheduler", "hivedscheduler"):
        node = extras.get(spelling)
        if not node:
            continue
        base = ("extras", spelling, "taskRoles")
        groups: dict[str, tuple[str, Any]] = {}
        for name, each in (node.get("taskRoles") or {}).items():
            if name not in job.task_roles:
                near = Near(name, tuple(job.task_roles))
                yield Finding("unknown-role", f"there is no task role '{cut(name)}'", (*base, name), at_key=True, near=near)
            for one, other in (("skuType", "pinnedCellId"), ("gpuType", "reservationId"), ("skuType", "gpuType")):
                if each.get(one) and each.get(other):
                    yield Finding("hived-conflict", f"'{one}' and '{other}' exclude each other; keep one", (*base, name, other))
            group = each.get("affinityGroupName")
            if group:
                wish = (each.get("skuType") or each.get("gpuType"), each.get("pinnedCellId") or each.get("reservationId"))
                first, first_wish = groups.setdefault(group, (name, wish))
                if wish != first_wish:
                    message = f"'{name}' and '{first}' are in the affinity group '{group}' and must ask for the same SKU or cell"
                    yield Finding("hived-conflict", message, (*base, name, "affinityGroupName"))


def _runtime_plugins(job: Job) -> Iterable[Finding]:
    known, spellings = tuple(job.task_roles), {role.lower().replace("_", "") for role in job.task_roles}
    for each in job.extras.runtime_plugins:
        policy = job.extras.raw["com.microsoft.pai.runtimeplugin"][each.path[-1]].get("failurePolicy", "fail")
        if str(policy).lower() not in ("fail", "ignore"):
            near = Near(str(policy), ("fail", "ignore"))
            message = f"'{cut(str(policy))}' is not one of fail, ignore"
            yield Finding("bad-value", message, (*each.path, "failurePolicy"), near=near)
        for position, name in enumerate(each.roles or ()):
            if name not in job.task_roles and name not in spellings:
                path = (*each.path, "taskroles", position)
                yield Finding("unknown-role", f"there is no task role '{cut(name)}'", path, near=Near(name, known))


def _plugins(job: Job, is_plugin: Callable[[str], bool] | None) -> Iterable[Finding]:
    named = [(each.plugin, (*each.path, "plugin")) for each in job.prerequisites]
    named += [(each.plugin, (*each.path, "plugin")) for each in job.extras.runtime_plugins]
    known = tuple(plugin for plugin in BUILTIN_PLUGINS if plugin != "docker")
    for name, path in named:
        if name in BUILTIN_PLUGINS or (is_plugin is not None and is_plugin(name)):
            continue
        near = Near(name, known, tail=f" (built in are {', '.join(known)}, or {PLUGIN_PREFIX}NAME)")
        yield Finding("unknown-plugin", f"there is no plugin '{cut(name)}'", path, near=near)


def _callback_templates(job: Job) -> Iterable[Finding]:
    seen: set[tuple[Any, ...]] = set()
    renderers = CallbackRenderers(job)
    for role in job.task_roles.values():
        for each in role.prerequisites:
            if not each.callbacks:
                continue
            renderer = renderers.of(role, each)
            for number, callback in enumerate(each.callbacks):
                for position, command in enumerate(callback.commands):
                    renderer.render(command)
                    path = (*each.path, "callbacks", number, "commands", position) if each.path else ("taskRoles", role.name)
                    for issue in renderer.issues.values():
                        if (path, issue.tag) not in seen and not (job.lenient and issue.code in FORGIVEN):
                            seen.add((path, issue.tag))
                            tail = "" if each.path else f" (in the prerequisite '{each.name}' of the library)"
                            if "$" in issue.message and len(job.task_roles) > 1:
                                tail += f" (for the role '{role.name}')"
                            yield issue.finding(path, tail)
                    renderer.issues.clear()


class CallbackRenderers:
    """Renderers for the commands of prerequisites as roles use them; what one job has in common is made once."""

    def __init__(self, job: Job) -> None:
        self.secrets = job.secrets.reveal()
        self.by_name = {each.name: each for each in job.prerequisites}
        self.rendered, self.inherited = limits.rendered(), limits.inherited()

    def of(self, role: TaskRole, each: Prerequisite) -> Renderer:
        """For one prerequisite in one role."""

        def this() -> dict[str, object]:
            fields = {key: value for key, value in each.fields.items() if key != "auth"}
            return {"parameters": own_parameters(each, self.by_name, self.inherited), **fields}

        return Renderer(role.scope, self.secrets, this=this, allowance=self.rendered)

    def of_plugin(self, role: TaskRole) -> Renderer:
        """For the parameters of a plugin, which are part of no prerequisite."""
        return Renderer(role.scope, self.secrets, allowance=self.rendered)


def _auth_templates(job: Job) -> Iterable[Finding]:
    renderer = Renderer({}, job.secrets.reveal())
    for each in job.prerequisites:
        if each.auth is None or job.lenient:
            continue
        for key, value in each.fields["auth"].items():
            renderer.render(value)
            yield from [issue.finding((*each.path, "auth", key)) for issue in renderer.issues.values()]
            renderer.issues.clear()
