"""The route table as a whole: documented, and safe by default."""

from __future__ import annotations

import json
from pathlib import Path

from pailot.server.openapi import document
from pailot.server.routing import OPEN, Router
from pailot.server.table import ROUTES

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "rest-api.md"

# What needs no token at all; whoever adds to this list should be sure.
FREE = {
    ("GET", "/api/v2"),
    ("GET", "/api/v1"),
    ("GET", "/api/v2/info"),
    ("GET", "/api/v2/authn/info"),
    ("POST", "/api/v2/authn/basic/login"),
    ("GET", "/api/v2/openapi.json"),
    ("GET", "/metrics"),
    ("GET", "/healthz"),
}


def test_every_request_is_in_the_reference() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for route in ROUTES:
        if not route.hidden:
            assert f"| {route.method} `{route.path}` |" in text, f"{route.method} {route.path} is not in {PAGE.name}"


def test_all_else_needs_a_token() -> None:
    assert {(route.method, route.path) for route in ROUTES if route.auth == OPEN and not route.hidden} == FREE


def test_the_document_holds_all_of_it() -> None:
    made = json.loads(json.dumps(document(ROUTES)))
    assert len({each["operationId"] for path in made["paths"].values() for each in path.values()}) == sum(
        len(path) for path in made["paths"].values()
    )
    for route in ROUTES:
        assert route.summary, f"{route.method} {route.path} has no summary"
        if not route.hidden:
            assert route.method.lower() in made["paths"][route.path]


def test_every_route_is_found_under_all_its_spellings() -> None:
    router = Router(ROUTES)
    for route in ROUTES:
        path = route.path.replace("{", "x").replace("}", "")
        for spelling in (path, path + "/", f"/rest-server{path}"):
            assert router.find(route.method, spelling)[0].method == route.method
