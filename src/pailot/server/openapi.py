"""The OpenAPI document, made from the route table."""

from __future__ import annotations

import re

from .. import __version__
from .schemas import SCHEMAS, a
from .toolkit.routing import ADMIN, BROWSER, OPEN, READER, TOKEN_ADMIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .toolkit.routing import Route

_WHO = {
    BROWSER: " Needs a token from a login.",
    ADMIN: " For administrators, with a token from a login.",
    TOKEN_ADMIN: " For administrators.",
    READER: " Without a token where the server's setting v1_anonymous_read allows it.",
}
ERROR = a("Error")
_NUMBERS = frozenset(("attempt", "index", "taskAttempt"))


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """Everything that is not just another spelling; of a path that is shown, all methods."""
    routes = tuple(routes)
    shown = {route.path for route in routes if not route.hidden}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.path in shown:
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Pailot",
            "version": __version__,
            "description": "OpenPAI's REST API, and what Pailot adds to it.",
        },
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def _operation(route: Route) -> dict[str, object]:
    said: dict[str, object] = {
        "operationId": f"{route.handler.__name__.strip('_')}_{re.sub('[^a-z0-9]+', '_', route.path.lower()).strip('_')}"
        f"_{route.method.lower()}",
        "summary": route.summary,
        "tags": [route.tag],
        "responses": {
            **{str(status): _answer(text, route.kind, _shape(route, status)) for status, text in route.answers.items()},
            "default": _answer("What went wrong", "application/json", ERROR),
        },
    }
    if route.auth in _WHO:
        said["description"] = _WHO[route.auth].strip()
    if route.auth != OPEN:
        said["security"] = [{"bearer": []}] if route.auth != READER else [{"bearer": []}, {}]
    parameters = [{"name": name, "in": "path", "required": True, "schema": _path_schema(name)} for name in route.names]
    parameters += [
        {"name": each.name, "in": "query", "required": False, "description": each.doc, "schema": dict(each.schema)}
        for each in route.query
    ]
    if parameters:
        said["parameters"] = parameters
    if route.body is not None:
        schema = route.body.schema()
        said["requestBody"] = {"required": True, "content": {kind: {"schema": schema} for kind in route.body_kinds}}
    return said


def _shape(route: Route, status: int) -> dict[str, object]:
    return dict(route.shape) if status < 300 else ERROR


def _answer(text: str, kind: str, schema: dict[str, object] | None = None) -> dict[str, object]:
    return {"description": text, "content": {kind: {"schema": schema or {}}}}


def _path_schema(name: str) -> dict[str, object]:
    return {"type": "integer", "minimum": 0} if name in _NUMBERS else {"type": "string", "minLength": 1}
