"""A real server in a home of its own: `pailot serve`, on a port that the kernel chooses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from pailot.testing.runs import PATIENCE, Home, Result

PASSWORD = "correct-horse"


class Server:
    """`pailot serve`; can be killed and started anew on the same port and home."""

    options: tuple[str, ...] = ()
    """More options of `pailot serve`."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.home = Home(folder)
        self.settings = {"PAILOT_ADMIN_PASSWORD": PASSWORD, "PAILOT_RATE_LIMITS": "off"} | settings
        self.port = 0
        self.process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Answers when the server does."""
        assert self.process is None
        with open(self.home.folder / "serve.log", "a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pailot", "serve", "--json", "--port", str(self.port), *self.options],
                cwd=self.home.cwd,
                env=self.home.environment | self.settings,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, (self.home.folder / "serve.log").read_text()
        self.url: str = json.loads(line)["url"]
        self.port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        """As a power cut would."""
        assert self.process is not None
        self.process.kill()
        self._gone()

    def close(self) -> None:
        """The server, and all that it left to others."""
        if self.process is not None:
            self.process.terminate()
            self._gone()
        self.home.close()

    def _gone(self) -> None:
        assert self.process is not None
        self.process.wait(60)
        if self.process.stdout:
            self.process.stdout.close()
        self.process = None

    def streams(self) -> int:
        """How many live streams are open: a command that follows something has one when it can stand a restart."""
        with urlopen(f"{self.url}/metrics", timeout=PATIENCE) as reply:
            text = reply.read().decode()
        return int(float(re.findall(r"(?m)^pailot_http_streams (\S+)$", text)[0]))

    def client(self, folder: Path) -> Home:
        """Somebody who is logged in as admin, with a home of its own."""
        home = Home(folder)
        home.environment["XDG_CONFIG_HOME"] = str(folder / "config")
        (home.cwd / "password").write_text(PASSWORD + "\n")
        done = home.pailot("login", self.url, "--user", "admin", "--password-file", "password")
        assert done.status == 0, done
        return home


def submit(home: Home, text: str, *options: str) -> Result:
    """`pailot submit` of a job."""
    (home.cwd / "job.yaml").write_text(text)
    return home.pailot("submit", "job.yaml", *options)
