"""Which requests are written into the audit log, and in which words.

Every request that changes something is, under the name of its handler, so that a new route cannot be forgotten. Reading is,
where it is the logs, the file or the tasks of another user's job, and the audit log itself.
"""

from __future__ import annotations

from ..jobserver.audit import AuditEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .toolkit.http import Request
    from .toolkit.routing import Route

CHANGING = frozenset(("POST", "PUT", "DELETE", "PATCH"))
SILENT = frozenset(("validate", "plan", "validate_entry"))
"""Handlers that are asked with POST and change nothing."""
_READ_OF_OTHERS = ("config", "logs", "logs.zip", "search", "live", "shell", "files", "ports", "connection")


def action_of(route: Route, request: Request) -> str | None:
    """Return the word for what a request does, or None where it is not written down."""
    name = route.handler.__name__.removeprefix("v1_").replace("_", "-")
    if route.method in CHANGING:
        return None if route.handler.__name__ in SILENT else name
    if name in ("oidc-return", "oidc-logout"):
        return name
    if name == "audit":
        return "read-audit"
    parts = route.path.split("/")
    if "{job}" not in parts or not any(part in _READ_OF_OTHERS for part in parts):
        return None
    owner = request.parameters.get("job", "").partition("~")[0]
    return f"read-{name}" if owner != request.caller.username else None


def entry_of(action: str, request: Request, status: int, now: float) -> AuditEntry:
    """Return the entry for a request. The values in its path name the target; those that are tokens do not."""
    values = [value for name, value in request.parameters.items() if name not in ("token", "digest")]
    target = "/".join(each for each in (*values, request.named) if each)
    return AuditEntry(now, request.id, request.caller.username or request.named, request.client, action, target, status)
