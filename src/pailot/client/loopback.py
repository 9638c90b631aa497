"""Whether the name of a host is this machine itself."""

from __future__ import annotations

_NAMES = ("localhost", "::1", "[::1]")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine: `localhost`, `::1` or an address of 127.0.0.0/8. `127.example.com` is not.

    is_loopback("127.0.0.2") returns True
    """
    if host.lower() in _NAMES:
        return True
    parts = host.split(".")
    return len(parts) == 4 and parts[0] == "127" and all(part.isascii() and part.isdecimal() and len(part) < 4 for part in parts)
