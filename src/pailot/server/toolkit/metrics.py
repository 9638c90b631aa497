"""Figures for Prometheus, and a line in the access log for each request."""

from __future__ import annotations

import json
import sys
import time

from ...values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

    from .http import Request, Scope
    from .routing import Route

_BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


class Sample(Value):
    """One value of a figure, and the labels that tell it from the others."""

    value: float
    labels: tuple[tuple[str, str], ...] = ()


class Family(Value):
    """All samples of one figure: its name, without `pailot_`, its kind and its meaning."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]


def gauge(name: str, help: str, value: float) -> Family:
    """A figure that goes up and down, without labels."""
    return Family(name, "gauge", help, (Sample(value),))


def counter(name: str, help: str, value: float) -> Family:
    """A figure that only grows, without labels; its name ends with `_total`."""
    return Family(name, "counter", help, (Sample(value),))


class Metrics:
    """Counts requests; told as text when asked."""

    def __init__(self) -> None:
        self.started = time.time()
        self.streams = 0
        self._requests: dict[tuple[str, str, int], int] = {}
        self._durations = [0] * (len(_BOUNDS) + 1)
        self._seconds = 0.0

    def count(self, route: Route | None, method: str, status: int, seconds: float) -> None:
        key = (route.path if route else "", method if route else "", status)
        self._requests[key] = self._requests.get(key, 0) + 1
        self._seconds += seconds
        place = 0
        for bound in _BOUNDS:
            if seconds <= bound:
                break
            place += 1
        self._durations[place] += 1

    def text(self, others: Iterable[Family]) -> str:
        """Everything in Prometheus' text form."""
        requests = (
            Sample(count, (("path", path), ("method", method), ("status", str(status))))
            for (path, method, status), count in sorted(self._requests.items())
        )
        own = (
            Family("http_requests_total", "counter", "Requests that were served.", tuple(requests)),
            gauge("http_streams", "Live streams that are open now.", self.streams),
            gauge("start_time_seconds", "When the server started, in seconds since 1970.", self.started),
        )
        lines = [line for family in (*own, *others) for line in _lines(family)]
        return "\n".join([*lines, *self._histogram()]) + "\n"

    def _histogram(self) -> Iterator[str]:
        name = "pailot_http_request_duration_seconds"
        yield f"# HELP {name} How long requests took, from their head to the end of the response."
        yield f"# TYPE {name} histogram"
        total = 0
        for bound, count in zip((*_BOUNDS, "+Inf"), self._durations, strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self._seconds:.6f}"
        yield f"{name}_count {total}"


def _lines(family: Family) -> Iterator[str]:
    name = f"pailot_{family.name}"
    yield f"# HELP {name} {family.help}"
    yield f"# TYPE {name} {family.kind}"
    for sample in family.samples:
        labels = ",".join(f'{key}="{_label(value)}"' for key, value in sample.labels)
        yield f"{name}{{{labels}}} {_number(sample.value)}" if labels else f"{name} {_number(sample.value)}"


def _label(value: str) -> str:
    """A value between the quotes of a label."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    """All digits of it: `%g` would keep six, and lose what a counter counts."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


class AccessLog:
    """One line a request: when, who, what, how it went. Neither queries nor values of paths, which may be secret."""

    def __init__(self, where: str, *, as_json: bool = False) -> None:
        self._as_json = as_json
        self._stream: TextIO = (
            sys.stderr if where == "-" else open(where, "a", buffering=1, encoding="utf-8")  # noqa: SIM115  # for the server's life
        )

    def write(self, scope: Scope, route: Route | None, request: Request | None, status: int, seconds: float) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        peer = scope.get("client")
        path = "-"
        if route is not None and request is not None:
            path = route.path
            for name, value in request.parameters.items():
                if name != "token" and value.isprintable():
                    path = path.replace(f"{{{name}}}", value)
        number = request.id if request is not None else "-"
        user = request.caller.username if request is not None and request.caller.username else "-"
        address, method = peer[0] if peer else "-", scope.get("method", "GET")  # a WebSocket has none
        line = f"{now} {address} {user} {method} {path} {status} {seconds * 1e3:.1f}ms {number}"
        if self._as_json:
            told = {"time": now, "level": "info", "logger": "pailot.access", "message": "request", "request": number}
            told |= {"address": address, "user": user, "method": method, "path": path}
            line = json.dumps({**told, "status": status, "seconds": round(seconds, 6)}, separators=(",", ":"))
        try:
            self._stream.write(f"{line}\n")
        except OSError:
            pass  # a full disk must not keep the server from answering
