"""A child process that opens what a job names: as the job's Unix user for good, with nothing that is the server's.

Root is left behind before the first byte is read. Modules are loaded before that, since the user may not be able to read
our Python.
"""

from __future__ import annotations

import os
import pwd
import sys
from importlib import import_module

from ..runtime import rights
from . import network
from .addresses import parse
from .rules import WEB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .rules import Rules

NOWHERE = "/nonexistent"
_KEPT = frozenset(
    "PATH LANG LC_ALL LC_CTYPE TZ LD_LIBRARY_PATH TMPDIR SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE "
    "JAVA_HOME CLASSPATH HADOOP_HOME HADOOP_CONF_DIR NO_PROXY no_proxy AWS_REGION AWS_DEFAULT_REGION AWS_CA_BUNDLE "
    "PYTHONPATH PYTHONHOME VIRTUAL_ENV".split()
) | {*network.ENDPOINTS, *network.PROXIES}
"""Variables of the server that say where things are; none of them identifies a user."""
_MODULES = (
    "base64", "concurrent.futures.thread", "encodings.idna", "fcntl", "hashlib", "http.client", "ipaddress", "json", "netrc",
    "shutil", "ssl", "stat", "subprocess", "tarfile", "threading", "urllib.parse", "urllib.request", "zipfile", "zlib", "bz2",
    "lzma",
)  # fmt: skip
_OURS = (
    ".download",
    ".filesystems",
    ".folders",
    ".ml_folders",
    ".ml_mounts",
    ".ml_strays",
    ".provisions",
    ".unpacking",
    ".upload",
    "..client.ignore",
    "..progress",
)


def enter(rules: Rules, user: str = "", places: Iterable[str] = ()) -> None:
    """Make this process the job's: its environment, its connections, its user. There is no way back.

    `places` are addresses that it will open, whose drivers are loaded first.
    """
    if not rules.server:
        return
    if not rules.credentials:
        _leave_environment(user)
    if user:
        _load(places, rules)
    network.watch_connections(rules)
    if user:
        become(user)


def become(user: str) -> None:
    """Be a Unix user, with all groups and no privilege, for good."""
    os.umask(0o077)
    rights.become(rights.unix_user(user))


def _leave_environment(user: str) -> None:
    """Nothing of the server's own may speak for a job: neither its variables nor the files of its home."""
    home = NOWHERE
    if user:
        home = pwd.getpwnam(user).pw_dir
    kept = {name: value for name, value in os.environ.items() if name in _KEPT}
    os.environ.clear()
    os.environ.update(kept, HOME=home, AWS_EC2_METADATA_DISABLED="true", FSSPEC_CONFIG_DIR=NOWHERE)
    if user:
        os.environ.update(USER=user, LOGNAME=user)

    if "fsspec" in sys.modules:  # it has read the server's configuration already
        from fsspec.config import conf

        conf.clear()


def _load(places: Iterable[str], rules: Rules) -> None:
    for name in (*_MODULES, *_OURS):
        import_module(name, __package__)
    schemes = {link.scheme for place in places for link in parse(place).links if link.scheme not in ("", "file", *WEB)}
    for scheme in schemes & set(rules.schemes):
        try:
            from fsspec import get_filesystem_class

            get_filesystem_class("s3" if scheme == "s3a" else scheme)
        except (ImportError, ValueError):
            pass  # the code that needs it reports it with more detail


__all__ = ["become", "enter"]
