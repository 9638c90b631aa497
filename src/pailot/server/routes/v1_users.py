"""Users as version 1 changed them: the name in the body, virtual clusters as one text."""

from __future__ import annotations

from ...jobserver.errors import Conflict
from ...protocol.schema_types import Flag, ListOf, OneOf, Record, Text
from ..schemas import MESSAGE
from ..toolkit.bodies import check
from ..toolkit.errors import HttpError
from ..toolkit.http import json_response
from ..toolkit.routing import ADMIN, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..toolkit.http import Request, Response

routes = Routes("version 1", "/api/v1")
_PUT = Record(
    {
        "username": Text("The user.", shortest=1, longest=128),
        "password": Text("At least 6 characters.", shortest=1),
        "admin": Flag("Whether an administrator."),
        "modify": Flag("Whether the user is there already."),
    },
    required=("username",),
    what="in the request",
)
_DELETE = Record({"username": Text("The user.", shortest=1)}, required=("username",), what="in the request")
_LIST = OneOf("a list, or names separated by commas", ListOf(Text()), Text())
_CLUSTERS = Record({"virtualClusters": _LIST, "virtualCluster": _LIST}, what="in the request")


@routes("PUT", "/user", auth=ADMIN, body=_PUT, answers={201: "The user is as asked for"}, shape=MESSAGE)
async def v1_put_user(request: Request) -> Response:
    """Make a user, or with `modify` change one."""
    body = check(await request.data(), _PUT)
    accounts, name, password = request.site.accounts, body["username"], body.get("password")
    if body.get("modify"):
        await request.site.hash(accounts.update_user, name, password=password, admin=body.get("admin"))
    else:
        if password is None:
            raise HttpError(400, "InvalidParametersError", "a new user needs a password")
        try:
            await request.site.hash(accounts.create_user, name, password, admin=body.get("admin", False))
        except Conflict as error:
            raise HttpError(409, "ConflictUserError", str(error)) from None
    return json_response({"message": "update successfully"}, 201)


@routes("DELETE", "/user", auth=ADMIN, body=_DELETE, shape=MESSAGE)
async def v1_delete_user(request: Request) -> Response:
    """Remove a user; its jobs stay."""
    body = check(await request.data(), _DELETE)
    await request.site.call(request.site.accounts.delete_user, body["username"])
    return json_response({"message": "remove successfully"})


@routes("PUT", "/user/{user}/virtualClusters", auth=ADMIN, body=_CLUSTERS, answers={201: "The user is changed"}, shape=MESSAGE)
async def v1_set_clusters(request: Request) -> Response:
    """Set the virtual clusters that a user may use: a list, or a text with commas."""
    body = check(await request.data() or {}, _CLUSTERS)
    wanted = body.get("virtualClusters", body.get("virtualCluster", ""))
    names = [part.strip() for part in wanted.split(",") if part.strip()] if isinstance(wanted, str) else wanted
    await request.site.call(request.site.accounts.set_clusters, request.parameters["user"], names)
    return json_response({"message": "update user virtual clusters successfully"}, 201)
