"""A real PostgreSQL for tests: its own cluster in a temporary folder, on a Unix socket, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path

ENABLE = "install PostgreSQL: sudo apt-get install postgresql"


def programs() -> Path | None:
    """The folder with initdb and postgres; Debian keeps them off the PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = debian[-1] if debian else Path(shutil.which("initdb") or "")
    return found.parent if (found.parent / "postgres").exists() else None


class Postgres:
    """Running between `start` and `stop`; `new_url` answers an empty database."""

    def __init__(self, bin: Path) -> None:
        self.bin = bin
        self.folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # the path of a socket is short
        self.numbers = count(1)
        self.user: str | None = None
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            names = {entry.pw_name for entry in pwd.getpwall()}
            self.user = "postgres" if "postgres" in names else "nobody"
            shutil.chown(self.folder, self.user)

    def run(self, *command: str | Path) -> None:
        done = subprocess.run(command, capture_output=True, text=True, user=self.user, cwd=self.folder, check=False)
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {done.stdout}{done.stderr}")

    def start(self) -> None:
        data = self.folder / "data"
        if not data.exists():
            self.run(self.bin / "initdb", "-D", data, "-U", "pailot", "--encoding=UTF8", "--locale=C", "--no-sync", "-A", "trust")
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off -c max_connections=60"
        log = self.folder / "log"
        self.run(self.bin / "pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "-t", "120", "start")

    def stop(self) -> None:
        self.run(self.bin / "pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "-t", "120", "stop")

    def new_url(self) -> str:
        name = f"test{next(self.numbers)}"
        self.run(self.bin / "psql", "-h", self.folder, "-U", "pailot", "-d", "postgres", "-c", f"CREATE DATABASE {name}")
        return f"postgresql://pailot@/{name}?host={self.folder}"

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
