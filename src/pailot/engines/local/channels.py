"""The folders that tasks of a job share, laid out as /ml is in Alibaba's PAI.

Inside a container or sandbox they really are /ml; without one the same layout stands in the attempt's folder. The variables
tell. What is on this machine is shown as it is, what is elsewhere is fetched first; outputs are brought to their targets
when the job has succeeded, so that whoever finds them finds them whole.
"""

from __future__ import annotations

import os

from ..base import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...protocol.model import Channels

INSIDE = "/ml"


def make(channels: Channels, folder: str, cache: str = "", cwd: str = "", *, mounted: bool = False) -> list[tuple[str, str]]:
    """The layout: code, configuration, a folder for each channel, with the data that the job names.

    Answers what of this machine is shown below the folder, as (path, place in the folder): by links, unless they are
    `mounted` there by a container.
    """
    for part in ("usercode", "input/config", "input/data", *(f"output/{each}" for each in channels.outputs)):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
    if channels.hyperparameters is not None:
        import json

        with open(os.path.join(folder, "input/config/hyperparameters.json"), "w", encoding="utf-8") as stream:
            json.dump(dict(channels.hyperparameters), stream)
    if channels.code:
        _bring_code(channels.code, os.path.join(folder, "usercode"), cache, cwd)
    shown = []
    files: dict[str, str] = {}
    for name in channels.inputs:
        place = f"input/data/{name}"
        source = channels.sources.get(name)
        path = _fetched(source, cache, cwd) if source else ""
        if source and not os.path.isdir(path):
            files[name] = os.path.basename(path)
        if not source:
            os.makedirs(os.path.join(folder, place), exist_ok=True)
        elif _is_remote(source):
            _copy(path, os.path.join(folder, place))  # the cache is not the task's to change
        else:
            place = place if os.path.isdir(path) else f"{place}/{os.path.basename(path)}"
            shown.append((path, place))
            os.makedirs(os.path.dirname(os.path.join(folder, place)), exist_ok=True)
            if not mounted:
                os.symlink(path, os.path.join(folder, place))
    if files:
        from ...runtime.records import write_record

        write_record(f"{folder}.files.json", files, durable=False)
    return shown


def fetched(channels: Channels) -> list[str]:
    """What is not on this machine and so must be fetched first."""
    return [uri for uri in (*channels.sources.values(), channels.code or "") if _is_remote(uri)]


def variables(channels: Channels, base: str, folder: str = "") -> dict[str, str]:
    """Where a task finds them; `base` is /ml or the folder that stands for it, `folder` that folder as it is here."""
    found = {"PAI_WORKING_DIR": f"{base}/usercode/", "PAI_CONFIG_DIR": f"{base}/input/config/"}
    files = _only_files(folder)
    for name in channels.inputs:
        found[f"PAI_INPUT_{_spelled(name)}"] = f"{base}/input/data/{name}/{files.get(name, '')}"
    for name in channels.outputs:
        found[f"PAI_OUTPUT_{_spelled(name)}"] = f"{base}/output/{name}/"
    return found


def publish(channels: Channels, folder: str, cwd: str = "") -> None:
    """Bring the outputs of a job that has succeeded to their targets."""
    for name, target in channels.targets.items():
        source = os.path.join(folder, "output", name)
        try:
            if _is_remote(target):
                _put(source, target)
            else:
                _move(source, _local(target, cwd))
        except EngineError:
            raise
        except Exception as error:  # each file system has errors of its own
            words = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            raise EngineError(f"the output '{name}' could not be brought to {target}: {words}") from None


def check_uri(uri: str) -> None:
    """Refuse a URI that no installed driver can reach."""
    if not _is_remote(uri) or uri.startswith(("http://", "https://")):
        return
    scheme = uri.partition("://")[0]
    extra = {"s3": "s3", "s3a": "s3", "oss": "oss", "hdfs": "hdfs"}.get(scheme, "storage")
    try:
        import fsspec

        fsspec.get_filesystem_class(scheme)
    except ImportError:
        raise EngineError(f"{uri}: the driver for {scheme}:// is not installed: pip install 'pailot[{extra}]'") from None
    except ValueError:
        raise EngineError(f"{uri}: there is no driver for {scheme}://") from None


def _only_files(folder: str) -> dict[str, str]:
    """The names of the files that channels are whose source is no folder."""
    from ...runtime.records import read_record

    return read_record(f"{folder}.files.json") or {} if folder else {}


def _spelled(name: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name).upper()


def _is_remote(uri: str) -> bool:
    return "://" in uri and not uri.startswith("file://")


def _local(uri: str, cwd: str) -> str:
    from .provide import Source

    return Source(uri, uri).path(cwd)


def _fetched(uri: str, cache: str, cwd: str) -> str:
    from .provide import fetch

    return fetch(uri, cache, cwd)


def _bring_code(source: str, target: str, cache: str, cwd: str) -> None:
    """A folder is copied, an archive unpacked: what a task writes beside its code is not the user's."""
    path = _fetched(source, cache, cwd)
    if os.path.isdir(path):
        _copy(path, target)
        return
    import tarfile

    if tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            archive.extractall(target, filter="tar")
    else:
        _copy(path, target)


def _copy(path: str, target: str) -> None:
    import shutil

    if os.path.isdir(path):
        shutil.copytree(path, target, symlinks=True, dirs_exist_ok=True)
    else:
        os.makedirs(target, exist_ok=True)
        shutil.copy2(path, target)


def _move(source: str, target: str) -> None:
    """Into place at once, if nothing is there; else file by file, each whole."""
    import shutil

    target = target.rstrip("/") or "/"
    os.makedirs(os.path.dirname(target), exist_ok=True)
    near = f"{target}.{os.urandom(4).hex()}.part"
    try:
        shutil.copytree(source, near, symlinks=True)
        try:
            os.rename(near, target)  # over an empty folder, too
            return
        except OSError:
            pass  # something is there
        for parent, _, files in os.walk(near):
            into = os.path.normpath(os.path.join(target, os.path.relpath(parent, near)))
            os.makedirs(into, exist_ok=True)
            for file in files:
                os.replace(os.path.join(parent, file), os.path.join(into, file))
    finally:
        shutil.rmtree(near, ignore_errors=True)


def _put(source: str, target: str) -> None:
    check_uri(target)
    import fsspec

    files, path = fsspec.core.url_to_fs(target)
    path = path.rstrip("/")
    if any(each in files.protocol for each in ("hdfs", "webhdfs", "memory", "sftp", "ftp")) and not files.exists(path):
        part = f"{path}.{os.urandom(4).hex()}.part"  # these can rename at once; a bucket cannot
        files.put(source + "/", part + "/", recursive=True)
        files.mv(part, path, recursive=True)
        return
    files.put(source + "/", path + "/", recursive=True)
