"""Log-in by a program that the kubeconfig names (`exec`): cloud providers and single sign-on have one each.

The program prints an ExecCredential with a token, a client certificate, or both. It is kept until it expires, or
until the API refuses it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

from ...printable import printable
from ...runtime.kubernetes.access import Login, bearer
from ...runtime.kubernetes.login_error import LoginError
from ...values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

GROUP = "client.authentication.k8s.io"
API_VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
MODES = ("Never", "IfAvailable", "Always")
EARLIER = timedelta(seconds=30)
"""A credential is renewed this long before it expires, so that it is valid when the request arrives. One that lives for a
short time only is renewed after nine tenths of it."""
TIMEOUT_SECONDS = 300
"""A person may have to log in with a browser."""
MAX_MESSAGE = 300


class ExecProgram(Value):
    """The program and how it is run."""

    user: str
    """The user of the kubeconfig, for messages."""
    api_version: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster: str = ""
    """The cluster as JSON where the program wants to know it, else empty."""

    def info(self, interactive: bool) -> str:
        """Return what the program finds in KUBERNETES_EXEC_INFO."""
        spec: dict[str, object] = {"interactive": interactive}
        if self.cluster:
            spec["cluster"] = json.loads(self.cluster)
        return json.dumps({"kind": "ExecCredential", "apiVersion": self.api_version, "spec": spec})


class Credential(Value):
    """What a program printed."""

    token: str = ""
    certificate: str = ""
    key: str = ""
    expires: datetime | None = None
    printed: datetime | None = None

    def __repr__(self) -> str:
        return f"Credential(expires={self.expires})"

    def is_valid(self, now: datetime) -> bool:
        if self.expires is None or self.printed is None:
            return True
        return now < self.expires - min(EARLIER, (self.expires - self.printed) / 10)


class ExecLogin(Login):
    """Runs the program when a credential is needed and none is valid. Several threads may use it."""

    def __init__(self, program: ExecProgram) -> None:
        self.program = program
        self.runs = 0
        self._credential: Credential | None = None
        self._lock = threading.Lock()

    def headers(self) -> list[tuple[str, str]]:
        token = self._valid().token
        return [("Authorization", bearer(token, f"what '{self.program.command}' printed"))] if token else []

    def certificate(self) -> tuple[str, str] | None:
        found = self._valid()
        return (found.certificate, found.key) if found.certificate else None

    def renew(self) -> bool:
        with self._lock:
            self._credential = None
        return True

    def sends_anything(self) -> bool:
        return True

    def _valid(self) -> Credential:
        with self._lock:
            if self._credential is None or not self._credential.is_valid(_now()):
                self._credential = read_credential(self._run(), self.program).replace(printed=_now())
            return self._credential

    def _run(self) -> str:
        program = self.program
        self.runs += 1
        terminal = bool(sys.stdin) and not sys.stdin.closed and sys.stdin.isatty()
        if program.interactive_mode == "Always" and not terminal:
            raise LoginError(f"'{program.command}' logs in '{program.user}' at a terminal only, and there is none")
        interactive = terminal and program.interactive_mode != "Never"
        environment = {**os.environ, **dict(program.environment), "KUBERNETES_EXEC_INFO": program.info(interactive)}
        try:
            done = subprocess.run(
                [program.command, *program.arguments],
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if interactive else subprocess.PIPE,
                env=environment,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LoginError(f"'{program.command}' did not log in '{program.user}' within {TIMEOUT_SECONDS} s") from None
        except OSError as error:
            hint = f"; {one_line(program.install_hint)}" if program.install_hint else ""
            raise LoginError(f"cannot run '{program.command}', which logs in '{program.user}': {error.strerror}{hint}") from None
        if done.returncode:
            said = one_line((done.stderr or b"").decode("utf-8", "replace"))
            raise LoginError(
                f"'{program.command}', which logs in '{program.user}', ended with status {done.returncode}"
                + (said and f": {said}")
            )
        return done.stdout.decode("utf-8", "replace")


def _now() -> datetime:
    return datetime.now(UTC)


def read_credential(text: str, program: ExecProgram) -> Credential:
    """Return what a program printed, or refuse it without showing it."""

    def wrong(what: str) -> LoginError:
        return LoginError(f"'{program.command}', which logs in '{program.user}', printed {what}")

    try:
        printed = json.loads(text)
    except (ValueError, RecursionError):
        raise wrong("no JSON") from None
    if not isinstance(printed, dict) or printed.get("kind") != "ExecCredential":
        raise wrong("no ExecCredential")
    if printed.get("apiVersion") != program.api_version:
        raise wrong(f"a credential of another version than {program.api_version}, which the kubeconfig names")
    status = printed.get("status")
    if not isinstance(status, dict):
        raise wrong("a credential without a status")
    token, certificate, key = (_text(status, name) for name in ("token", "clientCertificateData", "clientKeyData"))
    if token is None or certificate is None or key is None:
        raise wrong("a credential whose token or certificate is not a text")
    if bool(certificate) != bool(key):
        raise wrong("a certificate without its key, or a key without its certificate")
    if not token and not certificate:
        raise wrong("a credential with neither a token nor a certificate")
    return Credential(token, certificate, key, _expiry(status.get("expirationTimestamp"), wrong))


def _text(status: Mapping[str, Any], name: str) -> str | None:
    found = status.get(name)
    return "" if found is None else found if isinstance(found, str) else None


def _expiry(text: object, wrong: Any) -> datetime | None:
    if text is None:
        return None
    try:
        # Nanoseconds, which some programs print, are more than Python reads.
        found = datetime.fromisoformat(re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", str(text)))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise wrong("a credential whose expirationTimestamp is no time with a zone")
    return found


def one_line(text: str) -> str:
    """Return what a program said as one short line that is safe to show."""
    return printable(" ".join(text.split()))[:MAX_MESSAGE]
