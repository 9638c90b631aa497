"""Our answers beside the API document that OpenPAI published: every request in it, its answers by its schemas."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from ..support.http_server import PASSWORD, Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
LOGS = "/attempts/{jobAttemptId}/taskRoles/{taskRoleName}/taskIndex/{taskIndex}/attempts"
VALUES = {"user": "admin", "job": "shown", "jobAttemptId": "0", "taskRoleName": "main", "taskIndex": "0", "taskAttemptId": "0"}
VALUES |= {"attemptIndex": "0", "vc": "default", "storage": "disk", "group": "default"}

# What the document says and OpenPAI's own server does not do: there we go with the server.
KNOWN = tuple(
    re.compile(each)
    for each in (
        r".* 20\d: lacks \.code",  # one shape for all messages; a good one has no code
        r".* (lacks .*\.hived)",  # only where the scheduler is HiveD
        r".* lacks \.(secretName|mountOptions)",  # only where a storage has them
        r".* lacks .*\.totalTasknumber",  # misspelt: totalTaskNumber
        r".* lacks .*\.taskRoles\.taskrole",  # stands for any name
        r".* lacks .*\.protocolVersion",  # never sent
        r".*\['code'\]: \"(NoStorage|NoTag|NoTaskLog|InvalidProtocol)Error\" is not one of .*",  # left out of the list
        r".*'appExitMessages', 'runtime'\]: \{.* is not of types .*",  # an object, as the web portal reads it
        r".*'exitDiagnostics', 'launcher'\]: null is not .*",  # null where the runtime has told
    )
)
OTHER_STATUS = {
    ("DELETE", "/api/v2/groups/{group}", 200): "201",
    ("GET", "/api/v2/users/{user}", 400): "404",
    ("GET", "/api/v2/groups/{group}", 400): "404",
}


class Published:
    """The document, with its schemas in the form that a validator reads."""

    def __init__(self, folder: Path) -> None:
        self.document = _modern(yaml.safe_load((folder / "swagger.yaml").read_text()))
        shapes = self.document["components"]["schemas"]
        for name, shape in shapes.items():
            if shape.get("$ref", "#")[:1] != "#":  # in another file: the job file, which has tests of its own
                shapes[name] = {}
        self.seen: set[tuple[str, str]] = set()
        self.differences: list[str] = []

    def resolved(self, value: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in value:
            found: Any = self.document
            for part in value["$ref"][2:].split("/"):
                found = found[part]
            value = found
        return value

    def look(self, method: str, path: str, status: int, kind: str, body: bytes) -> None:
        """Notes where the answer is not one that the document has."""
        self.seen.add((method, path))
        told = [f"{method} {path} {status}: {each}" for each in self._differences(method, path, status, kind, body)]
        self.differences += [each for each in told if not any(known.fullmatch(each) for known in KNOWN)]

    def _differences(self, method: str, path: str, status: int, kind: str, body: bytes) -> Iterator[str]:
        answers = self.document["paths"][path][method.lower()]["responses"]
        told = OTHER_STATUS.get((method, path, status), str(status))
        if told not in answers:
            yield "not in the document"
            return
        content = self.resolved(answers[told]).get("content", {})
        if not content:
            return
        said = content.get(kind.partition(";")[0])
        if said is None:
            yield f"is {kind}"
            return
        if "schema" not in said:
            return
        value = json.loads(body)
        whole = {**said["schema"], "components": self.document["components"]}
        yield from (f"{each.instance_path}: {each.message}" for each in jsonschema_rs.iter_errors(whole, value))
        yield from (f"lacks {name}" for name in self.missing(said["schema"], value, ""))

    def missing(self, schema: dict[str, Any], value: Any, where: str) -> Iterator[str]:
        """Properties that the document has and the answer has not."""
        schema = self.resolved(schema)
        for each in schema.get("allOf", ()):
            yield from self.missing(each, value, where)
        if isinstance(value, dict):
            for name, below in schema.get("properties", {}).items():
                if name in value:
                    yield from self.missing(below, value[name], f"{where}.{name}")
                else:
                    yield f"{where}.{name}"
            more = schema.get("additionalProperties")
            if isinstance(more, dict):
                for name in value.keys() - schema.get("properties", {}).keys():
                    yield from self.missing(more, value[name], f"{where}.{name}")
        elif isinstance(value, list) and "items" in schema:
            for each in value[:3]:
                yield from self.missing(schema["items"], each, f"{where}[]")


def _modern(value: Any) -> Any:
    """OpenAPI 3.0's `nullable` as the type that JSON Schema has for it; examples may hold anything, and go."""
    if isinstance(value, list):
        return [_modern(each) for each in value]
    if not isinstance(value, dict):
        return value
    made = {key: _modern(each) for key, each in value.items() if key not in ("example", "examples", "nullable")}
    if value.get("nullable") is True:
        if "type" in made:
            made["type"] = [made["type"], "null"]
            if "enum" in made:
                made["enum"] = [*made["enum"], None]
        else:
            return {"anyOf": [made, {"type": "null"}]}
    return made


@pytest.fixture(scope="module")
def published() -> Published:
    folder = ROOT.parent / "shared" / "openpai"
    if not folder.is_dir():
        pytest.skip("OpenPAI's API document is not beside this checkout")
    return Published(folder)


@pytest.fixture(scope="module")
def server(published: Published) -> Iterator[Server]:
    with Server(None, "--stop-jobs") as started:
        started.ask("PUT", "/storages/disk", {"type": "nfs", "data": {"server": "s", "path": "/p"}})
        started.run(job("shown", "echo before; exit 3", retries=1))
        started.ask("PUT", "/jobs/admin~shown/tag", {"value": "t"})
        yield started


def test_every_request_of_the_document(server: Server, published: Published) -> None:
    plain = server.user("plain")

    def ask(
        method: str, path: str, status: int, body: Any = None, bearer: str | None = "", query: str = "", **values: str
    ) -> Any:
        kind = "text/yaml" if isinstance(body, str) and not body.startswith("username=") else ""
        kind = "application/x-www-form-urlencoded" if isinstance(body, str) and not kind else kind
        answer = server.ask(method, path.format(**VALUES | values) + query, body, bearer, kind=kind)
        assert answer.status == status, (method, path, answer)
        published.look(method, path, answer.status, answer.headers["content-type"] or "", answer.body)
        return answer

    api = "/api/v2"
    ask("GET", f"{api}/info", 200, bearer=None)
    login = ask("POST", f"{api}/authn/basic/login", 200, f"username=admin&password={PASSWORD}&expiration=4000", None)
    ask("POST", f"{api}/authn/basic/login", 400, "username=admin&password=wrong-one", None)
    ask("GET", f"{api}/tokens", 200)
    ask("GET", f"{api}/tokens", 401, bearer=None)
    made = ask("POST", f"{api}/tokens/application", 200).json["token"]
    ask("DELETE", f"{api}/tokens/{{token}}", 403, bearer=plain, token=made)
    ask("DELETE", f"{api}/tokens/{{token}}", 200, token=made)
    ask("DELETE", f"{api}/authn/basic/logout", 200, bearer=login.json["token"])
    user = {
        "username": "pub",
        "password": PASSWORD,
        "email": "p@x.org",
        "virtualCluster": ["default"],
        "admin": False,
        "extension": {},
    }
    ask("POST", f"{api}/users", 201, user)
    ask("POST", f"{api}/users", 409, user)
    ask("POST", f"{api}/users", 403, user, plain)
    ask("GET", f"{api}/users", 200)
    ask("PUT", f"{api}/users", 201, {"data": {"username": "pub", "email": "q@x.org"}, "patch": True})
    ask("PUT", f"{api}/users", 404, {"data": {"username": "nobody", "email": "q@x.org"}, "patch": True})
    ask("PUT", f"{api}/users/me", 201, {"data": {"username": "plain", "email": "q@x.org"}, "patch": True}, plain)
    ask("GET", f"{api}/users/{{user}}", 200, user="pub")
    ask("GET", f"{api}/users/{{user}}", 400, user="nobody")
    ask("POST", f"{api}/groups", 201, {"groupname": "pubs", "description": "d", "externalName": "e", "extension": {}})
    ask("PUT", f"{api}/users/{{user}}/group/", 201, {"groupname": "pubs"}, user="pub")
    ask("GET", f"{api}/groups/{{group}}/userlist", 200, group="pubs")
    ask("DELETE", f"{api}/users/{{user}}/group/", 201, {"groupname": "pubs"}, user="pub")
    ask("PUT", f"{api}/users/{{user}}/grouplist/", 201, {"grouplist": ["default", "pubs"]}, user="pub")
    ask("PUT", f"{api}/users/{{user}}/grouplist/", 404, {"grouplist": ["none"]}, user="pub")
    ask("GET", f"{api}/groups", 200)
    ask("PUT", f"{api}/groups", 201, {"data": {"groupname": "pubs", "description": "x"}, "patch": True})
    ask("GET", f"{api}/groups/{{group}}", 200)
    ask("GET", f"{api}/groups/{{group}}", 400, group="none")
    ask("DELETE", f"{api}/groups/{{group}}", 200, group="pubs")
    ask("DELETE", f"{api}/users/{{user}}", 403)
    ask("DELETE", f"{api}/users/{{user}}", 200, user="pub")
    ask("DELETE", f"{api}/users/{{user}}", 404, user="pub")
    ask("GET", f"{api}/virtual-clusters", 200)
    ask("GET", f"{api}/virtual-clusters/{{vc}}", 200)
    ask("GET", f"{api}/virtual-clusters/{{vc}}", 404, vc="none")
    ask("GET", f"{api}/storages", 200)
    ask("GET", f"{api}/storages/{{storage}}", 200)
    ask("GET", f"{api}/storages/{{storage}}", 404, storage="none")
    ask("GET", f"{api}/storages/{{storage}}", 403, bearer=plain)
    one = f"{api}/jobs/{{user}}~{{job}}"
    ask("POST", f"{api}/jobs", 202, job("sent", "true"))
    server.wait("sent")
    ask("POST", f"{api}/jobs", 409, job("sent", "true"))
    ask("POST", f"{api}/jobs", 403, job("elsewhere", "true", more="defaults: {virtualCluster: none}"))
    ask("GET", f"{api}/jobs", 200)
    ask("GET", one, 200)
    ask("GET", one, 404, job="none")
    ask("GET", one + "/attempts/{jobAttemptId}", 200)
    ask("GET", one + "/attempts/{jobAttemptId}", 404, jobAttemptId="7")
    ask("GET", one + "/config", 200)
    ask("GET", one + "/config", 404, job="none")
    ask("PUT", one + "/executionType", 202, {"value": "STOP"})
    ask("PUT", one + "/executionType", 404, {"value": "STOP"}, job="none")
    ask("PUT", one + "/tag", 200, {"value": "u"})
    ask("DELETE", one + "/tag", 200, {"value": "u"})
    ask("DELETE", one + "/tag", 404, {"value": "u"})
    ask("GET", one + "/events", 200)
    ask("GET", one + "/events", 404, job="none")
    ask("GET", one + "/job-attempts/healthz", 200)
    ask("GET", one + "/job-attempts", 200)
    ask("GET", one + "/job-attempts/{attemptIndex}", 200)
    ask("GET", one + "/job-attempts/{attemptIndex}", 404, attemptIndex="7")
    ask("GET", one + LOGS, 200)
    ask("GET", one + LOGS, 404, taskIndex="9")
    ask("GET", one + LOGS + "/{taskAttemptId}/logs", 200, query="?tailMode=true")
    ask("GET", one + LOGS + "/{taskAttemptId}/logs", 404, taskAttemptId="9")
    ask("GET", f"{api}/kubernetes/nodes", 200)
    ask("GET", f"{api}/kubernetes/pods", 200)
    ask("GET", f"{api}/kubernetes/pods", 403, bearer=plain)
    ask("GET", f"{api}/alerts", 200)
    oidc = {("GET", f"{api}/authn/oidc/login"), ("GET", f"{api}/authn/oidc/logout")}  # needs an identity provider: test_oidc
    every = {
        (method.upper(), path)
        for path, methods in published.document["paths"].items()
        for method in methods
        if method != "parameters"
    }
    assert published.seen == every - oidc
    assert not published.differences, "\n".join(published.differences)
