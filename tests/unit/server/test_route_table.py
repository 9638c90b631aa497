"""The route table as a whole: documented, and safe by default."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs

from pailot.server.openapi import document
from pailot.server.route_table import ROUTES
from pailot.server.toolkit.routing import OPEN, Router

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "rest-api.md"

# What needs no token at all; whoever adds to this list should be sure.
FREE = {
    ("GET", "/api/v2"),
    ("GET", "/api/v1"),
    ("GET", "/api/v2/info"),
    ("GET", "/api/v2/authn/info"),
    ("POST", "/api/v2/authn/basic/login"),
    ("POST", "/api/v2/session"),
    ("GET", "/api/v2/authn/oidc/login"),
    ("GET", "/api/v2/authn/oidc/return"),
    ("GET", "/api/v2/authn/oidc/logout"),
    ("POST", "/api/v2/authn/oidc/token"),
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


def test_the_document_is_sound() -> None:
    """Each reference leads somewhere, each schema is one, each parameter of a path is told, and each path is another."""
    made = json.loads(json.dumps(document(ROUTES)))
    assert set(made) == {"openapi", "info", "paths", "components"}
    shapes = made["components"]["schemas"]
    used: set[str] = set()

    def sound(schema: dict[str, Any]) -> None:
        used.update(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema)))
        jsonschema_rs.meta.validate({**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"})

    for schema in shapes.values():
        sound(schema)
    assert len({re.sub(r"\{\w+\}", "{}", path) for path in made["paths"]}) == len(made["paths"])
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            told = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"]
            assert sorted(told) == sorted(re.findall(r"\{(\w+)\}", path)), path
            assert len({(each["in"], each["name"]) for each in operation.get("parameters", ())}) == len(
                operation.get("parameters", ())
            )
            assert operation["summary"].endswith("."), path
            assert "default" in operation["responses"]
            for answer in operation["responses"].values():
                for kind, content in answer["content"].items():
                    sound(content["schema"])
                    # Whoever makes a client from the document learns what comes back.
                    assert content["schema"] or kind != "application/json" or method == "head", f"{method} {path}"
            for content in operation.get("requestBody", {}).get("content", {}).values():
                sound(content["schema"])
    assert used == set(shapes)


def test_every_route_is_found_under_all_its_spellings() -> None:
    router = Router(ROUTES)
    for route in ROUTES:
        path = route.path.replace("{", "x").replace("}", "")
        for spelling in (path, path + "/", f"/rest-server{path}"):
            assert router.find(route.method, spelling)[0].method == route.method
