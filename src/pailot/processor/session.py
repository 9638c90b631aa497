"""Where processing jobs run and where their outputs go, unless they say it themselves."""

from __future__ import annotations

import os
import warnings

from ..engines.contract import EngineError
from ..engines.docker import settings
from ..engines.docker.container_cli import EngineUnavailable, candidates
from ..settings import Settings
from .machine_types import LOCAL, LOCAL_GPU

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..sdk.client import Client

_default: Session | None = None
THEIRS = ("access_key_id", "access_key_secret", "security_token", "credential_config", "oss_endpoint", "network")


class Session:
    """Engine or server, and storage. Making one costs nothing and opens no connection.

    `engine`: local, docker, …; `server` with `token`: a Pailot server; `storage`: the URI below which outputs are kept
    that were not given a place (a folder in PAILOT_HOME by default). What else Alibaba's sessions take, their account and its
    keys, has no meaning here and is named in a warning.
    """

    def __init__(
        self,
        engine: str | None = None,
        server: str | None = None,
        token: str | None = None,
        storage: str | os.PathLike[str] | None = None,
        *,
        region_id: str = "local",
        workspace_id: str | None = None,
        oss_bucket_name: str | None = None,
        **others: Any,
    ) -> None:
        _name_others(others)
        if engine is not None and server is not None:
            raise ValueError("a session has an engine or a server: a server chooses its engine itself")
        self.engine, self.server, self.token = engine, server, token
        self.storage = os.fspath(storage) if storage is not None else f"oss://{oss_bucket_name}" if oss_bucket_name else None
        self.region_id, self.workspace_id, self.oss_bucket_name = region_id, workspace_id, oss_bucket_name

    def __repr__(self) -> str:
        where = f"server={self.server!r}" if self.server else f"engine={self.engine or 'local'!r}"
        return f"Session({where}, storage={self.storage!r})"

    def client(self) -> Client | None:
        """The client of the session's server; None if it has none."""
        if self.server is None:
            return None
        from ..sdk.client import Client

        return Client(self.server, self.token)

    def storage_uri(self) -> str:
        """The URI below which outputs are kept that were not given a place."""
        return (self.storage or os.path.join(Settings().home, "storage")).rstrip("/") + "/pai/processing_job"

    def named_engine(self) -> str | None:
        """The engine that the user chose."""
        return self.engine or os.environ.get("PAILOT_ENGINE") or None

    def engine_for(self, instance_type: str | None) -> str:
        """The session's own, else the setting; else, for 'local', containers where they can run; else plain processes."""
        chosen = self.named_engine()
        if chosen is None and instance_type in (LOCAL, LOCAL_GPU) and _containers_work():
            return "docker"
        return chosen or "local"


def _containers_work() -> bool:
    try:
        found = candidates(settings.read().command)
    except EngineError:
        return False  # none is installed
    for program in found:
        try:
            if program.run("version").returncode == 0:
                return True
        except EngineUnavailable:
            continue  # its daemon does not answer
    return False


def get_default_session() -> Session:
    """The session that was set up, else one from the settings."""
    return _default or Session(server=_server())


def setup_default_session(
    engine: str | None = None,
    server: str | None = None,
    token: str | None = None,
    storage: str | os.PathLike[str] | None = None,
    **more: Any,
) -> Session:
    """Set the session that is used where none is named. Returns it."""
    global _default  # noqa: PLW0603  # one for the program
    _default = Session(engine, server, token, storage, **more)
    return _default


def _name_others(given: Mapping[str, Any]) -> None:
    """What belongs to an account of Alibaba's is said to have no effect, by its name alone; the rest is refused."""
    for name in given:
        if name not in THEIRS:
            raise TypeError(f"a session has no '{name}'")
    if given:
        warnings.warn(f"without effect here: {', '.join(given)}; drivers of stores have settings of their own", stacklevel=3)


def _server() -> str | None:
    named = os.environ.get("PAILOT_SERVER")
    return None if named in (None, "", "none") else named
