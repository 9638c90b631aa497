"""A real registry of images that wants a password."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType

import pytest

from .containers import Docker

CONFIG = """\
version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}/images}}}}
http: {{addr: 127.0.0.1:{port}}}
auth: {{htpasswd: {{realm: test, path: {folder}/passwords}}}}
log: {{level: error}}
"""


class Registry:
    """Started by `with`; engines reach it at `address` without TLS, as they do everything on localhost."""

    def __init__(self, folder: Path, user: str, password: str) -> None:
        if shutil.which("docker-registry") is None or (shutil.which("htpasswd") is None and not _can_hash()):
            pytest.skip("docker-registry is missing; enable this test with: sudo apt-get install docker-registry")
        self.folder = folder / "registry"
        self.folder.mkdir()
        self.user, self.password = user, password
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"

    def __enter__(self) -> Registry:
        (self.folder / "passwords").write_text(f"{self.user}:{_bcrypt(self.password)}\n")
        config = self.folder / "config.yml"
        config.write_text(CONFIG.format(folder=self.folder, port=self.port))
        self.log = (self.folder / "log").open("wb")
        self.process = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=self.log, stderr=self.log)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            except OSError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.02)
        raise AssertionError("the registry does not answer")

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()

    def push(self, engine: Docker, image: str, name: str) -> None:
        """Bring an image there, by another way than the one under test."""
        engine.run("tag", image, name)
        folder = self.folder / "client"
        folder.mkdir(exist_ok=True)
        token = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        (folder / "config.json").write_text(json.dumps({"auths": {self.address: {"auth": token}}}))
        podman = engine.program == "podman"
        more = ["--tls-verify=false", "--authfile", str(folder / "config.json")] if podman else []
        subprocess.run(
            [engine.program, "push", *more, name],
            env=os.environ | engine.environment | {"DOCKER_CONFIG": str(folder)},
            check=True,
            capture_output=True,
        )

    def trusted(self, engine: Docker) -> dict[str, str]:
        """Variables with which the engine talks to it without TLS; Docker does so with localhost anyway."""
        if engine.program != "podman":
            return {}
        path = self.folder / "registries.conf"
        path.write_text(f'[[registry]]\nlocation = "{self.address}"\ninsecure = true\n')
        return {"CONTAINERS_REGISTRIES_CONF": str(path)}


def _can_hash() -> bool:
    return bool(_bcrypt("x"))


def _bcrypt(password: str) -> str:
    """The only kind of hash that the registry takes; the system's own library makes it."""
    import ctypes
    import ctypes.util

    library = ctypes.CDLL(ctypes.util.find_library("crypt") or "libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    salt = "$2b$05$" + base64.b64encode(os.urandom(17)).decode().replace("+", ".").replace("=", "")[:22]
    hashed: bytes | None = library.crypt(password.encode(), salt.encode())
    return hashed.decode() if hashed and hashed.startswith(b"$2b$") else ""
