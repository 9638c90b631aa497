"""The engines that must pass the conformance suite, each with what a test has to know about it.

To add one, write a function that returns an `EngineUnderTest` or skips with the line that enables it, and name it in `ENGINES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pailot.testing import EngineUnderTest

if TYPE_CHECKING:
    from collections.abc import Callable


def local() -> EngineUnderTest:
    return EngineUnderTest("local")


def docker() -> EngineUnderTest:
    from ..parts import containers

    started = containers.docker()
    return EngineUnderTest("docker", containers.IMAGE, started.environment, left=started.containers)


def podman() -> EngineUnderTest:
    from ..parts import containers

    started = containers.podman()
    return EngineUnderTest("docker", containers.IMAGE, started.environment, left=started.containers)


def slurm() -> EngineUnderTest:
    from ..parts.slurm import cluster

    environment = {**cluster().environment, "PAILOT_SLURM_POLL_SECONDS": "1"}
    return EngineUnderTest("slurm", environment=environment, addresses=r"[0-9.]+")


def kubernetes(image: str = "python", **settings: str) -> EngineUnderTest:
    """Three real nodes; nothing of a run may be left in the cluster."""
    from ..parts.kubernetes.cluster import cluster
    from ..parts.kubernetes.images import NAMES

    lab = cluster(3)

    def left() -> list[str]:
        kinds = (
            "/apis/batch/v1/namespaces/default/jobs",
            "/api/v1/namespaces/default/pods",
            "/api/v1/namespaces/default/secrets",
        )
        found = [each for kind in kinds for each in (lab.get(kind) or {"items": []})["items"]]
        return [each["metadata"]["name"] for each in found]

    return EngineUnderTest(
        "kubernetes",
        NAMES[image],
        {**lab.environment, **settings},
        addresses=r"[0-9.]+",
        sees_our_files=False,
        left=left,
    )


def kubernetes_not_root() -> EngineUnderTest:
    """The image has a user of its own, and the pods obey Pod Security 'restricted'."""
    return kubernetes("user", PAILOT_KUBERNETES_RESTRICTED="yes")


def openpai() -> EngineUnderTest:
    """Another Pailot, with a server of its own that lasts as long as the tests."""
    import atexit
    import shutil
    import tempfile
    from pathlib import Path

    from ..support.servers import PASSWORD, Server

    folder = Path(tempfile.mkdtemp(prefix="pailot-server-"))
    server = Server(folder, PAILOT_CPUS="64", PAILOT_MEMORY_MB="64000")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.close)
    from pailot.client.api import Client

    with Client(server.url) as client:
        client.login("admin", PASSWORD)
        token = client.create_token()
    environment = {"PAILOT_OPENPAI_SERVER": server.url, "PAILOT_OPENPAI_TOKEN": token}
    return EngineUnderTest("openpai", environment=environment)


ENGINES: dict[str, Callable[[], EngineUnderTest]] = {
    "local": local,
    "docker": docker,
    "podman": podman,
    "slurm": slurm,
    "openpai": openpai,
}
ON_KUBERNETES: dict[str, Callable[[], EngineUnderTest]] = {
    "kubernetes": kubernetes,
    "kubernetes-not-root": kubernetes_not_root,
}
"""In a file of tests of their own: they belong to another group of tests."""
