"""Code that is sent along with jobs: archives named by their SHA-256, each sent once."""

from __future__ import annotations

import re

from ..schemas import SWITCH, TEXT, record
from ..toolkit.errors import HttpError
from ..toolkit.http import Response, json_response
from ..toolkit.routing import Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..toolkit.http import Request

routes = Routes("code")


def _digest(request: Request) -> str:
    digest = request.parameters["digest"].lower()
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise HttpError(400, "InvalidParametersError", "code is named by its SHA-256: 64 hexadecimal digits")
    return digest


@routes("HEAD", "/code/{digest}")
async def has_code(request: Request) -> Response:
    """Whether the caller has sent an archive already: 200 or 404."""
    if not await request.site.team.has_code(request.caller.must(), _digest(request)):
        raise HttpError(404, "NoCodeError", "no code with this digest was sent")
    return Response()


@routes("PUT", "/code/{digest}", answers={200: "It was there already", 201: "It is kept"}, shape=record(digest=TEXT, new=SWITCH))
async def put_code(request: Request) -> Response:
    """Send a folder of code as .tar.gz."""
    digest = _digest(request)
    new = await request.site.team.put_code(request.caller.must(), digest, request.pieces(request.site.code_limit))
    return json_response({"digest": digest, "new": new}, 201 if new else 200)
