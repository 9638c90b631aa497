"""What the server is."""

from __future__ import annotations

from ... import __version__
from ..schemas import INFO, TEXT, record
from ..toolkit.http import json_response, text_response
from ..toolkit.routing import OPEN, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..toolkit.http import Request, Response

routes = Routes("info")
_METHODS = ("GET", "POST", "PUT", "DELETE")


async def info(request: Request) -> Response:
    """What the server is, and how to log in."""
    return json_response(
        {
            "name": "PAI RESTful API",
            "version": f"pailot-{__version__}",
            "launcherType": "k8s",
            "authnMethod": "basic",
            "openPAIversion": "v1.8.1",
        }
    )


async def welcome(request: Request) -> Response:
    """A greeting."""
    return text_response("PAI RESTful API v2 (beta version)")


for _method in _METHODS:
    routes(_method, "/info", "/api/v1", auth=OPEN, hidden=_method != "GET", shape=INFO)(info)
    routes(_method, "/api/v2", auth=OPEN, kind="text/plain", hidden=_method != "GET")(welcome)


@routes("GET", "/authn/info", "/api/v1/authn/info", auth=OPEN, shape=record(authn_type=TEXT, loginURI=TEXT, loginURIMethod=TEXT))
async def authn_info(request: Request) -> Response:
    """How to log in."""
    return json_response({"authn_type": "basic", "loginURI": "/api/v1/authn/basic/login", "loginURIMethod": "post"})
