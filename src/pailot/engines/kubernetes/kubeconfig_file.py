"""One kubeconfig file as typed values. A field that is not known here is refused: to ignore it could mean other rights."""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode

from ...errors import suggestion
from ...printable import cut, printable
from ...protocol.yaml import YamlError, parse
from ...runtime.kubernetes.access import MAX_FILE_BYTES, Pem
from ...runtime.kubernetes.login_error import LoginError
from ...values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

EXEC_EXTENSION = "client.authentication.k8s.io/exec"
"""The extension of a cluster that is meant for the program which logs in."""


class Cluster(Value):
    """Where an API is, as a kubeconfig says it."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: Pem = Pem()
    proxy_url: str = ""
    exec_config: str = ""
    """JSON that the cluster hands to the program which logs in."""


class Exec(Value):
    """A program that logs in, as a kubeconfig says it."""

    api_version: str = ""
    command: str = ""
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(Value):
    """A log-in, and the user that it acts for, as a kubeconfig says it."""

    client_certificate: Pem = Pem()
    client_key: Pem = Pem()
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    as_user: str = ""
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_extra: tuple[tuple[str, str], ...] = ()
    """Key and value, a key once for each of its values."""

    def __repr__(self) -> str:
        return f"User(as_user={self.as_user!r})"  # never what proves it


class Context(Value):
    """A cluster, a user and a namespace under one name."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class KubeconfigFile(Value):
    """All of one file."""

    path: str
    current_context: str = ""
    clusters: Mapping[str, Cluster] = {}
    users: Mapping[str, User] = {}
    contexts: Mapping[str, Context] = {}

    def __repr__(self) -> str:
        return f"KubeconfigFile({self.path!r})"


class _Reader:
    """The fields of one mapping. Each is taken once; what is left at the end is refused."""

    def __init__(self, found: object, place: str, file: str) -> None:
        if found is None:
            found = {}
        self.place, self.file = place, file
        if not isinstance(found, dict):
            raise self.wrong("is not a mapping")
        self.left: dict[str, object] = dict(found)
        self.known: list[str] = []

    def wrong(self, what: str, name: str = "") -> LoginError:
        return LoginError(f"{self.file}: {self.at(name)} {what}")

    def at(self, name: str) -> str:
        place = f"{self.place}.{name}" if self.place and name else self.place or name
        return f"'{printable(cut(place))}'" if place else "the file"

    def take(self, name: str) -> Any:
        self.known.append(name)
        return self.left.pop(name, None)

    def text(self, name: str) -> str:
        found = self.take(name)
        if found is None:
            return ""
        if not isinstance(found, str):
            raise self.wrong("is not a text; write it in quotes", name)
        return found

    def line(self, name: str) -> str:
        """A text that becomes a header, a path or an address: one line, without control characters."""
        found = self.text(name)
        if not found.isprintable():
            raise self.wrong("has control characters", name)
        return found

    def flag(self, name: str) -> bool:
        found = self.take(name)
        if found is not None and not isinstance(found, bool):
            raise self.wrong("is neither true nor false", name)
        return bool(found)

    def lines(self, name: str) -> tuple[str, ...]:
        found = self.take(name)
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise self.wrong("is not a list of texts", name)
        return tuple(found)

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return a list of `{name, value}`."""
        made = []
        for number, each in enumerate(self.take(name) or ()):
            inner = self.inner(each, f"{name}[{number}]")
            made.append((inner.line("name"), inner.text("value")))
            inner.end()
            if not made[-1][0] or "=" in made[-1][0]:
                raise inner.wrong("is no name of a variable", "name")
        return tuple(made)

    def many_lines(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return a mapping of names to lists of texts as pairs."""
        found = self.take(name) or {}
        if not isinstance(found, dict) or not all(
            isinstance(values, list) and all(isinstance(each, str) for each in values) for values in found.values()
        ):
            raise self.wrong("is not a mapping to lists of texts", name)
        return tuple((key, each) for key, values in found.items() for each in values)

    def pem(self, name: str) -> Pem:
        """Return a certificate or a key: `<name>-data` in base64, or the file `<name>`."""
        data, file = self.text(f"{name}-data"), self.line(name)
        if not data:
            return Pem(file=self.path(file))
        try:
            return Pem(text=b64decode("".join(data.split()), validate=True).decode("ascii"))
        except ValueError:
            raise self.wrong("is not base64 of a PEM text", f"{name}-data") from None

    def path(self, file: str) -> str:
        """Return a file's full path; one that is relative stands beside the kubeconfig."""
        return os.path.join(os.path.dirname(self.file), file) if file else ""

    def inner(self, found: object, name: str) -> _Reader:
        return _Reader(found, f"{self.place}.{name}" if self.place else name, self.file)

    def extensions(self) -> Mapping[str, Any]:
        """Extensions belong to other programs; they have names, and are never an error."""
        found = self.take("extensions") or []
        named = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
        return {str(each.get("name")): each.get("extension") for each in named}

    def end(self) -> None:
        for name in self.left:
            hint = suggestion(str(name), self.known)
            raise self.wrong(f"is a field that Pailot does not know, so it does not log in{hint}", str(name))


def read_file(path: str) -> KubeconfigFile | None:
    """Return a kubeconfig file, or None where there is none."""
    try:
        with open(path, encoding="utf-8") as opened:
            text = opened.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise LoginError(f"cannot read the kubeconfig '{path}': {why}") from None
    return read_text(text, path)


def read_text(text: str, path: str) -> KubeconfigFile:
    """Return what the text of a kubeconfig says; LoginError in one line, which shows no value of the file."""
    if not text.strip():
        return KubeconfigFile(path)
    try:
        document = parse(text)
    except YamlError as error:
        raise LoginError(f"{path}: line {text.count(chr(10), 0, error.offset) + 1} is not YAML that can be read") from None
    reader = _Reader(document.root, "", path)
    if reader.text("kind") not in ("", "Config"):
        raise reader.wrong("is not 'Config'", "kind")
    if reader.text("apiVersion") not in ("", "v1"):
        raise reader.wrong("is not 'v1'", "apiVersion")
    reader.take("preferences")  # colours of kubectl
    reader.extensions()
    made = KubeconfigFile(
        path,
        reader.line("current-context"),
        _named(reader, "clusters", "cluster", _cluster),
        _named(reader, "users", "user", _user),
        _named(reader, "contexts", "context", _context),
    )
    reader.end()
    return made


def _named(reader: _Reader, plural: str, singular: str, read: Callable[[_Reader], Any]) -> dict[str, Any]:
    found = reader.take(plural) or []
    if not isinstance(found, list):
        raise reader.wrong("is not a list", plural)
    made: dict[str, Any] = {}
    for number, each in enumerate(found):
        outer = reader.inner(each, f"{plural}[{number}]")
        name = outer.line("name")
        if name in made:
            raise outer.wrong("is there twice", "name")
        inner = outer.inner(outer.take(singular), singular)
        outer.end()
        made[name] = read(inner)
        inner.end()
    return made


def _cluster(reader: _Reader) -> Cluster:
    reader.flag("disable-compression")
    given = reader.extensions().get(EXEC_EXTENSION)
    made = Cluster(
        reader.line("server"),
        reader.line("tls-server-name"),
        reader.flag("insecure-skip-tls-verify"),
        reader.pem("certificate-authority"),
        reader.line("proxy-url"),
        "" if given is None else json.dumps(given, default=str),
    )
    if made.insecure_skip_tls_verify and made.certificate_authority:
        raise reader.wrong("names an authority together with insecure-skip-tls-verify; keep one of them")
    return made


def _user(reader: _Reader) -> User:
    if reader.take("auth-provider") is not None:
        raise reader.wrong("is not supported: Kubernetes removed it in 1.26; use an exec program", "auth-provider")
    reader.extensions()
    program = reader.take("exec")
    return User(
        reader.pem("client-certificate"),
        reader.pem("client-key"),
        reader.line("token"),
        reader.path(reader.line("tokenFile")),
        reader.text("username"),
        reader.text("password"),
        None if program is None else _exec(reader.inner(program, "exec")),
        reader.line("as"),
        reader.line("as-uid"),
        reader.lines("as-groups"),
        reader.many_lines("as-user-extra"),
    )


def _exec(reader: _Reader) -> Exec:
    command = reader.line("command")
    if not command:
        raise reader.wrong("names no command")
    if re.search(r"[/\\]", command):
        command = reader.path(command)
    made = Exec(
        reader.line("apiVersion"),
        command,
        reader.lines("args"),
        reader.pairs("env"),
        reader.text("installHint"),
        reader.flag("provideClusterInfo"),
        reader.line("interactiveMode"),
    )
    reader.end()
    return made


def _context(reader: _Reader) -> Context:
    reader.extensions()
    return Context(reader.line("cluster"), reader.line("user"), reader.line("namespace"))
