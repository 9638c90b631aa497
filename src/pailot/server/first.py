"""The first start of a server, and what each start reads of virtual clusters."""

from __future__ import annotations

import os

from ..service.accounts import DEFAULT_CLUSTER, Accounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings import Settings
    from ..store.server import ServerStore


def open_accounts(store: ServerStore, settings: Settings) -> tuple[Accounts, str | None]:
    """The accounts; and the password of the first user, where it had to be made up."""
    accounts = Accounts(store, settings.home, lambda: cluster_names(store))
    password = os.environ.pop("PAILOT_ADMIN_PASSWORD", None)  # nothing that the server starts shall see it
    return accounts, accounts.prepare(password or None)


def cluster_names(store: ServerStore) -> tuple[str, ...]:
    return tuple(dict.fromkeys((DEFAULT_CLUSTER, *store.accounts.clusters())))


def shares_of(store: ServerStore) -> dict[str, dict[str, float]]:
    """What is kept for each virtual cluster."""
    return {
        name: {key: float(data.get(key, 0)) for key in ("cpus", "memory_mb", "gpus")}
        for name, data in store.accounts.clusters().items()
    }
