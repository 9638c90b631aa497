"""A real HTTP server on a port that the kernel chooses, answering as a test says."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]


class StandIn:
    """`answer(request)` answers (status, body): JSON, text or bytes; or writes to the request itself and answers None."""

    def __init__(self, answer: Callable[[Request], Answer | None], port: int = 0, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[str] = []
        self.connections = 0
        outer = self

        class Handler(Request):
            def setup(self) -> None:
                super().setup()
                outer.connections += 1

            def handle_any(self) -> None:
                outer.requests.append(f"{self.command} {self.path}")
                self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                answered = answer(self)
                if answered is not None:
                    self.answer(*answered)

        for method in ("GET", "POST", "PUT", "DELETE", "HEAD"):
            setattr(Handler, f"do_{method}", Handler.handle_any)

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # a line that breaks is what some tests want

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.port}"
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Request(BaseHTTPRequestHandler):
    """One request, and the way to answer it."""

    protocol_version = "HTTP/1.1"
    body = b""

    def answer(self, status: int, body: Any = None, **headers: str) -> None:
        data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        data = b"" if body is None else data
        self.send_response(status)
        if not isinstance(body, (str, bytes)):
            self.send_header("Content-Type", "application/json")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def begin_events(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass
