"""Storages. Who may use one is told where it is; its keys and passwords are told to administrators only."""

from __future__ import annotations

from ...protocol.schema_types import Anything, Flag, Record, Text
from ..schemas import MESSAGE, OLD_SERVER, OLD_STORAGE, STORAGE, a, many, record
from ..toolkit.bodies import check
from ..toolkit.errors import HttpError
from ..toolkit.http import json_response
from ..toolkit.routing import ADMIN, TOKEN, Query, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..toolkit.http import Request, Response

routes = Routes("storages")
_SECRET = ("password", "accountKey", "accountSASToken")
_KINDS = ("nfs", "samba", "azureFile", "azureBlob", "dshuttle", "other", "unknown")
_STORAGE = Record(
    {
        "type": Text("What kind.", choices=_KINDS),
        "data": Record({}, "Where it is: server and path, say.", extra=Anything()),
        "share": Flag("Whether all users see the same; else each a folder of their own."),
        "readOnly": Flag(),
        "mountOptions": Anything(),
    },
    required=("type", "data"),
    what="in the request",
)


async def _permitted(request: Request) -> dict[str, dict[str, object]]:
    account = request.caller.account
    found = await request.site.call(request.site.store.accounts.storages)
    return {name: data for name, data in found.items() if account.admin or name in account.storages}


def _summary(name: str, data: Mapping[str, Any], defaults: tuple[str, ...]) -> dict[str, object]:
    return {
        "name": name,
        "share": bool(data.get("share", True)),
        "volumeName": data.get("volumeName", name),
        "default": name in defaults,
    }


@routes(
    "GET",
    "/storages",
    query=(Query("default", "Only the user's default storages.", {"type": "boolean"}),),
    auth=TOKEN,
    shape=record(storages=many(a("Storage"))),
)
async def storages(request: Request) -> Response:
    """The storages that the caller may use."""
    defaults = await _defaults(request)
    told = [_summary(name, data, defaults) for name, data in (await _permitted(request)).items()]
    if request.query.get("default", "").lower() == "true":
        told = [each for each in told if each["default"]]
    return json_response({"storages": told})


async def _defaults(request: Request) -> tuple[str, ...]:
    """The first storage of each of the caller's groups is a default one."""
    account = request.caller.account
    groups = {each.groupname: each for each in await request.site.call(request.site.accounts.groups)}
    found = []
    for name in account.grouplist:
        acls = groups[name].extension.get("acls") if name in groups else None
        configs = acls.get("storageConfigs") if isinstance(acls, dict) else None
        if isinstance(configs, list) and configs:
            found.append(str(configs[0]))
    return tuple(found)


@routes("GET", "/storages/{storage}", auth=TOKEN, shape=STORAGE)
async def storage(request: Request) -> Response:
    """A storage: what it is and where."""
    name = request.parameters["storage"]
    everything = await request.site.call(request.site.store.accounts.storages)
    if name not in everything:
        raise _missing(name)
    if name not in await _permitted(request):
        raise HttpError(403, "ForbiddenUserError", f"User {request.caller.username} is not allowed to access {name}.")
    kept = everything[name]
    data = dict(kept.get("data", {}))
    if not request.caller.account.admin:
        data = {key: "******" if key in _SECRET else value for key, value in data.items()}
    return json_response(
        {
            **_summary(name, kept, await _defaults(request)),
            "type": kept.get("type", "unknown"),
            "data": data,
            "readOnly": bool(kept.get("readOnly", False)),
            **({"mountOptions": kept["mountOptions"]} if "mountOptions" in kept else {}),
        }
    )


@routes("PUT", "/storages/{storage}", auth=ADMIN, body=_STORAGE, answers={201: "The storage is as asked for"}, shape=MESSAGE)
async def put_storage(request: Request) -> Response:
    """Make or change a storage; whose groups name it in `extension.acls.storageConfigs` may use it."""
    name = request.parameters["storage"]
    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum() or len(name) > 128:
        raise HttpError(400, "InvalidParametersError", "a storage has letters, digits, '-' and '_' in its name")
    body = check(await request.data(), _STORAGE)
    await request.site.call(request.site.store.accounts.put_storage, name, body)
    return json_response({"message": f"Storage {name} is kept."}, 201)


@routes("DELETE", "/storages/{storage}", auth=ADMIN, shape=MESSAGE)
async def delete_storage(request: Request) -> Response:
    """Forget a storage."""
    name = request.parameters["storage"]
    if not await request.site.call(request.site.store.accounts.remove_storage, name):
        raise _missing(name)
    return json_response({"message": f"Storage {name} is removed."})


def _missing(name: str) -> HttpError:
    return HttpError(404, "NoStorageError", f"Storage {name[:128]} is not found.")


def _asked(request: Request) -> list[str]:
    one = request.parameters.get("storage")
    return [one] if one else [part for part in request.query.get("names", "").split(",") if part]


async def _old(request: Request) -> dict[str, dict[str, object]]:
    found, asked = await _permitted(request), _asked(request)
    for name in asked:
        if name not in found:
            raise _missing(name)
    return {name: data for name, data in found.items() if not asked or name in asked}


@routes(
    "GET", "/storage/config", query=(Query("names", "Only these, separated by commas."),), auth=TOKEN, shape=many(OLD_STORAGE)
)
async def storage_configs(request: Request) -> Response:
    """Storages in a deprecated form."""
    defaults = await _defaults(request)
    return json_response([_config(name, data, defaults) for name, data in (await _old(request)).items()])


@routes("GET", "/storage/config/{storage}", auth=TOKEN, shape=OLD_STORAGE)
async def storage_config(request: Request) -> Response:
    """A storage in a deprecated form."""
    found, defaults = await _old(request), await _defaults(request)
    name = request.parameters["storage"]
    return json_response(_config(name, found[name], defaults))


@routes("GET", "/storage/server", query=(Query("names", "Only these, separated by commas."),), auth=TOKEN, shape=many(OLD_SERVER))
async def storage_servers(request: Request) -> Response:
    """Servers of storages in a deprecated form."""
    return json_response([_server(name, data) for name, data in (await _old(request)).items()])


@routes("GET", "/storage/server/{storage}", auth=TOKEN, shape=OLD_SERVER)
async def storage_server(request: Request) -> Response:
    """The server of a storage in a deprecated form."""
    name = request.parameters["storage"]
    return json_response(_server(name, (await _old(request))[name]))


def _config(name: str, data: Mapping[str, Any], defaults: tuple[str, ...]) -> dict[str, object]:
    mount = {"mountPoint": f"/mnt/{name}", "path": "", "server": name, "permission": "ro" if data.get("readOnly") else "rw"}
    return {"name": name, "default": name in defaults, "servers": [name], "mountInfos": [mount]}


def _server(name: str, data: Mapping[str, Any]) -> dict[str, object]:
    where = {key: "******" if key in _SECRET else value for key, value in dict(data.get("data", {})).items()}
    return {"spn": name, "type": data.get("type", "unknown"), "data": where, "extension": {}}
