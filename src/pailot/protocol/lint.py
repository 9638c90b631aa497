"""What is allowed but probably not meant: every warning about a job."""

from __future__ import annotations

import re

from ..printable import cut
from .js_semantics import to_string
from .lazy_regex import pattern
from .problems import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .model import Job
    from .yaml import Document

MIN_MASKABLE = 4
SECRET_ENDS = (
    *("password", "passwd", "passphrase", "secret", "token", "credential"),
    *("apikey", "api_key", "accesskey", "access_key", "privatekey", "private_key"),
)
"""How names of secrets end, in small letters and without the s of several."""


def lint(job: Job, root: Any, text: str) -> list[Finding]:
    """All warnings about a job that is otherwise right."""
    findings: list[Finding] = []
    for rule in (_completion, _retries, _roles, _prerequisites, _deployments, _ignored_keys):
        findings += rule(job, root)
    findings += _unused_names(job, root, text)
    findings += _secrets(job, root, text)
    return findings


def ambiguous_scalars(document: Document) -> list[Finding]:
    """Scalars that OpenPAI reads unlike YAML 1.2."""
    return [
        Finding(
            "yaml-ambiguous",
            f"OpenPAI reads {cut(plain)} as {cut(meaning)}, other YAML readers do not; put it in quotes or write what you mean",
            offset=offset,
        )
        for offset, plain, meaning in document.ambiguous
    ]


def _completion(job: Job, root: Any) -> Iterable[Finding]:
    enders = [role for role in job.task_roles.values() if role.completion.min_succeeded is not None]
    if len(enders) > 1:
        first, *others = enders
        names = ", ".join(f"'{cut(role.name)}'" for role in others[:10]) + (", …" if len(others) > 10 else "")
        yield Finding(
            "completion-cuts-off",
            f"the first of '{first.name}', {names} to succeed ends the job and cuts off the others;"
            " set completion.minSucceededInstances: -1 on the roles that should not decide",
            ("taskRoles", first.name),
            at_key=True,
        )
    for role in job.task_roles.values():
        for key, bound in (
            ("minFailedInstances", role.completion.min_failed),
            ("minSucceededInstances", role.completion.min_succeeded),
        ):
            if bound is not None and bound > role.instances:
                there = "is only 1 instance" if role.instances == 1 else f"are only {role.instances} instances"
                message = f"is {bound}, but there {there}, so it never takes effect; use -1 to say so"
                yield Finding("completion-unreachable", message, ("taskRoles", role.name, "completion", key))


def _retries(job: Job, root: Any) -> Iterable[Finding]:
    def can_fail(role: Any) -> bool:
        return role.completion.min_failed is not None and role.completion.min_failed <= role.instances

    if job.job_retry_count and not any(can_fail(role) for role in job.task_roles.values()):
        message = "the job is never tried again: no role can fail it, since minFailedInstances is never reached"
        yield Finding("retry-never", message, ("jobRetryCount",))


def _roles(job: Job, root: Any) -> Iterable[Finding]:
    short: dict[str, str] = {}
    for role in job.task_roles.values():
        converted = re.sub("[^a-z0-9]", "", role.name.lower())
        first = short.setdefault(converted, role.name)
        if first != role.name:
            message = f"'{first}' and '{role.name}' are both '{converted}' to OpenPAI, which also names variables so; rename one"
            yield Finding("role-collision", message, ("taskRoles", role.name), at_key=True)
        resources = role.resources
        if resources.shm_mb and resources.memory_mb and resources.shm_mb > resources.memory_mb:
            message = (
                f"{resources.shm_mb} MB of shared memory is more than the {resources.memory_mb} MB of memory it counts against"
            )
            yield Finding("shm-above-memory", message, ("taskRoles", role.name, "extraContainerOptions", "shmMB"))


def _prerequisites(job: Job, root: Any) -> Iterable[Finding]:
    used = {(each.type, each.name) for role in job.task_roles.values() for each in role.prerequisites}
    for each in job.prerequisites:
        if not each.path:
            continue
        if (each.type, each.name) not in used:
            yield Finding("unused-prerequisite", f"no role uses the {each.type} '{each.name}'", (*each.path, "name"))
        if each.type == "data" and isinstance(each.uri, str):
            yield Finding(
                "data-uri-string",
                "OpenPAI refuses a data uri that is not a list; write '- ' before it on a line of its own",
                (*each.path, "uri"),
            )
        if each.type == "dockerimage":
            for key in ("plugin", "require", "callbacks", "failurePolicy"):
                if key in each.fields:
                    yield Finding(
                        "openpai-refuses",
                        f"OpenPAI refuses '{key}' in a dockerimage prerequisite",
                        (*each.path, key),
                        at_key=True,
                    )
        else:
            if "auth" in each.fields:
                message = "'auth' holds credentials of a registry: outside a dockerimage it means nothing and is ignored"
                yield Finding("ignored-key", message, (*each.path, "auth"), at_key=True)
            if each.plugin == "docker":
                yield Finding("ignored-key", _NO_IMAGE, (*each.path, "plugin"))
    for plugin in job.extras.runtime_plugins:
        if plugin.plugin == "docker":
            yield Finding("ignored-key", _NO_IMAGE, (*plugin.path, "plugin"))


_NO_IMAGE = "'docker' is the plugin of a dockerimage: here it brings no image and does what 'cmd' does; write 'cmd'"


def _deployments(job: Job, root: Any) -> Iterable[Finding]:
    for position, node in enumerate(root.get("deployments") or ()):
        for name in node["taskRoles"]:
            if name not in job.task_roles:
                message = f"there is no task role '{name}'; these commands never run"
                yield Finding("deployment-unknown-role", message, ("deployments", position, "taskRoles", name), at_key=True)
        if job.deployment is None:
            message = (
                f"no deployment is chosen, so '{node['name']}' is never applied; set defaults.deployment or use --deployment"
            )
            yield Finding("unused-deployment", message, ("deployments", position, "name"))


def _ignored_keys(job: Job, root: Any) -> Iterable[Finding]:
    def unknown(node: Any, path: tuple[str | int, ...], known: tuple[str, ...]) -> Iterable[Finding]:
        for key in node or ():
            if key not in known:
                yield Finding("ignored-key", f"'{cut(key)}' means nothing here and is ignored", (*path, key), at_key=True)

    if "defaults" in root:
        yield from unknown(root["defaults"], ("defaults",), ("deployment", "virtualCluster"))
    for name, role in root["taskRoles"].items():
        if "extraContainerOptions" in role:
            path = ("taskRoles", name, "extraContainerOptions")
            yield from unknown(role["extraContainerOptions"], path, ("shmMB", "infiniband"))
    extras = root.get("extras")
    if not extras:
        return
    for position, each in enumerate(extras.get("com.microsoft.pai.runtimeplugin") or ()):
        place = ("extras", "com.microsoft.pai.runtimeplugin", position)
        yield from unknown(each, place, ("plugin", "parameters", "failurePolicy", "taskroles"))
    for position, each in enumerate(extras.get("storages") or ()):
        if not each.get("name"):
            yield Finding("ignored-key", "a storage without 'name' is ignored", ("extras", "storages", position))
    for role in (extras.get("pailot") or {}).get("portBase") or ():
        if role not in job.task_roles:
            yield Finding("ignored-key", f"there is no task role '{role}'", ("extras", "pailot", "portBase", role), at_key=True)
    for option, value in (extras.get("pailot") or {}).items():
        if any("<%" in piece for piece in _all_texts(value)):
            yield Finding("ignored-key", "templates are not rendered in extras.pailot", ("extras", "pailot", option))
    for spelling in ("hivedScheduler", "hivedscheduler"):
        if (extras.get(spelling) or {}).get("jobPriorityClass") == "crit":
            message = "OpenPAI's server refuses 'crit', although the protocol has it"
            yield Finding("openpai-refuses", message, ("extras", spelling, "jobPriorityClass"))
        for name, each in ((extras.get(spelling) or {}).get("taskRoles") or {}).items():
            known = ("skuType", "pinnedCellId", "affinityGroupName", "gpuType", "reservationId", "skuNum", "skuNumber")
            yield from unknown(each, ("extras", spelling, "taskRoles", name), known)


_REFERENCES = pattern(r"\$(parameters|secrets)(?:\.([^\s.\[%]+)|\b)")


def _unused_names(job: Job, root: Any, text: str) -> Iterable[Finding]:
    # A name counts as used wherever the text mentions it, a comment or another deployment included.
    mentioned = set(_REFERENCES.findall(text))
    if any(
        (kind, name) not in mentioned
        for kind, names in (("parameters", job.parameters), ("secrets", job.secrets.names()))
        for name in names
    ):
        # Each text once: by aliases one may stand in many places.
        for piece in set(_all_texts([root, [each.fields for each in job.prerequisites if not each.path]])):
            mentioned.update(_REFERENCES.findall(piece))
    for kind, names in (("parameters", job.parameters), ("secrets", job.secrets.names())):
        if (kind, "") in mentioned:
            continue
        for name in names:
            if (kind, name.partition(".")[0]) not in mentioned:
                message = f"nothing refers to the {kind[:-1]} '{cut(name)}'"
                yield Finding(f"unused-{kind[:-1]}", message, (kind, name), at_key=True)


# No groups: only so does the regular-expression engine skip ahead by first letters.
_LITERAL = pattern(
    r"""AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9_]{20,}|github_pat_[A-Za-z0-9_]{20,}|xox[abp]-[A-Za-z0-9-]{10,}"""
    r"""|PRIVATE KEY-----|://[^/\s:@<>'"$]+:[^@\s/<>$'"]{3,}@"""
    r"""|--(?:password|token)[= ]['"]?[^\s<>$'"-][^\s<>$'"]{3,}|PASSWORD=['"]?[^\s<>$'"]{4,}|TOKEN=['"]?[^\s<>$'"]{4,}"""
)
_LITERAL_MARKS = "AKIA ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ xox PRIVATE --password --token PASSWORD= TOKEN=".split()
"""One of these stands in each of them, or an @ does: most files hold none, and need no expression to be compiled."""
# Apart, because it begins with the most common letter of all.
# Only at the beginning of a word: inside one, every `eyJ` of a long word would be followed to its end.
_TOKEN = pattern(r"(?<![\w-])eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}")
_LITERAL_NAMES = {
    "AKIA": "an AWS access key",
    "gh": "a GitHub token",
    "git": "a GitHub token",
    "xox": "a Slack token",
    "eyJ": "a JSON web token",
    "PRIV": "a private key",
    "://": "a password in a URL",
}


def _secrets(job: Job, root: Any, text: str) -> Iterable[Finding]:
    for name, value in job.secrets.reveal().items():
        for path, leaf in _leaves(value, ("secrets", name)):
            if 0 < len(leaf) < MIN_MASKABLE:
                message = f"is too short: a secret of fewer than {MIN_MASKABLE} characters cannot be masked in logs"
                yield Finding("secret-short", message, path)
    advice = "put it under 'secrets' and refer to it as <% $secrets.NAME %>"
    for each in job.prerequisites:
        password = each.auth.password if each.auth else ""
        if password and "<%" not in password and each.path:
            yield Finding("secret-literal", f"a password in clear; {advice}", (*each.path, "auth", "password"))
    for name, value in job.parameters.items():
        if isinstance(value, str) and value and name.lower().removesuffix("s").endswith(SECRET_ENDS):
            yield Finding("secret-literal", f"'{name}' looks like a secret; {advice}", ("parameters", name))
    marked = "@" in text or any(mark in text for mark in _LITERAL_MARKS)
    literals = [*(_LITERAL.finditer(text) if marked else ()), *(_TOKEN.finditer(text) if "eyJ" in text else ())]
    start, end = _span_of_secrets(root, text) if literals else (0, 0)
    for found in literals:
        if not start <= found.start() < end:
            what = next((name for mark, name in _LITERAL_NAMES.items() if found[0].startswith(mark)), "a password or token")
            yield Finding("secret-literal", f"this looks like {what}; {advice}", offset=found.start())


def _all_texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _all_texts(item)


def _leaves(value: Any, path: tuple[str | int, ...]) -> Iterable[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _leaves(item, (*path, position))
    elif value is not None:
        yield path, to_string(value)


def _span_of_secrets(root: Any, text: str) -> tuple[int, int]:
    """Where the `secrets` section stands, as far as the top-level keys tell."""
    marks = getattr(root, "marks", {})
    if "secrets" not in marks:
        return 0, 0
    start = marks["secrets"]
    return start, min((at for at in marks.values() if at > start), default=len(text))
