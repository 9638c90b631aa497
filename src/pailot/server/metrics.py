"""Figures for Prometheus, and a line in the access log for each request."""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from .http import Request, Scope
    from .routing import Route

_BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


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
        for name, value in {**own, **figures}.items():
            plain = name.partition("{")[0]
            kind = "counter" if plain.endswith("_total") else "gauge"
            header = f"# TYPE pailot_{plain} {kind}"
            if header not in lines:
                lines.append(header)
            lines.append(f"pailot_{name} {value:g}")
        return "\n".join(lines) + "\n"


class AccessLog:
    """One line a request: when, who, what, how it went. Neither queries nor values of paths, which may be secret."""

    def __init__(self, where: str) -> None:
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
        user = request.caller.username if request is not None and request.caller.username else "-"
        try:
            self._stream.write(
                f"{now} {peer[0] if peer else '-'} {user} {scope['method']} {path} {status} {seconds * 1e3:.1f}ms\n"
            )
        except OSError:
            pass  # a full disk must not keep the server from answering
