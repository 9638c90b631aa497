"""The first start of a server, and what each start reads of virtual clusters."""

from __future__ import annotations

import os

from ..service.accounts import DEFAULT_CLUSTER, Accounts
from ..service.team.serve import clusters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings import Settings
    from ..store.server import ServerStore


def open_accounts(store: ServerStore, settings: Settings) -> tuple[Accounts, str | None]:
    """The accounts; and the password of the first user, where it had to be made up."""
    accounts = Accounts(store, settings.home, lambda: tuple(shares_of(store, settings)))
    password = os.environ.pop("PAILOT_ADMIN_PASSWORD", None)  # nothing that the server starts shall see it
    return accounts, accounts.prepare(password or None)


def shares_of(store: ServerStore, settings: Settings) -> dict[str, dict[str, float]]:
    """What is kept for each virtual cluster: those of the settings, and those made through the API."""
    made: dict[str, dict[str, float]] = {
        name: {key: float(data[key]) for key in ("cpus", "memory_mb", "gpus") if key in data}
        for name, data in store.accounts.clusters().items()
    }
    return {DEFAULT_CLUSTER: {}, **clusters(settings["virtual_clusters"]), **made}
