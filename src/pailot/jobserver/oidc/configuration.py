"""The settings of single sign-on, checked once at the start of a server."""

from __future__ import annotations

from urllib.parse import urlsplit

from ...client.loopback import is_loopback
from ...settings import BadSetting
from ...values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...settings import Settings

CREATE, LINK, EXISTING = "create", "link", "existing"
"""Who gets an account at the first sign-in: everyone, where the name is free; everyone, and a user of that name is taken
to be the same person; only users that are there."""
MAX_SECRET_BYTES = 4096


class SignOnSettings(Value):
    """What an administrator has set for single sign-on."""

    issuer: str
    client_id: str
    client_secret: str
    name: str
    """As the page shows it: `Sign in with NAME`."""
    scopes: tuple[str, ...]
    username_claim: str
    groups_claim: str
    clusters: Mapping[str, tuple[str, ...]]
    """Virtual clusters by the provider's group."""
    admin_groups: tuple[str, ...]
    allowed_groups: tuple[str, ...]
    accounts: str
    hosts: tuple[str, ...]
    """Hosts besides the issuer's that the server may send requests to."""
    redirects: tuple[str, ...]
    """Addresses of programs for OpenPAI that get a token in their query."""

    def __repr__(self) -> str:
        return f"SignOnSettings({self.issuer!r}, {self.client_id!r})"  # never the secret

    @property
    def manages_groups(self) -> bool:
        """Whether the provider decides over virtual clusters and administrators; else an administrator of the server does."""
        return bool(self.clusters or self.admin_groups)


def sign_on_settings(settings: Settings) -> SignOnSettings | None:
    """Return the settings of single sign-on, or None where there is none. Raises BadSetting."""
    issuer = str(settings["oidc_issuer"]).strip()
    if not issuer:
        if not settings["password_login"]:
            raise BadSetting("password_login is off, and oidc_issuer is not set: no user could log in")
        return None
    check_address("oidc_issuer", issuer)
    client_id = str(settings["oidc_client_id"])
    if not client_id:
        raise BadSetting("oidc_client_id: the identity provider knows the server by it; set it")
    accounts = str(settings["oidc_accounts"])
    if accounts not in (CREATE, LINK, EXISTING):
        raise BadSetting(f"oidc_accounts: should be {CREATE}, {LINK} or {EXISTING}, is {accounts!r}")
    scopes = tuple(dict.fromkeys(("openid", *settings["oidc_scopes"])))
    return SignOnSettings(
        issuer,
        client_id,
        _secret(settings),
        str(settings["oidc_name"]) or str(urlsplit(issuer).hostname),
        scopes,
        str(settings["oidc_username_claim"]),
        str(settings["oidc_groups_claim"]),
        _clusters(settings["oidc_groups"]),
        tuple(settings["oidc_admin_groups"]),
        tuple(settings["oidc_allowed_groups"]),
        accounts,
        tuple(each.lower() for each in settings["oidc_hosts"]),
        tuple(settings["oidc_redirects"]),
    )


def check_address(name: str, address: str) -> None:
    """Raise BadSetting unless an address is https, or http to this machine, without anything that does not belong there."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    plain = host and not parts.username and not parts.query and not parts.fragment and address.isascii() and address.isprintable()
    if not plain or parts.scheme not in ("http", "https"):
        raise BadSetting(f"{name}: should read like https://login.example.org, is {address!r}")
    if parts.scheme == "http" and not is_loopback(str(host)):
        raise BadSetting(f"{name}: should begin with https://; only this machine itself is asked without encryption")


def _secret(settings: Settings) -> str:
    file = str(settings["oidc_client_secret_file"])
    if not file:
        return str(settings["oidc_client_secret"])
    try:
        with open(file, encoding="utf-8") as stream:
            return stream.read(MAX_SECRET_BYTES).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise BadSetting(f"oidc_client_secret_file: {file} cannot be read: {why}") from None


def _clusters(table: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for group, value in table.items():
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise BadSetting(f"oidc_groups: '{group}' should name a virtual cluster or a list of them")
        found[group] = tuple(names)
    return found
