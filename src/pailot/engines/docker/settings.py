"""What the settings say about containers, checked."""

from __future__ import annotations

from ...data.server_rules import storage_folders
from ...settings import BadSetting, Settings
from ...values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

HOST, BRIDGE = "host", "bridge"
MISSING, ALWAYS, NEVER = "missing", "always", "never"
CALLER, ROOT = "caller", "root"


class Choices(Value):
    """How containers are to be made."""

    command: str
    network: str
    pull: str
    user: str
    mounts: tuple[str, ...]
    storages: Mapping[str, str]


def read() -> Choices:
    """The settings in force."""
    settings = Settings()
    return Choices(
        command=settings["container_command"],
        network=_one_of(settings, "container_network", HOST, BRIDGE),
        pull=_one_of(settings, "image_pull", MISSING, ALWAYS, NEVER),
        user=_one_of(settings, "container_user", CALLER, ROOT),
        mounts=tuple(settings["container_mounts"]),
        storages=storage_folders(settings),
    )


def _one_of(settings: Settings, name: str, *allowed: str) -> str:
    value: str = settings[name]
    if value not in allowed:
        raise BadSetting(f"{name}: should be {' or '.join(allowed)}, is '{value}'")
    return value
