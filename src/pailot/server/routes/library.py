"""The library: prerequisites, data sets and job templates that all users of the server share."""

from __future__ import annotations

from ...library.entries import MOST_CHARACTERS
from ...protocol.problems import InvalidJob
from ...protocol.schema_types import Text
from ..schemas import MESSAGE, SWITCH, TEXT, WHOLE, a, many, maybe, record
from ..toolkit.errors import HttpError
from ..toolkit.http import json_response
from ..toolkit.routing import Query, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...jobserver.team_library import Shown
    from ..toolkit.http import Request, Response

routes = Routes("library")
MOST_LISTED = 200
_FILE = Text("A prerequisite or a job template.")
_KINDS = ("text/yaml", "text/plain")
_SHOWN = {"allOf": [a("LibraryEntry"), record(text=TEXT, mayChange=SWITCH, content=many(a("LibraryContent")))]}
_PUT_QUERY = (
    Query("replace", "Replace this version if it is there.", {"type": "boolean"}),
    Query("owner", "The user who may change it; named by administrators."),
)
_CHECKED = record(problems=many(a("Problem")), name=maybe(TEXT), version=maybe(TEXT), type=maybe(TEXT))


@routes(
    "GET",
    "/library",
    query=(
        Query("q", "Words that all stand in the name, description, owner or addresses."),
        Query("type", "Only entries of this type: data, dockerimage, job, output or script."),
        Query("offset", "How many to leave out.", {"type": "integer"}),
        Query("limit", f"At most this many, {MOST_LISTED} at most.", {"type": "integer"}),
    ),
    shape=record(totalCount=WHOLE, mayAdd=SWITCH, data=many(a("LibraryEntry"))),
)
async def library(request: Request) -> Response:
    """What the library holds: of each name the newest version, by name."""
    caller = request.caller.must()
    offset, limit = request.number("offset", 0), request.number("limit", 50, 1, MOST_LISTED)
    shelf = request.site.team.library
    found = await request.site.call(shelf.entries, request.query.get("q", ""), request.query.get("type", ""))
    data = [{**kept.to_json(), "versions": list(versions)} for kept, versions in found[offset : offset + limit]]
    return json_response({"totalCount": len(found), "mayAdd": shelf.may_change(caller, ""), "data": data})


@routes("GET", "/library/{name}", shape=_SHOWN)
async def library_entry(request: Request) -> Response:
    """An entry with its text; of several versions the newest. A data set with where its content lies."""
    return await _entry(request)


@routes("GET", "/library/{name}/{version}", shape=_SHOWN)
async def library_version(request: Request) -> Response:
    """One version of an entry, with its text."""
    return await _entry(request)


async def _entry(request: Request) -> Response:
    shelf, name = request.site.team.library, request.parameters["name"]
    shown: Shown = await request.site.call(shelf.get, name, request.parameters.get("version", ""))
    body: dict[str, Any] = {
        **shown.kept.to_json(),
        "versions": list(shown.versions),
        "text": shown.text,
        "mayChange": shown.kept.source == "server" and shelf.may_change(request.caller.must(), name),
        "content": await request.site.call(request.site.team.data_content, shown.kept.entry),
    }
    return json_response(body)


@routes("POST", "/library/validate", limit="check", body=_FILE, body_kinds=_KINDS, shape=_CHECKED)
async def validate_entry(request: Request) -> Response:
    """Everything that is wrong with a file for the library; nothing is kept."""
    caller, text, team = request.caller.must(), await request.text(4 * MOST_CHARACTERS), request.site.team
    try:
        entry = await team.reading.read(caller.name, lambda: team.library.check(text))
    except InvalidJob as error:
        problems = [each.to_marks() for each in error.problems]
        return json_response({"problems": problems, "name": None, "version": None, "type": None})
    return json_response({"problems": [], "name": entry.name, "version": entry.version, "type": entry.type})


@routes(
    "PUT",
    "/library/{name}",
    body=_FILE,
    body_kinds=_KINDS,
    query=_PUT_QUERY,
    answers={200: "It is replaced", 201: "It is kept"},
    shape=a("LibraryEntry"),
)
async def put_library_entry(request: Request) -> Response:
    """Keep a file under its name and the version that it names. For administrators and the owner of the name."""
    return await _put(request)


@routes(
    "PUT",
    "/library/{name}/{version}",
    body=_FILE,
    body_kinds=_KINDS,
    query=_PUT_QUERY,
    answers={200: "It is replaced", 201: "It is kept"},
    shape=a("LibraryEntry"),
)
async def put_library_version(request: Request) -> Response:
    """The same for one version, which has to be the file's."""
    return await _put(request)


async def _put(request: Request) -> Response:
    caller, asked = request.caller.must(), request.parameters
    text = await request.text(4 * MOST_CHARACTERS)
    if not text.strip():
        raise HttpError(400, "InvalidProtocolError", "the body is empty; it should be a file for the library")
    kept, new = await request.site.call(
        request.site.team.library.put,
        caller,
        asked["name"],
        asked.get("version", ""),
        text,
        replace=request.flag("replace"),
        owner=request.query.get("owner", ""),
    )
    return json_response({**kept.to_json(), "versions": [kept.entry.version]}, 201 if new else 200)


@routes("DELETE", "/library/{name}", shape=MESSAGE)
async def remove_library_entry(request: Request) -> Response:
    """Remove a name with all its versions. Jobs that were submitted with it are not touched."""
    return await _remove(request)


@routes("DELETE", "/library/{name}/{version}", shape=MESSAGE)
async def remove_library_version(request: Request) -> Response:
    """Remove one version."""
    return await _remove(request)


async def _remove(request: Request) -> Response:
    caller, asked = request.caller.must(), request.parameters
    name, version = asked["name"], asked.get("version", "")
    count = await request.site.call(request.site.team.library.remove, caller, name, version)
    words = f"{name}@{version}" if version else f"{name} ({count} versions)" if count > 1 else name
    return json_response({"message": f"{words} is removed from the library."})
