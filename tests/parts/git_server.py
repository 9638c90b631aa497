"""A git server that wants a login: git's own http-backend behind an HTTP server."""

from __future__ import annotations

import os
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


class GitServer:
    """Serves the repositories in a folder; looks at all command lines of the machine while it is asked."""

    def __init__(self, folder: Path, user: str, password: str) -> None:
        self.folder = folder
        self.login = f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"
        self.url = ""
        self.command_lines: set[bytes] = set()

    def look(self) -> None:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                self.command_lines.add((process / "cmdline").read_bytes())
            except OSError:
                continue  # it has ended

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.look()
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        if request.headers.get("Authorization") != self.login:
            request.send_response(401)
            request.send_header("WWW-Authenticate", "Basic realm=git")
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        path, _, query = request.path.partition("?")
        environment = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": request.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": request.headers.get("Content-Type") or "",
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding") or "",
            "GIT_PROTOCOL": request.headers.get("Git-Protocol") or "",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        done = subprocess.run(["git", "http-backend"], env=environment, input=body, capture_output=True, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        request.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(content)


@contextmanager
def git_server(folder: Path, user: str, password: str) -> Iterator[GitServer]:
    made = GitServer(folder, user, password)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.answer(self)

        def do_POST(self) -> None:
            made.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, daemon=True).start()
        yield made
        server.shutdown()
