"""What the settings of a server say about the places that jobs may name."""

from __future__ import annotations

import os

from ..settings import BadSetting
from .addresses import check_entries
from .rules import SCHEMES, Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings import Settings

NEVER = ("", "file", "local", "memory", "dir", "reference", "arrow_hdfs")
"""Drivers that open files of the machine, or the memory of the process, whatever an administrator writes."""


def storage_folders(settings: Settings) -> dict[str, str]:
    """The setting storage_folders, checked: folders by the names of storages."""
    found: dict[str, str] = {}
    for each in settings["storage_folders"]:
        name, equals, folder = each.partition("=")
        if not equals or not folder.strip().startswith("/"):
            raise BadSetting(f"storage_folders: '{each}' should be NAME=/FOLDER")
        found[name.strip()] = folder.strip()
    return found


def read(settings: Settings) -> Rules:
    """The rules in force; for a server, never for a user's own machine."""
    more = tuple(each.strip().lower().removesuffix("://") for each in settings["allowed_schemes"])
    for scheme in more:
        if scheme in NEVER or not scheme.replace("+", "").replace("-", "").replace(".", "").isalnum():
            raise BadSetting(f"allowed_schemes: '{scheme}' cannot be allowed; folders of the server are named in storage_folders")
    wrong = check_entries(settings["allowed_addresses"])
    if wrong:
        raise BadSetting(f"allowed_addresses: '{wrong}' should be HOST, HOST:PORT or NETWORK, such as 10.1.0.0/16")
    return Rules(
        server=True,
        schemes=(*SCHEMES, *more),
        folders=tuple(dict.fromkeys(os.path.realpath(each) for each in storage_folders(settings).values())),
        addresses=tuple(settings["allowed_addresses"]),
        private=bool(settings["private_networks"]),
        credentials=bool(settings["storage_credentials"]),
    )
