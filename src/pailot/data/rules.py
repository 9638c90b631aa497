"""What jobs may name, as a value. `addresses` decides by it; every run carries it."""

from __future__ import annotations

from ..values import Value

WEB = ("http", "https")
BUCKETS = ("s3", "s3a", "oss", "gs", "az")
"""What stands where others have a host is a bucket; where that is, the administrator says, or the whole world knows."""
SCHEMES = (*WEB, *BUCKETS, "hdfs", "viewfs", "webhdfs")
"""What a job on a server may name without any setting."""


class Rules(Value):
    """What jobs may name. As it stands here: everything, for a user's own machine."""

    server: bool = False
    schemes: tuple[str, ...] = SCHEMES
    folders: tuple[str, ...] = ()
    """Folders of the machine that jobs may name, with their links resolved."""
    addresses: tuple[str, ...] = ()
    """Hosts that may be reached whatever they are: a name, an address or a network, the first two perhaps with a port."""
    private: bool = True
    """Whether private networks may be reached."""
    credentials: bool = False
    """Whether the server's own credentials are used."""


OWN_MACHINE = Rules()
