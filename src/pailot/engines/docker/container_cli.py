"""Which container engine there is, and what it can do: Docker, Podman or nerdctl, by its command line."""

from __future__ import annotations

import os

from ...runtime.quick_socket import sockets
from ...values import Value
from ..contract import Unreachable
from ..preparation.machine import which

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from subprocess import CompletedProcess

DOCKER, PODMAN, NERDCTL = "docker", "podman", "nerdctl"
KINDS = (DOCKER, PODMAN, NERDCTL)
SOCKET = "/var/run/docker.sock"
_DOWN = (
    "cannot connect to the docker daemon", "error during connect", "cannot access containerd socket",
    "unable to connect to podman", "cannot connect to podman",
)  # fmt: skip
_DENIED = ("permission denied", "access denied")


class EngineUnavailable(Unreachable):
    """A container engine that is not there, or whose daemon does not answer."""


class Program(Value):
    """The command line of a container engine."""

    path: str
    kind: str
    rootless: bool = False
    socket: str = ""
    """Where Docker's daemon listens, for what is too small to start its client for."""

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    def run(self, *words: str, environment: Mapping[str, str] | None = None) -> CompletedProcess[str]:
        """Run one command to its end. Raises Unavailable where the engine does not respond."""
        import subprocess

        done = subprocess.run(
            [self.path, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env={**os.environ, **(environment or {})},
        )
        if done.returncode:
            self.check_daemon(done.stderr)
        return done

    def has_image(self, image: str) -> bool | None:
        """Ask the daemon itself, which takes a twentieth of the client's time; None if it does not answer that way."""
        if not self.socket:
            return None
        from urllib.parse import quote

        try:
            connection = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
            try:
                connection.connect(self.socket)
                connection.send(f"GET /images/{quote(image)}/json HTTP/1.0\r\nHost: docker\r\n\r\n".encode())
                answer = connection.recv(32)
            finally:
                connection.close()
        except OSError:
            return None
        status = answer[9:12]
        return {b"200": True, b"404": False}.get(status)

    def check_daemon(self, said: str) -> None:
        """Raise Unavailable if an error means that the daemon is not there."""
        lower = said.lower()
        if any(words in lower for words in _DOWN):
            hint = "start it (sudo systemctl start docker)" if self.kind == DOCKER else "start it"
            raise EngineUnavailable(
                f"{self.name}: its daemon does not answer; {hint}, or choose another engine: {last_line(said)}"
            )
        if any(words in lower for words in _DENIED) and "socket" in lower:
            raise EngineUnavailable(f"{self.name}: you may not use its socket; join the group that may: {last_line(said)}")


def candidates(wanted: str) -> list[Program]:
    """The programs to try, in order: the one that is set, or those that are installed."""
    if wanted:
        path = which(wanted) if "/" not in wanted else wanted if os.access(wanted, os.X_OK) else None
        if path is None:
            raise EngineUnavailable(f"container_command: there is no program '{wanted}' here")
        return [_program(path)]
    found = [_program(path) for path in map(which, KINDS) if path]
    if not found:
        raise EngineUnavailable(
            "the docker engine needs Docker, Podman or nerdctl, and none of them is installed; "
            "install one (docker.io or podman on Debian and Ubuntu), or run without containers: -e local"
        )
    return found


def _program(path: str) -> Program:
    kind = _kind(path)
    if kind == DOCKER:
        socket = _local_endpoint(path)
        return Program(path, kind, _is_ours(socket), socket)
    if kind == PODMAN:
        _refuse_remote("CONTAINER_HOST", os.environ.get("CONTAINER_HOST", ""))
    return Program(path, kind, os.geteuid() != 0)


def _kind(path: str) -> str:
    """By its name; a `docker` that is a small script which calls Podman (podman-docker) is Podman."""
    name = os.path.basename(path)
    if name.startswith((PODMAN, NERDCTL)):
        return PODMAN if name.startswith(PODMAN) else NERDCTL
    try:
        with open(path, "rb") as stream:
            start = stream.read(2_000)
    except OSError:
        return DOCKER
    return PODMAN if start.startswith(b"#!") and b"podman" in start else DOCKER


def _local_endpoint(path: str) -> str:
    """The socket of Docker's daemon, which must be on this machine: tasks need our folders."""
    host = os.environ.get("DOCKER_HOST", "")
    where = "DOCKER_HOST"
    if not host and _has_context():
        import subprocess

        words = [path, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"]
        host = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
        where = "the current context of docker"
    _refuse_remote(where, host)
    return host.removeprefix("unix://") or SOCKET


def _refuse_remote(where: str, host: str) -> None:
    if host and not host.startswith("unix://"):
        raise EngineUnavailable(
            f"{where} is {host}: a daemon on another machine cannot see the job's folders; "
            "use one on this machine, or run pailot on that one"
        )


def _has_context() -> bool:
    return bool(os.environ.get("DOCKER_CONTEXT")) or '"currentContext"' in _configuration()


def has_proxies() -> bool:
    """Whether Docker's client would tell containers of proxies: then it has to start them itself."""
    return '"proxies"' in _configuration()


def _configuration() -> str:
    try:
        with open(os.path.join(config_folder(), "config.json"), encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def config_folder() -> str:
    """Where Docker's client keeps what the user has configured."""
    return os.environ.get("DOCKER_CONFIG") or os.path.join(os.path.expanduser("~"), ".docker")


def _is_ours(socket: str) -> bool:
    """A daemon without root has a socket that belongs to its user."""
    try:
        return os.stat(socket).st_uid == os.geteuid() != 0
    except OSError:
        return False


def last_line(text: str) -> str:
    """What an engine says went wrong, without its preamble."""
    lines = [line for line in text.strip().splitlines() if line.strip() and not line.startswith(("See ", "Run ", "Usage:"))]
    line = lines[-1] if lines else "it does not say why"
    for start in ("docker: ", "Error response from daemon: ", "Error: "):
        line = line.removeprefix(start)
    return line.strip()


def first_that_answers(programs: Sequence[Program], words: Sequence[str]) -> tuple[Program, CompletedProcess[str]]:
    """The first engine that is really there, with its answer; if none is, why not."""
    problems: list[str] = []
    for program in programs:
        try:
            return program, program.run(*words)
        except EngineUnavailable as problem:
            problems.append(str(problem))
    raise EngineUnavailable("; ".join(problems))
