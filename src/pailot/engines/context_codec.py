"""The context of a launch as JSON values, and back. It holds secrets: it goes from process to process, and into no file."""

from __future__ import annotations

from ..data.rules import OWN_MACHINE, Rules
from ..job_values import Auth
from .contract import LaunchContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def document(context: LaunchContext) -> list[Any]:
    """The fields in their order."""
    rules = context.rules
    return [
        context.cwd,
        context.work_dir,
        context.environment,
        context.secrets,
        {role: (each.username, each.password, each.registry) for role, each in context.logins.items()},
        context.hidden,
        context.cache,
        context.home,
        context.sandbox,
        context.rotate_bytes,
        context.code,
        context.source,
        context.run_as,
        None
        if rules is OWN_MACHINE
        else (rules.server, rules.schemes, rules.folders, rules.addresses, rules.private, rules.credentials),
        context.data_folder,
        context.data_bytes,
        context.data_user,
    ]


def context_of(found: list[Any]) -> LaunchContext:
    """The context that a document holds."""
    (
        cwd, work_dir, environment, secrets, logins, hidden, cache, home, sandbox, rotate_bytes, code, source, run_as, rules,
        *data,
    ) = found  # fmt: skip
    return LaunchContext(
        cwd,
        work_dir,
        environment,
        secrets,
        {role: Auth(*each) for role, each in logins.items()},
        tuple(hidden),
        cache,
        home,
        sandbox,
        rotate_bytes,
        code,
        source,
        run_as,
        OWN_MACHINE if rules is None else _rules_of(*rules),
        *data,
    )


def _rules_of(server: bool, schemes: list[str], folders: list[str], addresses: list[str], *rest: bool) -> Rules:
    return Rules(server, tuple(schemes), tuple(folders), tuple(addresses), *rest)
