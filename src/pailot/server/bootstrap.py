"""The first start of a server, and what each start reads of virtual clusters."""

from __future__ import annotations

import ctypes
import os
import time

from ..jobserver.accounts import DEFAULT_CLUSTER, Accounts
from ..jobserver.lifespan import clusters
from ..jobserver.oidc.identities import Directory
from ..jobserver.oidc.provider import Provider
from ..jobserver.oidc.sign_in import SignIn
from ..jobserver.unix_users import UnixUsers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..jobserver.oidc.configuration import SignOnSettings
    from ..jobserver.sessions import Sessions
    from ..settings import Settings
    from ..store.server import ServerStore


def open_accounts(store: ServerStore, settings: Settings) -> tuple[Accounts, str | None]:
    """The accounts; and the password of the first user, where it had to be made up."""
    unix = UnixUsers(settings["unix_users"], lambda name: getattr(store.accounts.user(name), "unix_user", None))
    accounts = Accounts(
        store,
        settings.home,
        lambda: tuple(shares_of(store, settings)),
        unix_user=unix.owner,
        password_login=settings["password_login"],
    )
    return accounts, accounts.prepare(_take("PAILOT_ADMIN_PASSWORD"))


def open_sign_in(
    sign_on: SignOnSettings, store: ServerStore, settings: Settings, accounts: Accounts, sessions: Sessions
) -> SignIn:
    """Single sign-on; the client secret is gone from the environment afterwards."""
    _take("PAILOT_OIDC_CLIENT_SECRET")
    directory = Directory(sign_on, store, accounts, sessions, lambda: tuple(shares_of(store, settings)), time.time)
    return SignIn(sign_on, Provider(sign_on), directory, time.time)


def _take(variable: str) -> str | None:
    """A variable of the environment, which is then gone from it: for what we start, and for who reads it in /proc."""
    value = os.environ.get(variable)
    if value is None:
        return None

    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_void_p
    place = library.getenv(variable.encode())
    if place:
        ctypes.memset(place, ord("*"), len(os.fsencode(value)))
    del os.environ[variable]
    return value or None


def shares_of(store: ServerStore, settings: Settings) -> dict[str, dict[str, object]]:
    """What is set for each virtual cluster: those of the settings, and those made through the API."""
    return {DEFAULT_CLUSTER: {}, **clusters(settings["virtual_clusters"]), **store.accounts.clusters()}
