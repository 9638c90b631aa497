"""Addresses of callers: which proxies are believed, and what is counted as one caller."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

from ...settings import BadSetting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from ipaddress import IPv4Network, IPv6Network

_COUNTED_BITS = 64
"""Of an IPv6 address: the rest is everybody's own choice."""
_MAPPED_BITS = 96


class Proxies:
    """The addresses whose `X-Forwarded-For` is believed, as the setting `trusted_proxies` names them."""

    def __init__(self, entries: Sequence[str]) -> None:
        self._networks = [_network(entry) for entry in entries]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def __contains__(self, address: str) -> bool:
        found = _parsed(address)
        return found is not None and any(found in network for network in self._networks)

    def for_uvicorn(self) -> list[str]:
        """Also as a socket for both families spells those of version 4."""
        mapped = [
            f"::ffff:{network.network_address}/{_MAPPED_BITS + network.prefixlen}"
            for network in self._networks
            if network.version == 4
        ]
        return [*map(str, self._networks), *mapped]


def _network(entry: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(entry)
    except ValueError as error:
        why = "it would let every client choose its address" if entry == "*" else str(error)
        raise BadSetting(f"trusted_proxies: should be addresses or networks of proxies, is '{entry}' ({why})") from None


def _parsed(address: str) -> object:
    try:
        found = ip_address(address)
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


@lru_cache(4096)
def counted(address: str) -> str:
    """What limits are counted by: an address of version 4, the network of one of version 6, which one customer is given whole."""
    if ":" not in address:
        return address[:64]
    found = _parsed(address)
    return str(ip_network((int(found), _COUNTED_BITS), strict=False)) if isinstance(found, IPv6Address) else str(found or "-")
