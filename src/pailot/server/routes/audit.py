"""The audit log, for administrators."""

from __future__ import annotations

from ...jobserver.audit import AuditQuery
from ..schemas import NUMBER, TEXT, WHOLE, many, record
from ..toolkit.errors import HttpError
from ..toolkit.http import json_response
from ..toolkit.routing import ADMIN, Query, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..toolkit.http import Request, Response

routes = Routes("machine")
MOST = 1000
_ENTRY = record(at=NUMBER, request=TEXT, user=TEXT, address=TEXT, action=TEXT, target=TEXT, status=WHOLE)


@routes(
    "GET",
    "/audit",
    auth=ADMIN,
    query=(
        Query("user", "Only what this user did."),
        Query("action", "Only this action, such as `submit` or `login`."),
        Query("target", "Only what was done to something with this in its name."),
        Query("since", "Not what was done before, in seconds since 1970.", {"type": "number"}),
        Query("limit", f"At most this many entries, {MOST} at most.", {"type": "integer"}),
    ),
    shape=many(_ENTRY),
)
async def audit(request: Request) -> Response:
    """Who did what on this server, the newest first."""
    query = request.query
    try:
        since, limit = float(query.get("since", "0")), int(query.get("limit", "100"))
    except ValueError:
        raise HttpError(400, "InvalidParametersError", "'since' and 'limit' should be numbers") from None
    if not 0 < limit <= MOST or not abs(since) < float("inf"):
        raise HttpError(400, "InvalidParametersError", f"'limit' should be between 1 and {MOST}, 'since' finite")
    wanted = AuditQuery(query.get("user", ""), query.get("action", ""), query.get("target", ""), since, limit)
    found = await request.site.call(request.site.audit.entries, wanted)
    return json_response([entry.to_json() for entry in found])
