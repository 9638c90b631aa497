"""What an address is, and whether a job may use it: the one place that decides. Nothing is opened, resolved or asked here.

On a user's own machine a job may name whatever its user could open. On a server its author is a stranger: only some schemes,
of the machine itself only folders that the administrator has set aside, and of the network neither the machine nor what only
the machine can reach. Whoever opens something asks `refusal` when the job is submitted and again when it runs, with its
secrets inserted; `refusal_of_path` once links are resolved; `refusal_of_ip` once a name is.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import unquote, urlsplit

from ..values import Value
from .errors import DataError
from .rules import BUCKETS, WEB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from .rules import Rules

    Ip: TypeAlias = IPv4Address | IPv6Address

LOOPBACK, LINK_LOCAL, METADATA, UNSPECIFIED = "loopback", "link-local", "metadata", "unspecified"
MULTICAST, RESERVED, PRIVATE, PUBLIC = "multicast", "reserved", "private", "public"
OWN = "the server's own"
_METADATA = ("169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
"""Where clouds tell a machine its credentials: all of them, Alibaba, Azure, Oracle, AWS and Google over IPv6."""
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10")
_BROADCAST = 0xFFFFFFFF


class NotAllowed(DataError):
    """A place that this job may not use."""


class AddressPart(Value):
    """One part of a chain; of nearly all addresses the only one. A plain path has no scheme."""

    scheme: str
    rest: str

    @property
    def host(self) -> str:
        """The host that it names, without login, port and brackets."""
        return _host_and_port(self)[0]

    @property
    def port(self) -> int | None:
        return _host_and_port(self)[1]


class Address(Value):
    """Where something is, as a job says it. In a chain of fsspec, `zip://a::s3://b/c`, what is inside comes first."""

    text: str
    links: tuple[AddressPart, ...]

    @property
    def is_path(self) -> bool:
        """Whether it is a path of this machine: plain, or `file://`."""
        return len(self.links) == 1 and self.links[0].scheme in ("", "file")

    @property
    def scheme(self) -> str:
        return self.links[0].scheme

    @property
    def path(self) -> str:
        """The path of one that is a path, as it is written: perhaps relative, perhaps below `~`."""
        only = self.links[0]
        if not only.scheme:
            return only.rest
        return unquote(only.rest[len("localhost") :] if only.rest.startswith("localhost/") else only.rest)


def parse(text: str) -> Address:
    """Any text is an address; one without `://` is a path."""
    if "://" not in text:
        return Address(text, (AddressPart("", text),))
    first = _link(text)
    if "::" not in text or first.scheme in WEB:  # an address of the web may hold `::`, as [::1] does
        return Address(text, (first,))
    return Address(text, tuple(_link(part) for part in text.split("::")))


def refusal(address: Address, rules: Rules) -> str:
    """Why a job may not use an address, as far as its words tell; empty if it may."""
    if not rules.server:
        return ""
    if any(ord(c) < 32 or ord(c) == 127 for c in address.text):
        return "it holds a control character"
    if address.is_path:
        return _refusal_of_words(address.path, rules)
    if len(address.links) > 1 and any(link.scheme in ("", *WEB) for link in address.links):
        return "a chain of drivers may hold neither a path of the server nor http"
    for link in address.links:
        if link.scheme not in rules.schemes:
            return f"{f'{link.scheme}://' if link.scheme else link.rest} is not allowed on this server (setting allowed_schemes)"
        found = _refusal_of_host(link, rules)
        if found:
            return found
    return ""


def refusal_of_path(real: str, rules: Rules) -> str:
    """Why a job may not use a path whose links are resolved."""
    if not rules.server or folder_of(real, rules):
        return ""
    return "it is in no folder of this server that jobs may use (setting storage_folders)"


def folder_of(real: str, rules: Rules) -> str:
    """The folder of the settings that a path without links lies in, or is; empty if there is none."""
    fitting = [each for each in rules.folders if f"{real}/".startswith(f"{each.rstrip('/')}/")]
    return max(fitting, key=len, default="")


def refusal_of_ip(text: str, rules: Rules, *, host: str = "", port: int | None = None, own: bool = False) -> str:
    """Why an IP address may not be reached for a job; `host` is the name it was found by, `own` that it is this machine's."""
    if not rules.server:
        return ""
    address = ip_address(text.partition("%")[0])
    if any(_names(each, address, host, port) for each in rules.addresses):
        return ""
    kinds = {kind_of(each) for each in (address, *_inside(address))}
    if own:
        kinds.add(OWN)
    for kind in (METADATA, LOOPBACK, UNSPECIFIED, LINK_LOCAL, MULTICAST, RESERVED, OWN):
        if kind in kinds:
            return f"{_shown(host, text)} is {_ARTICLE.get(kind, 'a')} {kind} address (setting allowed_addresses)"
    if PRIVATE in kinds and not rules.private:
        return f"{_shown(host, text)} is in a private network (settings private_networks, allowed_addresses)"
    return ""


_ARTICLE = {UNSPECIFIED: "an", OWN: "one of"}


def kind_of(address: Ip) -> str:
    """What an IP address stands for."""
    if str(address) in _METADATA:
        return METADATA
    if address.is_unspecified or (address.version == 4 and int(address) >> 24 == 0):
        return UNSPECIFIED
    if address.is_loopback:
        return LOOPBACK
    if address.is_link_local:
        return LINK_LOCAL
    if address.is_multicast:
        return MULTICAST
    if any(_contains(network, address) for network in _PRIVATE):
        return PRIVATE
    if address.is_reserved and not _inside(address):
        return RESERVED
    return PUBLIC


def literal(host: str) -> Ip | None:
    """The address that a host's name says itself, in any way that the system's resolver understands: `0x7f.1`, `2130706433`."""
    bare = host.rstrip(".")
    try:
        return ip_address(bare.partition("%")[0])
    except ValueError:
        pass
    parts = bare.split(".")
    numbers = [_number(part) for part in parts]
    if not 1 <= len(parts) <= 4 or any(each is None for each in numbers):
        return None
    known = [each for each in numbers if each is not None]
    *high, last = known
    if any(each > 255 for each in high) or last >= 256 ** (5 - len(known)):
        return None
    return IPv4Address(sum(each << 8 * (3 - place) for place, each in enumerate(high)) + last)


def _link(text: str) -> AddressPart:
    scheme, colon, rest = text.partition("://")
    if colon:
        return AddressPart(scheme.lower(), rest)
    # In a chain a bare word is the name of a driver, and anything else a path.
    return AddressPart(text.lower(), "") if text.isascii() and text.isalnum() else AddressPart("", text)


def _host_and_port(link: AddressPart) -> tuple[str, int | None]:
    try:
        parts = urlsplit(f"{link.scheme}://{link.rest}")
        return (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return "", None


def _refusal_of_words(path: str, rules: Rules) -> str:
    if not path.startswith("/"):
        return "a path of the server begins with '/'"
    if not rules.folders:
        return refusal_of_path(path, rules)
    return ""  # its links are checked when it is opened


def _refusal_of_host(link: AddressPart, rules: Rules) -> str:
    """What can be said of a host before its name is resolved."""
    if link.scheme in BUCKETS:
        return ""
    host, port = _host_and_port(link)
    if not host:
        return "it names no host" if link.scheme in WEB else ""
    address = literal(host)
    if address is not None:
        return refusal_of_ip(str(address), rules, host=host, port=port)
    if host == "localhost" or host.endswith(".localhost"):
        return refusal_of_ip("127.0.0.1", rules, host=host, port=port)
    return ""


def _inside(address: Ip) -> tuple[Ip, ...]:
    """The IPv4 address that one of IPv6 stands for: mapped, compatible, 6to4, Teredo, NAT64."""
    if not isinstance(address, IPv6Address):
        return ()
    found: list[Ip] = []
    if address.ipv4_mapped is not None:
        found.append(address.ipv4_mapped)
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found += address.teredo
    number = int(address)
    if (number >> 32 == 0 and number > 1) or number >> 32 == 0x0064FF9B << 64:
        found.append(IPv4Address(number & _BROADCAST))
    return tuple(found)


def _contains(network: str, address: Ip) -> bool:
    within = ip_network(network)
    return within.version == address.version and address in within


def _names(entry: str, address: Ip, host: str, port: int | None) -> bool:
    """Whether an entry of the setting means this address."""
    try:
        return any(each in ip_network(entry, strict=False) for each in (address, *_inside(address)))
    except ValueError:
        pass
    wanted = _host_and_port(AddressPart("http", entry))
    if wanted[1] is not None and wanted[1] != port:
        return False
    try:
        return any(each in ip_network(wanted[0]) for each in (address, *_inside(address)))
    except ValueError:
        return bool(wanted[0]) and wanted[0].lower() == host.lower().rstrip(".")


def check_entries(entries: Iterable[str]) -> str:
    """The first entry of allowed_addresses that can be nothing of the kind; empty if there is none."""
    for entry in entries:
        try:
            ip_network(entry, strict=False)
        except ValueError:
            if "/" in entry or "://" in entry or not _host_and_port(AddressPart("http", entry))[0]:
                return entry
    return ""


def _number(text: str) -> int | None:
    """As C writes numbers: decimal, octal after 0, hexadecimal after 0x."""
    digits, base = (text[2:], 16) if text[:2].lower() == "0x" else (text, 8) if text[:1] == "0" else (text, 10)
    if not text.isascii() or not digits.isalnum():
        return None
    try:
        return int(digits, base)
    except ValueError:
        return None


def _shown(host: str, text: str) -> str:
    return text if not host or host == text else f"{host} ({text})"


__all__ = ["Address", "NotAllowed", "parse", "refusal", "refusal_of_ip", "refusal_of_path"]
