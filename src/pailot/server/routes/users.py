"""Users, as OpenPAI's API keeps them. Private keys and tokens in an extension are shown to their owner only."""

from __future__ import annotations

from ...jobserver.accounts import NoSuchUser
from ...jobserver.errors import Conflict
from ...protocol.schema_types import Anything, Flag, ListOf, Record, Text
from ..auth import not_admin
from ..schemas import MESSAGE, a, many
from ..toolkit.addresses import counted
from ..toolkit.bodies import check
from ..toolkit.errors import HttpError
from ..toolkit.http import json_response
from ..toolkit.routing import ADMIN, BROWSER, TOKEN, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...jobserver.accounts import Account
    from ..toolkit.http import Request, Response

routes = Routes("users")

_NAME = Text("The user's name.", shortest=1, longest=128)
_EMAIL = Text("The address for notifications.", longest=320)
_PASSWORD = Text("At least 6 characters.", shortest=1)
_CLUSTERS = ListOf(Text(), "Virtual clusters that the user may use.")
_EXTENSION = Record({}, "Whatever belongs to the user; given keys are replaced, others stay.", extra=Anything())
_ADMIN = Flag("Whether an administrator.")
_FIELDS = {
    "username": _NAME,
    "password": _PASSWORD,
    "email": _EMAIL,
    "virtualCluster": _CLUSTERS,
    "admin": _ADMIN,
    "extension": _EXTENSION,
}
_UNIX = Text("The Unix user that the user's tasks run as.", longest=64)
_CREATE = Record({**_FIELDS, "unixUser": _UNIX}, required=("username", "password"), what="in the request")
_UPDATE = Record(
    {
        "patch": Flag("Only what is given is changed."),
        "data": Record({**_FIELDS, "unixUser": _UNIX}, required=("username",), what="in 'data'"),
    },
    required=("data",),
    what="in the request",
)
_OWN = {"username": _NAME, "email": _EMAIL, "newPassword": _PASSWORD, "oldPassword": _PASSWORD, "extension": _EXTENSION}
_ME = Record(
    {"patch": Flag(), "data": Record(_OWN, required=("username",), what="in 'data'")}, required=("data",), what="in the request"
)


def user_json(account: Account, viewer: Account) -> dict[str, object]:
    """A user as OpenPAI tells one; how much of the extension depends on who looks."""
    if viewer.username == account.username:
        extension = dict(account.extension)
    else:
        extension = _public(account.extension) if viewer.admin else {}
    return {
        "username": account.username,
        "email": account.email,
        "grouplist": list(account.grouplist),
        "extension": extension,
        "admin": account.admin,
        "virtualCluster": list(account.virtual_clusters),
        "storageConfig": list(account.storages),
    }


def _public(extension: Mapping[str, Any]) -> dict[str, object]:
    """What an administrator sees of another's extension: no private key, no token, no password."""
    told = {key: value for key, value in extension.items() if key not in ("jobSSH", "githubPAT", "boundedClusters")}
    ssh = extension.get("jobSSH")
    if isinstance(ssh, dict) and "pubKey" in ssh:
        told["jobSSH"] = {"pubKey": ssh["pubKey"]}
    clusters = extension.get("boundedClusters")
    if isinstance(clusters, dict):
        told["boundedClusters"] = {
            name: {key: each[key] for key in ("alias", "uri", "username") if key in each}
            for name, each in clusters.items()
            if isinstance(each, dict)
        }
    return told


@routes("GET", "/users/{user}", "/user/{user}", "/api/v1/user/{user}", auth=TOKEN, shape=a("User"))
async def user(request: Request) -> Response:
    """A user."""
    try:
        account = await request.site.call(request.site.accounts.account, request.parameters["user"])
    except NoSuchUser as error:
        raise HttpError(400, "NoUserError", str(error)) from None
    return json_response(user_json(account, request.caller.account))


@routes("GET", "/users", "/user", "/api/v1/user", auth=TOKEN, shape=many(a("User")))
async def users(request: Request) -> Response:
    """All users."""
    viewer = request.caller.account
    return json_response([user_json(each, viewer) for each in await request.site.call(request.site.accounts.accounts)])


@routes("POST", "/users", "/user", auth=ADMIN, body=_CREATE, answers={201: "The user is there"}, shape=MESSAGE)
async def create_user(request: Request) -> Response:
    """Make a user."""
    body = check(await request.data(), _CREATE)
    accounts = request.site.accounts
    try:
        warnings = await request.site.hash(
            accounts.create_user,
            body["username"],
            body["password"],
            email=body.get("email", ""),
            virtual_clusters=body.get("virtualCluster", ()),
            admin=body.get("admin", False),
            extension=body.get("extension"),
            unix_user=body.get("unixUser"),
        )
    except Conflict as error:
        raise HttpError(409, "ConflictUserError", str(error)) from None
    return json_response({"message": "User is created successfully", "warnings": list(warnings)}, 201)


@routes("PUT", "/users", "/user", auth=ADMIN, body=_UPDATE, answers={201: "The user is changed"}, shape=MESSAGE)
async def update_user(request: Request) -> Response:
    """Change a user."""
    body = check(await request.data(), _UPDATE)
    data = body["data"]
    missing = [key for key in ("email", "virtualCluster", "admin", "password", "extension") if key not in data]
    if missing and not body.get("patch", False):
        raise HttpError(
            400, "InvalidParametersError", f"'data' lacks {', '.join(missing)}; with patch: true it need not have them"
        )
    await request.site.hash(
        request.site.accounts.update_user,
        data["username"],
        email=data.get("email"),
        virtual_clusters=data.get("virtualCluster"),
        admin=data.get("admin"),
        password=data.get("password"),
        extension=data.get("extension"),
        unix_user=data.get("unixUser"),
    )
    return _changed()


@routes("PUT", "/users/me", "/user/me", auth=BROWSER, body=_ME, answers={201: "The user is changed"}, shape=MESSAGE)
async def update_me(request: Request) -> Response:
    """Change oneself: address, password, extension."""
    body = check(await request.data(), _ME)
    data, me = body["data"], request.caller.account
    if data["username"] != me.username:
        raise not_admin()
    accounts = request.site.accounts

    def change() -> None:
        if "newPassword" in data:
            asking, address = me.replace(admin=False), counted(request.client)
            old, token = data.get("oldPassword"), request.caller.token
            accounts.change_password(me.username, data["newPassword"], old, asking, address, keep=token)
        if "email" in data or "extension" in data:
            accounts.update_user(me.username, email=data.get("email"), extension=data.get("extension"))

    await request.site.hash(change)
    return _changed()


@routes("DELETE", "/users/{user}", "/user/{user}", auth=ADMIN, shape=MESSAGE)
async def delete_user(request: Request) -> Response:
    """Remove a user; its jobs stay."""
    await request.site.call(request.site.accounts.delete_user, request.parameters["user"])
    return json_response({"message": "user is removed successfully"})


def _own_or_admin(request: Request) -> str:
    """The user in the path, if that is the caller or the caller an administrator."""
    name, me = request.parameters["user"], request.caller.account
    if name != me.username and not me.admin:
        raise not_admin()
    return name


def _changed(message: str = "Update user data successfully") -> Response:
    """In OpenPAI's own words."""
    return json_response({"message": message}, 201)


def _one(key: str, shape: Any) -> Record:
    return Record({key: shape}, required=(key,), what="in the request")


_EXTENSION_BODY = _one("extension", _EXTENSION)
_GROUPLIST_BODY = _one("grouplist", ListOf(Text(), "Names of groups."))
_GROUP_BODY = _one("groupname", Text("The name of a group.", shortest=1))
_CLUSTERS_BODY = _one("virtualCluster", _CLUSTERS)
_EMAIL_BODY = _one("email", _EMAIL)
_ADMIN_BODY = _one("admin", _ADMIN)
_PASSWORD_BODY = Record({"oldPassword": _PASSWORD, "newPassword": _PASSWORD}, required=("newPassword",), what="in the request")
_DONE = {201: "The user is changed"}


@routes(
    "PUT", "/users/{user}/extension", "/user/{user}/extension", auth=BROWSER, body=_EXTENSION_BODY, answers=_DONE, shape=MESSAGE
)
async def set_extension(request: Request) -> Response:
    """Change a user's extension."""
    body = check(await request.data(), _EXTENSION_BODY)
    name = _own_or_admin(request)
    await request.site.call(request.site.accounts.update_user, name, extension=body["extension"])
    return _changed("Update user extension data successfully.")


@routes(
    "PUT", "/users/{user}/grouplist", "/user/{user}/grouplist", auth=ADMIN, body=_GROUPLIST_BODY, answers=_DONE, shape=MESSAGE
)
async def set_grouplist(request: Request) -> Response:
    """Set the groups of a user."""
    body = check(await request.data(), _GROUPLIST_BODY)
    await request.site.call(request.site.accounts.set_groups, request.parameters["user"], body["grouplist"])
    return _changed("update user grouplist successfully.")


@routes("PUT", "/users/{user}/group", "/user/{user}/group", auth=ADMIN, body=_GROUP_BODY, answers=_DONE, shape=MESSAGE)
async def join_group(request: Request) -> Response:
    """Put a user into a group."""
    body = check(await request.data(), _GROUP_BODY)
    await request.site.call(request.site.accounts.join_group, request.parameters["user"], body["groupname"])
    return _changed(f"User {request.parameters['user']} is added into group {body['groupname']}")


@routes("DELETE", "/users/{user}/group", "/user/{user}/group", auth=ADMIN, body=_GROUP_BODY, answers=_DONE, shape=MESSAGE)
async def leave_group(request: Request) -> Response:
    """Take a user out of a group."""
    body = check(await request.data(), _GROUP_BODY)
    await request.site.call(request.site.accounts.leave_group, request.parameters["user"], body["groupname"])
    return _changed(f"User {request.parameters['user']} is removed from group {body['groupname']}")


@routes(
    "PUT",
    "/users/{user}/virtualcluster",
    "/user/{user}/virtualcluster",
    auth=ADMIN,
    body=_CLUSTERS_BODY,
    answers=_DONE,
    shape=MESSAGE,
)
async def set_virtual_clusters(request: Request) -> Response:
    """Set the virtual clusters that a user may use."""
    body = check(await request.data(), _CLUSTERS_BODY)
    await request.site.call(request.site.accounts.set_clusters, request.parameters["user"], body["virtualCluster"])
    return _changed("Update user virtualCluster data successfully.")


@routes("PUT", "/users/{user}/password", "/user/{user}/password", auth=BROWSER, body=_PASSWORD_BODY, answers=_DONE, shape=MESSAGE)
async def set_password(request: Request) -> Response:
    """Change a password."""
    body = check(await request.data(), _PASSWORD_BODY)
    await request.site.hash(
        request.site.accounts.change_password,
        request.parameters["user"],
        body["newPassword"],
        body.get("oldPassword"),
        request.caller.account,
        counted(request.client),
        keep=request.caller.token,
    )
    return _changed("update user password successfully.")


@routes("PUT", "/users/{user}/email", "/user/{user}/email", auth=BROWSER, body=_EMAIL_BODY, answers=_DONE, shape=MESSAGE)
async def set_email(request: Request) -> Response:
    """Change the address for notifications."""
    body = check(await request.data(), _EMAIL_BODY)
    await request.site.call(request.site.accounts.update_user, _own_or_admin(request), email=body["email"])
    return _changed("Update user email data successfully.")


@routes("PUT", "/users/{user}/admin", "/user/{user}/admin", auth=ADMIN, body=_ADMIN_BODY, answers=_DONE, shape=MESSAGE)
async def set_admin(request: Request) -> Response:
    """Make a user an administrator, or not."""
    body = check(await request.data(), _ADMIN_BODY)
    await request.site.call(request.site.accounts.update_user, request.parameters["user"], admin=body["admin"])
    return _changed("Update user admin permission successfully.")
