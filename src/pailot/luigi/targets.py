"""What a job leaves behind, as luigi asks for it."""

from __future__ import annotations

import os
import shutil

import luigi
from luigi.contrib.hdfs import HdfsTarget
from luigi.contrib.hdfs.config import load_hadoop_cmd

from ..data.errors import DataError
from ..data.filesystems import check_driver
from ..settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "PAI_DEFAULT_FS_URI"


def resolved(path: str) -> str:
    """A path with `$PAI_DEFAULT_FS_URI` replaced by what the setting says."""
    if VARIABLE not in path:
        return path
    base = Settings().default_fs_uri
    return path.replace(f"${{{VARIABLE}}}", base).replace(f"${VARIABLE}", base)


def target(uri: str) -> luigi.Target:
    """The target for a folder: on this machine, in HDFS, or wherever fsspec reaches."""
    uri = resolved(uri)
    if uri.startswith("file://"):
        uri = uri.removeprefix("file://")
    if "://" not in uri:
        return Folder(uri)
    if uri.startswith("hdfs://") and _has_hadoop():
        return HdfsTarget(uri)
    return UriTarget(uri)


def check(found: luigi.Target) -> None:
    """Refuse a target that could not be looked at, before anything is done for it."""
    if isinstance(found, UriTarget):
        check_driver(found.uri)


def is_there(found: luigi.Target) -> bool | None:
    """Whether a job has left what it was to leave; a folder that it wrote nothing to counts. None: it cannot be looked at."""
    if isinstance(found, UriTarget):
        try:
            check(found)
        except DataError:
            return None  # without its driver
    if not isinstance(found, Folder):
        return bool(found.exists())
    try:
        os.stat(found.path)
    except PermissionError:
        return None
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _has_hadoop() -> bool:
    """Whether luigi's own way to HDFS can work: by the command `hadoop`, or what luigi's configuration has in its place."""
    return shutil.which(load_hadoop_cmd()[0]) is not None


class Folder(luigi.LocalTarget):
    """A folder of this machine; it is there when something is in it."""

    def exists(self) -> bool:
        try:
            return bool(os.listdir(self.path))
        except NotADirectoryError:
            return True  # a file
        except FileNotFoundError:
            return False


class UriTarget(luigi.Target):
    """A place that an fsspec driver knows."""

    def __init__(self, uri: str) -> None:
        self.uri = self.path = uri

    def exists(self) -> bool:
        check(self)
        import fsspec

        files, path = fsspec.core.url_to_fs(self.uri)
        return bool(files.exists(path))

    def open(self, mode: str = "r") -> Any:
        check(self)
        import fsspec

        return fsspec.open(self.uri, mode).open()

    def __repr__(self) -> str:
        return f"UriTarget({self.uri!r})"
