"""Figures for Prometheus, and a line in the access log for each request."""

from __future__ import annotations

import json
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from .http import Request, Scope
    from .routing import Route

_BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
_MEANINGS = {
    "http_streams": "Live streams that are open now.",
    "start_time_seconds": "When the server started, in seconds since 1970.",
    "jobs": "Jobs that are not over, by their state.",
    "queue_length": "Jobs that wait for their turn.",
    "submitted_total": "Jobs taken since the start.",
    "started_total": "Starts of jobs since then.",
    "ended_total": "Jobs that ended since then.",
    "preempted_total": "Jobs that made room for others since then.",
    "platform_retries_total": "Jobs tried again after a failure that was not theirs.",
    "keepers_replaced_total": "Keeper processes that had to be replaced.",
    "resources": "What there is for jobs, by resource: cpu, memory_mb, gpu.",
    "resources_used": "What jobs hold of it.",
    "virtual_cluster_used": "What the jobs of a virtual cluster hold, by resource.",
    "alerts": "Alerts that are firing, by name.",
}


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

    def text(self, figures: Mapping[str, float]) -> str:
        """Everything in Prometheus' text form."""
        lines = ["# HELP pailot_http_requests_total Requests answered.", "# TYPE pailot_http_requests_total counter"]
        for (path, method, status), count in sorted(self._requests.items()):
            lines.append(f'pailot_http_requests_total{{path="{path}",method="{method}",status="{status}"}} {count}')
        lines += [
            "# HELP pailot_http_request_seconds Time to answer.",
            "# TYPE pailot_http_request_seconds histogram",
        ]
        total = 0
        for bound, count in zip((*_BOUNDS, "+Inf"), self._durations, strict=True):
            total += count
            lines.append(f'pailot_http_request_seconds_bucket{{le="{bound}"}} {total}')
        lines += [f"pailot_http_request_seconds_sum {self._seconds:.6f}", f"pailot_http_request_seconds_count {total}"]
        own = {"http_streams": self.streams, "start_time_seconds": self.started}
        families: dict[str, list[str]] = {}
        for name, value in {**own, **figures}.items():
            families.setdefault(name.partition("{")[0], []).append(f"pailot_{name} {_number(value)}")
        for name, samples in families.items():  # all of one name together, as the format wants it
            lines.append(f"# HELP pailot_{name} {_MEANINGS.get(name, name.replace('_', ' ').capitalize() + '.')}")
            lines.append(f"# TYPE pailot_{name} {'counter' if name.endswith('_total') else 'gauge'}")
            lines += samples
        return "\n".join(lines) + "\n"


def label(value: str) -> str:
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
