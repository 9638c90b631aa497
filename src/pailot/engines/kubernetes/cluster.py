"""The only module that sends requests to a cluster's API: objects, watches, logs and commands in pods.

Each thread has a connection of its own. One that the API closed while it was idle is made anew, once; a busy API is asked
again after a pause. What else goes wrong is an `ApiError`, or `Unreachable` where there is no response at all.
"""

from __future__ import annotations

import json
import os
import threading
import time
from http.client import HTTPException  # noqa: TID253  # loaded only to speak to a cluster
from urllib.parse import quote, urlencode

from ...printable import cut, printable
from ...values import Value
from ..contract import EngineError, Unreachable
from .exec_stream import ExecStream
from .kubeconfig import find_access
from .versions import check_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from http.client import HTTPConnection, HTTPResponse
    from typing import Any

    from ...runtime.kubernetes.access import Access
    from ...settings import Settings

SECONDS = 30.0
"""How long the API may take for one response."""
WATCH_SECONDS = 240
SILENCE_SECONDS = 120.0
"""The API says something on each watch at least once a minute (bookmarks)."""
PAGE = 500
TURNS = 5
CORE, BATCH = "/api/v1", "/apis/batch/v1"
LONGEST_MESSAGE = 500


class ApiError(EngineError):
    """The API refuses something; its own words are in the message."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class PodEvent(Value):
    """One word of a watch: ADDED, MODIFIED or DELETED, and the object; or the mark up to which all was told."""

    kind: str
    item: Mapping[str, Any]


class Cluster:
    """One namespace of one cluster."""

    def __init__(self, access: Access, namespace: str = "") -> None:
        self.access = access
        self.namespace = namespace or access.namespace
        self._own = threading.local()

    @classmethod
    def of_settings(cls, settings: Settings, namespace: str = "", context: str = "") -> Cluster:
        """The cluster that the settings and the kubeconfig name, or a run's record."""
        access = find_access(os.environ, context=context or settings["kubernetes_context"])
        return cls(access, namespace or settings["kubernetes_namespace"])

    def check(self) -> tuple[int, int]:
        """Refuse a cluster that is too old, or is none; returns its version."""
        return check_version(str(self.get("/version").get("gitVersion", "")))

    # Objects

    def path(self, kind: str, name: str = "", group: str = CORE) -> str:
        return f"{group}/namespaces/{quote(self.namespace)}/{kind}" + (f"/{quote(name)}" if name else "")

    def get(self, path: str, **query: str) -> dict[str, Any]:
        return self.send("GET", f"{path}?{urlencode(query)}" if query else path)

    def listed(self, path: str, selector: str) -> tuple[list[dict[str, Any]], str]:
        """All objects with these labels, page after page, and the version from which a watch goes on."""
        found: list[dict[str, Any]] = []
        more = ""
        while True:
            page = self.get(path, labelSelector=selector, limit=str(PAGE), **({"continue": more} if more else {}))
            found += page.get("items") or []
            more = page["metadata"].get("continue") or ""
            if not more:
                return found, str(page["metadata"]["resourceVersion"])

    def create(self, path: str, made: Mapping[str, Any]) -> dict[str, Any]:
        """Make an object; one of its name is ours already, since names are."""
        try:
            return self.send("POST", path, made)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            return self.get(f"{path}/{made['metadata']['name']}")

    def merge(self, path: str, change: Mapping[str, Any]) -> dict[str, Any]:
        return self.send("PATCH", path, change, "application/merge-patch+json")

    def set_annotation(self, path: str, name: str, value: str) -> bool:
        """Give an annotation its first value; returns False where it has one already, or the object is gone."""
        where = "/metadata/annotations/" + name.replace("~", "~0").replace("/", "~1")
        steps = [{"op": "test", "path": where, "value": ""}, {"op": "replace", "path": where, "value": value}]
        try:
            self.send("PATCH", path, steps, "application/json-patch+json")
        except ApiError as error:
            if error.status in (404, 422):
                return False
            raise
        return True

    def delete(self, path: str) -> None:
        """Remove an object and, in the background, all that it owns; what is gone already is fine."""
        try:
            self.send("DELETE", path, {"propagationPolicy": "Background"})
        except ApiError as error:
            if error.status != 404:
                raise

    def watch(self, path: str, selector: str, version: str) -> Iterator[PodEvent]:
        """What happens to objects from a version on. The end of this says nothing; a version that is too old is an ApiError."""
        query = urlencode(
            {
                "watch": "1",
                "labelSelector": selector,
                "resourceVersion": version,
                "allowWatchBookmarks": "1",
                "timeoutSeconds": str(WATCH_SECONDS),
            }
        )
        connection = self._connect(SILENCE_SECONDS)
        try:
            response = self._begin(connection, "GET", f"{path}?{query}")
            for line in response:
                told = json.loads(line)
                if told["type"] == "ERROR":
                    raise _refused(int(told["object"].get("code", 500)), told["object"])
                yield PodEvent(told["type"], told["object"])
        except (OSError, HTTPException, ValueError):
            return  # cut off; the caller goes on from the last version
        finally:
            connection.close()

    # Pods

    def log(self, pod: str, container: str, **query: str) -> bytes:
        """What the node still has of the output of a container, byte by byte."""
        connection = self._connect(SECONDS)
        try:
            path = f"{self.path('pods', pod)}/log?{urlencode({'container': container, **query})}"
            return self._begin(connection, "GET", path).read()
        except (OSError, HTTPException) as error:
            raise self._away(error) from None
        finally:
            connection.close()

    def run_in(
        self, pod: str, container: str, words: Sequence[str], *, terminal: bool = False, seconds: float = SECONDS
    ) -> ExecStream:
        """A command in a container, whose streams are ours."""
        query = [("container", container), ("stdin", "1"), ("stdout", "1")]
        query += [("tty", "1")] if terminal else [("stderr", "1")]
        query += [("command", word) for word in words]
        return self._stream(f"{self.path('pods', pod)}/exec?{urlencode(query)}", seconds)

    def dial(self, pod: str, port: int, seconds: float = SECONDS) -> ExecStream:
        """A connection to a port of a pod."""
        return self._stream(f"{self.path('pods', pod)}/portforward?{urlencode({'ports': port})}", seconds)

    def _stream(self, path: str, seconds: float) -> ExecStream:
        connection = self._connect(seconds)
        try:
            return ExecStream.opened(connection, path, self._problem)
        except (OSError, HTTPException) as error:
            connection.close()
            raise self._away(error) from None
        except BaseException:
            connection.close()
            raise

    # Requests

    def send(
        self, method: str, path: str, body: object = None, kind: str = "application/json", seconds: float = SECONDS
    ) -> dict[str, Any]:
        """One request; a busy API is asked again, and one that closed the connection as well."""
        data = None if body is None else json.dumps(body).encode()
        for turn in range(TURNS):
            kept = getattr(self._own, "connection", None)
            try:
                connection = kept or self._connect(seconds)
                self._own.connection = connection
                connection.request(method, path, data, {"Content-Type": kind, "Accept": "application/json"})
                response = connection.getresponse()
                text = response.read()
            except (OSError, HTTPException) as error:
                self.close()
                if kept is not None:
                    continue  # it was closed while it was idle
                raise self._away(error) from None
            if response.status == 401 and not turn and self.access.login.renew():
                self.close()
            elif response.status in (429, 503) and turn < TURNS - 1:
                time.sleep(min(10.0, float(response.headers.get("Retry-After") or 2**turn / 4)))
            elif response.status >= 400:
                raise self._problem(response.status, text)
            else:
                found: dict[str, Any] = json.loads(text)
                return found
        raise Unreachable(f"the API of the cluster ({self.access.server}) is too busy")

    def close(self) -> None:
        """End the connection of this thread."""
        connection: HTTPConnection | None = getattr(self._own, "connection", None)
        self._own.connection = None
        if connection is not None:
            connection.close()

    def _connect(self, seconds: float) -> HTTPConnection:
        try:
            return self.access.connect(seconds)
        except OSError as error:
            raise self._away(error) from None

    def _begin(self, connection: HTTPConnection, method: str, path: str) -> HTTPResponse:
        connection.request(method, path, headers={"Accept": "*/*"})
        response = connection.getresponse()
        if response.status >= 400:
            raise self._problem(response.status, response.read())
        return response

    def _away(self, error: Exception) -> Unreachable:
        words = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return Unreachable(f"the API of the cluster ({self.access.server}) cannot be reached: {words}")

    def _problem(self, status: int, text: bytes) -> ApiError:
        try:
            said = json.loads(text)
        except ValueError:
            said = {"message": text.decode("utf-8", "replace")}
        return _refused(status, said if isinstance(said, dict) else {})


def _refused(status: int, said: Mapping[str, Any]) -> ApiError:
    message = printable(cut(str(said.get("message") or f"status {status}"), LONGEST_MESSAGE))
    return ApiError(status, str(said.get("reason") or ""), f"the cluster refuses it: {message}")
