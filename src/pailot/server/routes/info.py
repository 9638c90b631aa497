"""What the server is."""

from __future__ import annotations

from ... import __version__
from ..schemas import INFO, SWITCH, TEXT, maybe, record
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
            "authnMethod": "basic" if request.site.accounts.password_login else "OIDC",
            "openPAIversion": "v1.8.1",
        }
    )


async def welcome(request: Request) -> Response:
    """A greeting."""
    return text_response("PAI RESTful API v2 (beta version)")


for _method in _METHODS:
    routes(_method, "/info", "/api/v1", auth=OPEN, hidden=_method != "GET", shape=INFO)(info)
    routes(_method, "/api/v2", auth=OPEN, kind="text/plain", hidden=_method != "GET")(welcome)


_AUTHN = record(authn_type=TEXT, loginURI=TEXT, loginURIMethod=TEXT, password=SWITCH, signInWith=maybe(TEXT))


@routes("GET", "/authn/info", "/api/v1/authn/info", auth=OPEN, shape=_AUTHN)
async def authn_info(request: Request) -> Response:
    """How to log in: in OpenPAI's words, whether passwords work, and the name of the identity provider."""
    password, sign_on = request.site.accounts.password_login, request.site.sign_on
    told = _PASSWORD if password else _PROVIDER
    return json_response({**told, "password": password, "signInWith": sign_on.name if sign_on is not None else None})


_PASSWORD = {"authn_type": "basic", "loginURI": "/api/v1/authn/basic/login", "loginURIMethod": "post"}
_PROVIDER = {"authn_type": "OIDC", "loginURI": "/api/v1/authn/oidc/login", "loginURIMethod": "get"}
