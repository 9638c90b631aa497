"""The engines that must pass the conformance suite, each with what a test has to know about it.

To add one, write a function that answers an `Engine` or skips with the line that enables it, and name it in `ENGINES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pailot.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class Engine(Value):
    """One engine, ready to run jobs."""

    name: str
    """What `pailot run -e` is told."""
    image: str = "debian"
    """An image with bash and python3."""
    environment: Mapping[str, str] = {}
    """Variables that point the command line at it."""
    options: tuple[str, ...] = ()
    """More words for `pailot run`."""
    here: bool = True
    """Whether tasks work in the current directory, and the job is called there as it is here."""
    outlives_launcher: bool = False
    """Whether a job goes on when the process that started it is killed."""
    addresses: str = r"127\.0\.0\.1"
    """A pattern for the addresses that tasks are told."""
    seconds: float = 120
    """How long a test waits for something that should take far less."""
    prepare: Callable[[Path], None] | None = None
    """Called with the folder of a test before its first run."""
    left: Callable[[], list[str]] | None = None
    """What is still there of runs; nothing, once they have ended."""


def local() -> Engine:
    return Engine("local")


def docker() -> Engine:
    from ..parts import containers

    started = containers.docker()
    return Engine("docker", containers.IMAGE, started.environment, left=started.containers)


def podman() -> Engine:
    from ..parts import containers

    started = containers.podman()
    return Engine("docker", containers.IMAGE, started.environment, left=started.containers)


def slurm() -> Engine:
    from ..parts.slurm import cluster

    environment = {**cluster().environment, "PAILOT_SLURM_POLL_SECONDS": "1"}
    return Engine("slurm", environment=environment, outlives_launcher=True, addresses=r"[0-9.]+")


def openpai() -> Engine:
    """Another Pailot, with a server of its own that lasts as long as the tests."""
    import atexit
    import shutil
    import tempfile
    from pathlib import Path

    from ..acceptance.servers import PASSWORD, Server

    folder = Path(tempfile.mkdtemp(prefix="pailot-server-"))
    server = Server(folder, PAILOT_CPUS="64", PAILOT_MEMORY_MB="64000")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.close)
    from pailot.client.api import Client

    with Client(server.url) as client:
        client.login("admin", PASSWORD)
        token = client.create_token()
    environment = {"PAILOT_OPENPAI_SERVER": server.url, "PAILOT_OPENPAI_TOKEN": token}
    return Engine("openpai", environment=environment, outlives_launcher=True, here=False)


ENGINES: dict[str, Callable[[], Engine]] = {
    "local": local,
    "docker": docker,
    "podman": podman,
    "slurm": slurm,
    "openpai": openpai,
}
