"""Rules beyond the shape of the document: what refers to what, and what excludes what."""

from __future__ import annotations

from ..errors import suggestion
from .job_builder import PLUGIN_PREFIX
from .prerequisites import own_parameters
from .problems import Finding
from .templates import Renderer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .model import Job, TaskRole

BUILTIN_PLUGINS = ("cmd", "docker", "git", "ssh", "tensorboard", "teamwise_storage", "python", "fetch")


def check(job: Job, root: Any, is_plugin: Callable[[str], bool] | None = None) -> list[Finding]:
    """Everything about references that the shape cannot say (roles' own references were checked when built)."""
    findings: list[Finding] = []
    if job.extras.raw:
        findings += _hived(job, root)
        findings += _runtime_plugins(job)
    findings += _plugins(job, is_plugin)
    findings += _callback_templates(job)
    findings += _auth_templates(job)
    return findings


def check_masked(root: object) -> list[Finding]:
    """A copy whose secrets were masked cannot be run; say so rather than 'wrong type'."""
    if isinstance(root, dict) and root.get("secrets") == "******":
        message = "the secrets of this copy are masked; give them again with --secret NAME=VALUE"
        return [Finding("masked-secrets", message, ("secrets",))]
    return []


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
                message = f"there is no task role '{name}'{suggestion(name, job.task_roles)}"
                yield Finding("unknown-role", message, (*base, name), at_key=True)
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
    for each in job.extras.runtime_plugins:
        policy = job.extras.raw["com.microsoft.pai.runtimeplugin"][each.path[-1]].get("failurePolicy", "fail")
        if str(policy).lower() not in ("fail", "ignore"):
            message = f"'{policy}' is not one of fail, ignore{suggestion(str(policy), ('fail', 'ignore'))}"
            yield Finding("bad-value", message, (*each.path, "failurePolicy"))
        for position, name in enumerate(each.roles or ()):
            spellings = {role.lower().replace("_", "") for role in job.task_roles}
            if name not in job.task_roles and name not in spellings:
                message = f"there is no task role '{name}'{suggestion(name, job.task_roles)}"
                yield Finding("unknown-role", message, (*each.path, "taskroles", position))


def _plugins(job: Job, is_plugin: Callable[[str], bool] | None) -> Iterable[Finding]:
    named = [(each.plugin, (*each.path, "plugin")) for each in job.prerequisites]
    named += [(each.plugin, (*each.path, "plugin")) for each in job.extras.runtime_plugins]
    for name, path in named:
        if name in BUILTIN_PLUGINS or (is_plugin is not None and is_plugin(name)):
            continue
        known = [plugin for plugin in BUILTIN_PLUGINS if plugin != "docker"]
        message = (
            f"there is no plugin '{name}'{suggestion(name, known)} (built in are {', '.join(known)}, or {PLUGIN_PREFIX}NAME)"
        )
        yield Finding("unknown-plugin", message, path)


def _callback_templates(job: Job) -> Iterable[Finding]:
    seen: set[tuple[Any, ...]] = set()
    for role in job.task_roles.values():
        for each in role.prerequisites:
            if not each.callbacks:
                continue
            renderer = callback_renderer(job, role, each)
            for number, callback in enumerate(each.callbacks):
                for position, command in enumerate(callback.commands):
                    renderer.render(command)
                    path = (*each.path, "callbacks", number, "commands", position) if each.path else ("taskRoles", role.name)
                    for code, message, tag in renderer.issues:
                        if (path, tag) not in seen and not (job.lenient and code != "template-string-index"):
                            seen.add((path, tag))
                            if not each.path:
                                message += f" (in the prerequisite '{each.name}' of the library)"
                            if "$" in message and len(job.task_roles) > 1:
                                message += f" (for the role '{role.name}')"
                            yield Finding(code, message, path, fragment=tag)
                    renderer.issues.clear()


def callback_renderer(job: Job, role: TaskRole, each: Any) -> Renderer:
    """Renders the commands of a prerequisite as one role uses it."""
    fields = {key: value for key, value in each.fields.items() if key != "auth"}
    this = {"parameters": own_parameters(each, job.prerequisites), **fields}
    return Renderer({**role.scope, "this": this}, job.secrets.reveal())


def _auth_templates(job: Job) -> Iterable[Finding]:
    for each in job.prerequisites:
        if each.auth is None:
            continue
        renderer = Renderer({}, job.secrets.reveal())
        for key, value in each.fields["auth"].items():
            renderer.render(value)
            for code, message, tag in renderer.issues:
                if not job.lenient:
                    yield Finding(code, message, (*each.path, "auth", key), fragment=tag)
            renderer.issues.clear()
