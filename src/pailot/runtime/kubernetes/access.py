"""The way to a cluster's API: address, certificates, proxy and log-in, as one value.

access = in_cluster(os.environ)          # or engines.kubernetes.kubeconfig.find_access
connection = access.connect(timeout=10)  # an http.client connection, open and encrypted
connection.request("GET", "/version")    # the log-in's headers are added to each request
if connection.getresponse().status == 401 and access.login.renew():
    ...                                  # connect again, and repeat the request once
"""

from __future__ import annotations

import os

from ...values import Value
from .login_error import LoginError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from http.client import HTTPConnection
    from typing import Optional

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where kubelet puts the account of a pod."""
MAX_FILE_BYTES = 1024 * 1024
"""A certificate or a token is never larger."""


class Pem(Value):
    """Certificates or a key: the text itself, or a file that is read at each use, because it may be rotated."""

    text: str = ""
    file: str = ""

    def __bool__(self) -> bool:
        return bool(self.text or self.file)

    def __repr__(self) -> str:
        return f"Pem(file={self.file!r})"  # never a key

    def read(self) -> str:
        """Return the PEM text."""
        return read_small(self.file) if self.file else self.text


class Login:
    """How a request proves its sender. This base class sends nothing."""

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers that each request carries."""
        return []

    def certificate(self) -> tuple[str, str] | None:
        """Return the client's certificate and key as PEM texts, or None."""
        return None

    def renew(self) -> bool:
        """Forget what the API refused with status 401. Returns whether another try may succeed."""
        return False

    def sends_anything(self) -> bool:
        """Return whether this log-in shows the API anything, without making it."""
        return False


class FixedLogin(Login):
    """A token, a name with a password, or a client certificate that does not change."""

    def __init__(self, authorization: str = "", certificate: Pem = Pem(), key: Pem = Pem()) -> None:  # noqa: B008  # immutable
        self._authorization, self._certificate, self._key = authorization, certificate, key

    def headers(self) -> list[tuple[str, str]]:
        return [("Authorization", self._authorization)] if self._authorization else []

    def certificate(self) -> tuple[str, str] | None:
        return (self._certificate.read(), self._key.read()) if self._certificate else None

    def sends_anything(self) -> bool:
        return bool(self._authorization or self._certificate)


class TokenFileLogin(Login):
    """A token in a file that another program rotates, as kubelet does in a pod. It is read for each request."""

    def __init__(self, file: str, certificate: Login | None = None) -> None:
        self._file = file
        self._also = certificate or Login()
        self._sent = ""

    def headers(self) -> list[tuple[str, str]]:
        self._sent = read_small(self._file).strip()
        return [("Authorization", bearer(self._sent, self._file))]

    def certificate(self) -> tuple[str, str] | None:
        return self._also.certificate()

    def renew(self) -> bool:
        return read_small(self._file).strip() != self._sent

    def sends_anything(self) -> bool:
        return True


class Proxy(Value):
    """The proxy that leads to the cluster."""

    scheme: str
    """`http` or `socks5`."""
    host: str
    port: int
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Proxy({self})"  # never the password

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class Access(Value):
    """Where a cluster's API is, and how to make oneself known to it."""

    server: str
    """As `https://host:6443`; a path behind it is the prefix of every request's target."""
    login: Login
    namespace: str = "default"
    authority: Pem = Pem()
    """Who signs the API's certificate; empty for the authorities of this system."""
    verify: bool = True
    server_name: str = ""
    """The name in the API's certificate where it is not the host of `server`."""
    proxy: Optional[Proxy] = None  # noqa: UP045  # read at run time by Python 3.9, too
    identity: tuple[tuple[str, str], ...] = ()
    """The headers of impersonation."""
    context: str = ""
    """The kubeconfig's context; empty inside a cluster."""
    source: str = ""
    """Where all of this stands, for messages."""

    def connect(self, timeout: float) -> HTTPConnection:
        """Return an open connection. Each request over it carries the log-in and the prefix of `server`.

        Raises:
            LoginError: the log-in cannot be made.
            OSError: the API cannot be reached, or its certificate is not trusted.
        """
        from .connection import connect

        return connect(self, timeout)


def in_cluster(environment: Mapping[str, str], folder: str = SERVICE_ACCOUNT) -> Access | None:
    """Return the access of the pod that this process runs in, or None outside of pods and in pods without an account."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "443")
    token = os.path.join(folder, "token")
    if not host or not os.path.exists(token):
        return None
    try:
        namespace = read_small(os.path.join(folder, "namespace")).strip()
    except LoginError:
        namespace = "default"
    return Access(
        f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        TokenFileLogin(token),
        namespace=namespace,
        authority=Pem(file=os.path.join(folder, "ca.crt")),
        source=folder,
    )


def bearer(token: str, source: str) -> str:
    """Return the header for a token; refuses a text that no token is, without showing it."""
    if not token or not (token.isascii() and token.isprintable()):
        raise LoginError(f"there is no valid token in {source}")
    return f"Bearer {token}"


def read_small(file: str) -> str:
    """Return the text of a file that the log-in names."""
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a text"
        raise LoginError(f"cannot read '{file}', which the log-in to the cluster needs: {why}") from None
    if len(text) > MAX_FILE_BYTES:
        raise LoginError(f"'{file}' is larger than 1 MiB: it is no certificate or token")
    return text
