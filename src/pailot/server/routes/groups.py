"""Groups: what their members may use."""

from __future__ import annotations

from ...jobserver.accounts import NoSuchGroup
from ...jobserver.errors import Conflict
from ...protocol.schema_types import Anything, Flag, Record, Text
from ..schemas import MESSAGE, SWITCH, TEXT, a, many, record
from ..toolkit.bodies import check
from ..toolkit.errors import HttpError
from ..toolkit.http import json_response
from ..toolkit.routing import ADMIN, TOKEN, TOKEN_ADMIN, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...store.server import Group
    from ..toolkit.http import Request, Response

routes = Routes("groups")

_EXTENSION = Record({}, "`acls` says what members may use.", extra=Anything())
_FIELDS = {
    "groupname": Text("The group's name.", shortest=1, longest=128),
    "description": Text(),
    "externalName": Text(),
    "extension": _EXTENSION,
}
_CREATE = Record(_FIELDS, required=("groupname",), what="in the request")
_UPDATE = Record(
    {"patch": Flag(), "data": Record(_FIELDS, required=("groupname",), what="in 'data'")},
    required=("data",),
    what="in the request",
)
_DONE = {201: "The group is changed"}


def group_json(group: Group) -> dict[str, object]:
    return {
        "groupname": group.groupname,
        "description": group.description,
        "externalName": group.external_name,
        "extension": dict(group.extension),
    }


@routes("GET", "/groups", "/group", auth=TOKEN, shape=many(a("Group")))
async def groups(request: Request) -> Response:
    """All groups."""
    return json_response([group_json(each) for each in await request.site.call(request.site.accounts.groups)])


@routes("GET", "/groups/{group}", "/group/{group}", auth=TOKEN, shape=a("Group"))
async def group(request: Request) -> Response:
    """A group."""
    try:
        return json_response(group_json(await request.site.call(request.site.accounts.group, request.parameters["group"])))
    except NoSuchGroup as error:
        raise HttpError(400, "NoGroupError", str(error)) from None


@routes("POST", "/groups", "/group", auth=ADMIN, body=_CREATE, answers={201: "The group is there"}, shape=MESSAGE)
async def create_group(request: Request) -> Response:
    """Make a group."""
    body = check(await request.data(), _CREATE)
    try:
        await request.site.call(
            request.site.accounts.create_group,
            body["groupname"],
            description=body.get("description", ""),
            external_name=body.get("externalName", ""),
            extension=body.get("extension"),
        )
    except Conflict as error:
        raise HttpError(409, "ConflictGroupError", str(error)) from None
    return json_response({"message": "group is created successfully"}, 201)


@routes("PUT", "/groups", "/group", auth=ADMIN, body=_UPDATE, answers=_DONE, shape=MESSAGE)
async def update_group(request: Request) -> Response:
    """Change a group."""
    data = check(await request.data(), _UPDATE)["data"]
    return await _change(
        request,
        data["groupname"],
        "data",
        description=data.get("description"),
        external_name=data.get("externalName"),
        extension=data.get("extension"),
    )


@routes("DELETE", "/groups/{group}", "/group/{group}", auth=ADMIN, shape=MESSAGE)
async def delete_group(request: Request) -> Response:
    """Remove a group, also from its members."""
    await request.site.call(request.site.accounts.delete_group, request.parameters["group"])
    return json_response({"message": "group is removed successfully"})


@routes(
    "GET",
    "/groups/{group}/userlist",
    "/group/{group}/userlist",
    auth=TOKEN_ADMIN,
    shape=many(record(username=TEXT, clusterAdmin=SWITCH)),
)
async def members(request: Request) -> Response:
    """The members of a group."""
    found = await request.site.call(request.site.accounts.members, request.parameters["group"])
    return json_response([{"username": each.username, "clusterAdmin": each.admin} for each in found])


def _one(key: str, shape: Any) -> Record:
    return Record({key: shape}, required=(key,), what="in the request")


_EXTENSION_BODY = _one("extension", _EXTENSION)
_DATA_BODY = _one("data", Anything("The new value."))
_DESCRIPTION_BODY = _one("description", Text())
_EXTERNAL_BODY = _one("externalName", Text())


@routes(
    "PUT", "/groups/{group}/extension", "/group/{group}/extension", auth=ADMIN, body=_EXTENSION_BODY, answers=_DONE, shape=MESSAGE
)
async def set_group_extension(request: Request) -> Response:
    """Change the extension of a group."""
    body = check(await request.data(), _EXTENSION_BODY)
    return await _change(request, request.parameters["group"], "extension data", extension=body["extension"])


@routes(
    "PUT",
    "/groups/{group}/extension/{key}",
    "/group/{group}/extension/{key}",
    auth=ADMIN,
    body=_DATA_BODY,
    answers=_DONE,
    shape=MESSAGE,
)
async def set_group_key(request: Request) -> Response:
    """Change one key of the extension of a group."""
    body = check(await request.data(), _DATA_BODY)
    return await _change(
        request, request.parameters["group"], "extension data", extension={request.parameters["key"]: body["data"]}
    )


@routes(
    "PUT", "/groups/{group}/extension/{key}/{below}", "/group/{group}/extension/{key}/{below}",
    auth=ADMIN, body=_DATA_BODY, answers=_DONE,
    shape=MESSAGE)  # fmt: skip
async def set_group_key_below(request: Request) -> Response:
    """Change a key below one of the extension of a group."""
    body = check(await request.data(), _DATA_BODY)
    key, below = request.parameters["key"], request.parameters["below"]
    found = await request.site.call(request.site.accounts.group, request.parameters["group"])
    before = found.extension.get(key)
    after = {**(before if isinstance(before, dict) else {}), below: body["data"]}
    return await _change(request, request.parameters["group"], "extension data", extension={key: after})


@routes(
    "PUT",
    "/groups/{group}/description",
    "/group/{group}/description",
    auth=ADMIN,
    body=_DESCRIPTION_BODY,
    answers=_DONE,
    shape=MESSAGE,
)
async def set_group_description(request: Request) -> Response:
    """Change the description of a group."""
    body = check(await request.data(), _DESCRIPTION_BODY)
    return await _change(request, request.parameters["group"], "description data", description=body["description"])


@routes(
    "PUT",
    "/groups/{group}/externalname",
    "/group/{group}/externalname",
    auth=ADMIN,
    body=_EXTERNAL_BODY,
    answers=_DONE,
    shape=MESSAGE,
)
async def set_group_external(request: Request) -> Response:
    """Change the external name of a group."""
    body = check(await request.data(), _EXTERNAL_BODY)
    return await _change(request, request.parameters["group"], "externalNameData data", external_name=body["externalName"])


async def _change(request: Request, name: str, what: str, **changes: Any) -> Response:
    """`what` is OpenPAI's word for it."""
    await request.site.call(request.site.accounts.update_group, name, **changes)
    return json_response({"message": f"update group {what} successfully."}, 201)
