"""Where the data of channels is: paths, URIs, file systems and data sets that the settings say where to find."""

from __future__ import annotations

import os
import re

from ..data.errors import DataError
from ..data.filesystems import check_driver, has_credentials, probe_input, probe_output, shown
from ..data.location import Location
from ..settings import Settings
from .alibaba_types import DatasetConfig, UriInput, UriOutput, adopt
from .errors import InvalidProcessor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .alibaba_types import Record

_DATASET = re.compile(r"d-[a-z0-9]{4,}\Z")
_MOUNTED = ("nas://", "cpfs://", "bmcpfs://")
CHANNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


class FileSystemInputBase:
    """A file system as an input; `mounts` in the settings says where it is mounted."""

    def to_input_uri(self, region: str = "local") -> str:
        """The URI of the input, for the file systems of a region."""
        raise NotImplementedError


class FileSystemInput(FileSystemInputBase):
    """A folder of a NAS file system."""

    def __init__(self, file_system_id: str, directory_path: str | None = None) -> None:
        self.file_system_id, self.directory_path = file_system_id, directory_path

    def to_input_uri(self, region: str = "local") -> str:
        """The URI of the input: `nas://ID.REGION/FOLDER`."""
        return f"nas://{self.file_system_id}.{region}/{(self.directory_path or '').strip('/')}"


class CpfsFileSystemInput(FileSystemInputBase):
    """An export of a CPFS file system."""

    def __init__(self, file_system_id: str, protocol_service_id: str, export_id: str) -> None:
        self.file_system_id, self.protocol_service_id, self.export_id = file_system_id, protocol_service_id, export_id

    def to_input_uri(self, region: str = "local") -> str:
        """The URI of the input: `cpfs://ID.REGION/SERVICE/EXPORT/`."""
        return f"cpfs://{self.file_system_id}.{region}/{self.protocol_service_id}/{self.export_id}/"


def resolve_input(name: str, value: Any, region: str, *, far: bool, here: bool = False) -> tuple[Record, str]:
    """An input as the job's record shows it, and the URI that its data is brought from; looked for, if it runs `here`."""
    record, uri = _resolve(name, value, region, "input")
    if uri.startswith("odps://"):
        raise InvalidProcessor(f"the input '{name}' is a table ({uri}); tables are not supported, export it to files first")
    _check(name, "input", uri, far=far, here=here)
    path = local_path(uri)
    if path is not None and not os.path.exists(path):
        raise InvalidProcessor(f"the input '{name}' does not exist: {path}")
    return record or UriInput(name, uri), uri if path is None else path


def resolve_output(name: str, value: Any, region: str, *, far: bool, here: bool = False) -> tuple[Record, str]:
    """An output as the job's record shows it, and the URI that its data is brought to; looked for, if it runs `here`."""
    record, uri = _resolve(name, value, region, "output")
    if uri.startswith(("http://", "https://", "odps://")):
        raise InvalidProcessor(f"the output '{name}' cannot be written to {uri}")
    _check(name, "output", uri, far=far, here=here)
    uri = uri.rstrip("/") + "/"
    path = local_path(uri)
    if path is not None and os.path.exists(path) and not os.path.isdir(path):
        raise InvalidProcessor(f"the output '{name}' should be a folder, and {path} is a file")
    return record or UriOutput(name, uri), uri if path is None else path


def local_path(uri: str) -> str | None:
    """The path of what is on this machine."""
    if "://" in uri and not uri.startswith("file://"):
        return None

    return Location(uri, uri).path(os.getcwd())


def mounted(key: str, mounts: Mapping[str, Any], what: str) -> str:
    """Where a file system or data set is to be found, by the table in the settings."""
    if key not in mounts:
        raise InvalidProcessor(f'{what}: say where it is in pailot.toml, in the table mounts: "{key}" = "/path"')
    return str(mounts[key])


def record_of(name: str, value: Any, region: str, kind: str) -> Record:
    """What a job's record shows of an input or output ('input', 'output'); nothing is looked for yet."""
    record, uri = _resolve(name, value, region, kind)
    return record or (UriInput(name, uri) if kind == "input" else UriOutput(name, uri))


def adopted(value: Any) -> Any:
    """An input or output as one of our records; a subclass may have made of it what it likes."""
    found = _of_theirs(value)
    if not isinstance(found, DatasetConfig | UriInput | UriOutput) or not found.name:
        raise InvalidProcessor(f"an input or output should have a Name, and an InputUri, OutputUri or DatasetId, is {value!r}")
    return found


def _of_theirs(value: Any) -> Any:
    """A record or file system of Alibaba's own SDK as ours."""
    if isinstance(value, str | os.PathLike) or value is None:
        return value
    if hasattr(value, "protocol_service_id") and hasattr(value, "export_id"):
        return CpfsFileSystemInput(value.file_system_id, value.protocol_service_id, value.export_id)
    if hasattr(value, "file_system_id"):
        return FileSystemInput(value.file_system_id, getattr(value, "directory_path", None))
    for kind in (DatasetConfig, UriInput, UriOutput):
        found = adopt(kind, value)
        if found is not value:
            return found
    return value


def _resolve(name: str, value: Any, region: str, kind: str) -> tuple[Record | None, str]:
    if not isinstance(value, FileSystemInputBase):
        value = _of_theirs(value)
    if isinstance(value, FileSystemInputBase):
        value = value.to_input_uri(region)
    if isinstance(value, DatasetConfig):
        found = mounted(value.dataset_id, Settings().mounts, f"the {kind} '{name}' is the data set {value.dataset_id}")
        return DatasetConfig(value.dataset_id, name, value.dataset_name), found
    if isinstance(value, UriInput):
        value = value.input_uri
    if isinstance(value, UriOutput):
        value = value.output_uri
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str) or not value:
        raise InvalidProcessor(f"the {kind} '{name}' should be a path, a URI, a file system or a data set, is {value!r}")
    if value.startswith(_MOUNTED):
        return (UriInput(name, value) if kind == "input" else UriOutput(name, value)), _on_mount(name, value, kind)
    if _DATASET.match(value) and not os.path.exists(value):
        found = mounted(value, Settings().mounts, f"the {kind} '{name}' is the data set {value}")
        return DatasetConfig(value, name), found
    return None, value


def _on_mount(name: str, uri: str, kind: str) -> str:
    scheme, _, rest = uri.partition("://")
    host, _, below = rest.partition("/")
    mounts = Settings().mounts
    identity = host.partition(".")[0]
    key = next((each for each in (f"{scheme}://{host}", f"{scheme}://{identity}", identity) if each in mounts), identity)
    base = mounted(key, mounts, f"the {kind} '{name}' is on the file system {identity}")
    return os.path.join(base, below) if below else base


def _check(name: str, kind: str, uri: str, *, far: bool, here: bool) -> None:
    if not CHANNEL.match(name):
        raise InvalidProcessor(f"the {kind} channel '{name}' has a bad name; use letters, digits, '.', '-' and '_' only")
    if has_credentials(uri):
        words = "has a password in it, which would be kept with the job; put it into the environment or ~/.netrc"
        raise InvalidProcessor(f"the {kind} '{name}' ({shown(uri)}) {words}")
    try:
        check_driver(uri)
        if here:
            (probe_input if kind == "input" else probe_output)(uri)
    except DataError as error:
        raise InvalidProcessor(f"the {kind} '{name}': {error}") from None
    if far and local_path(uri) is not None:
        raise InvalidProcessor(
            f"the {kind} '{name}' is a path of this machine ({uri}), which the server cannot see; use a URI that both can reach"
        )
