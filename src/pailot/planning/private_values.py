"""What a plan refers to and never holds: its secrets, and the credentials of the registries that its images come from."""

from __future__ import annotations

from ..job_values import Auth
from ..protocol.js_semantics import to_string
from ..protocol.templates import lookup, replace_secrets, secret_references
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from ..protocol.model import Job, TaskRole
    from ..runfolder.plan import Plan


class PrivateValues(Value):
    """They travel beside the plan, in memory or sealed."""

    secrets: Mapping[str, str] = {}
    """Every reference to a secret that stands in the plan, and the secret as text."""
    logins: Mapping[str, Auth] = {}
    """The credentials for the image of each role that has some, secrets inserted."""

    def __repr__(self) -> str:
        return f"PrivateValues({len(self.secrets)} secrets, {len(self.logins)} logins)"


def private_values(job: Job, plan: Plan) -> PrivateValues:
    """The private values of a job and the plan that was made of it."""
    clear = job.secrets.reveal()
    return PrivateValues(secret_values(clear, plan), registry_logins(job, clear))


def secret_values(clear: Mapping[str, Any], plan: Plan) -> dict[str, str]:
    """Every reference to one of these secrets that the plan holds, with the secret as text."""
    values: dict[str, str] = {}
    if not clear:
        return values
    for text in _texts(plan):
        if "<%" not in text:
            continue
        for reference in secret_references(text):
            if reference not in values:
                value, problem, _ = lookup(clear, _steps(reference), "$secrets")
                if not problem:
                    values[reference] = to_string(value)
    return values


def registry_logins(job: Job, clear: Mapping[str, Any]) -> dict[str, Auth]:
    """The credentials for the image of each role, with the secrets that they refer to."""

    def inserted(name: str) -> str:
        value, problem, _ = lookup(clear, name.split("."), "$secrets")
        return f"<% $secrets.{name} %>" if problem else to_string(value)

    found = ((name, auth_of(role, job.registry_auth)) for name, role in job.task_roles.items())
    return {
        name: Auth(*(replace_secrets(text, inserted) for text in (auth.username, auth.password, auth.registry)))
        for name, auth in found
        if auth is not None
    }


def auth_of(role: TaskRole, otherwise: Auth | None) -> Auth | None:
    """What the job says about the registry of a role's image."""
    for each in role.prerequisites:
        if each.type == "dockerimage" and each.name == role.docker_image:
            return each.auth or otherwise
    return otherwise


def is_reference(text: str) -> bool:
    """Whether a text is a reference to a secret and nothing else."""
    return secret_references(text) == [text]


def _steps(reference: str) -> list[str]:
    return reference[len("<% $secrets.") : -len(" %>")].split(".")


def _texts(plan: Plan) -> Iterator[str]:
    """The texts of a plan into which secrets are inserted when it runs."""
    for role in plan.roles.values():
        yield from (role.scripts.start, role.scripts.main, role.scripts.exit)
        if role.provisions:
            yield from (each.source for each in role.provisions)
            yield from role.environment.values()  # an address may name a variable
