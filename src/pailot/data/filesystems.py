"""Buckets and file systems behind a URI: which driver, whose credentials, what is there, and errors in one line.

Credentials come from where each driver looks for them: the environment, its own files, fsspec's configuration. They are never
part of a message, and a URI is shown without what is secret in it.
"""

from __future__ import annotations

import os
from hashlib import sha256
from urllib.parse import unquote, urlsplit

from ..install_lines import install_line
from ..values import Value
from . import oss
from .addresses import NotAllowed, parse, refusal
from .errors import DataError
from .rules import OWN_MACHINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from .rules import Rules

EXTRAS = {"s3": "s3", "s3a": "s3", "oss": "oss", "hdfs": "hdfs", "viewfs": "hdfs", "webhdfs": "hdfs"}
"""The extra of this package that brings a scheme's driver."""
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials",
    "oss": "OSS_ACCESS_KEY_ID, OSS_ACCESS_KEY_SECRET and OSS_ENDPOINT",
    "hdfs": "HADOOP_USER_NAME, or a Kerberos ticket",
    "webhdfs": "HADOOP_USER_NAME, or a Kerberos ticket",
    "https": "a line of ~/.netrc",
    "http": "a line of ~/.netrc",
}
_OSS = {"key": "OSS_ACCESS_KEY_ID", "secret": "OSS_ACCESS_KEY_SECRET", "token": "OSS_SESSION_TOKEN"}
_ENDPOINT = "https://oss-cn-hangzhou.aliyuncs.com"
_SECRET = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "OSS_ACCESS_KEY_SECRET", "OSS_SESSION_TOKEN")


class StoreDenied(DataError):
    """Somebody is there, and says no."""


class StoreMissing(DataError):
    """There is no such file, folder or bucket."""


class Silent(DataError):
    """The service cannot be reached at the moment."""


def is_remote(uri: str) -> bool:
    """Whether it is elsewhere: anything but a path of this machine."""
    return not parse(uri).is_path


def scheme_of(uri: str) -> str:
    found = uri.partition("::")[0].partition("://")[0].lower()
    return "s3" if found == "s3a" else found


def shown(uri: str) -> str:
    """A URI as it may be printed: without a password and without a signature."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri.partition("://")[0] + "://…"
    login, at, host = parts.netloc.rpartition("@")
    if at and ":" in login:
        parts = parts._replace(netloc=f"{login.partition(':')[0]}:…@{host}")
    if parts.query and parts.scheme in ("http", "https"):
        parts = parts._replace(query="…")
    return parts.geturl() if at or parts.query else uri


def has_credentials(uri: str) -> bool:
    """Whether it contains a password."""
    try:
        return "://" in uri and bool(urlsplit(uri).password)
    except ValueError:
        return False


def check_driver(uri: str) -> None:
    """Refuse a URI that no installed driver can reach."""
    if not is_remote(uri) or uri.startswith(("http://", "https://")):
        return
    scheme = scheme_of(uri)
    missing = f"{shown(uri)}: the driver for {scheme}:// is not installed"
    try:
        import fsspec
    except ImportError:
        raise DataError(f"{missing}: {install_line(EXTRAS.get(scheme, 'storage'))}") from None
    try:
        fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        how = install_line(EXTRAS[scheme]) if scheme in EXTRAS else str(error)
        raise DataError(f"{missing}: {how}") from None
    except ValueError:
        raise DataError(f"{shown(uri)}: there is no driver for {scheme}://") from None


def connect(uri: str, rules: Rules = OWN_MACHINE) -> tuple[Any, str]:
    """The file system of a URI, and the path in it; NotAllowed if a job may not use it."""
    address = parse(uri)
    problem = refusal(address, rules)
    if problem:
        raise NotAllowed(f"{shown(uri)}: {problem}")
    check_driver(uri)
    if rules.server:
        from .network import check_endpoint

        check_endpoint(address, rules)
    import fsspec

    options: dict[str, object] = {"skip_instance_cache": True}  # or new credentials in the environment would not be seen
    scheme = scheme_of(uri)
    if scheme == "oss":
        options |= {key: os.environ[name] for key, name in _OSS.items() if os.environ.get(name)}
        if not os.environ.get("OSS_ENDPOINT") and not fsspec.config.conf.get("oss", {}).get("endpoint"):
            raise DataError(f"{shown(uri)}: nobody says where the bucket is: set OSS_ENDPOINT, such as {_ENDPOINT}")
    elif rules.server and not rules.credentials:
        options |= _nobody(scheme)
    elif scheme == "webhdfs" and os.environ.get("HADOOP_USER_NAME"):
        options |= {"user": os.environ["HADOOP_USER_NAME"]}
    try:
        files, path = fsspec.core.url_to_fs(uri, **options)
    except Exception as error:
        raise failure(uri, error) from None
    return files, str(path)


def _nobody(scheme: str) -> dict[str, object]:
    """Options that make a driver act without credentials; otherwise it would take those of the machine."""
    if scheme == "s3":
        own = os.path.expanduser("~/.aws/credentials")  # of the job's Unix user
        return {} if os.access(own, os.R_OK) else {"anon": True}
    if scheme == "gs":
        return {"token": "anon"}
    return {"anon": True} if scheme == "az" else {}


def failure(uri: str, error: BaseException) -> DataError:
    """An error of a driver as one line that says what is wrong, and what to do."""
    if isinstance(error, DataError):
        return error
    where, words, scheme = shown(uri), describe(uri, error), scheme_of(uri)
    if scheme == "oss":
        error, words = _of_oss(uri, error, words)
    name = type(error).__name__
    if isinstance(error, FileNotFoundError) or name in ("NoSuchBucket", "NoSuchKey"):
        is_bucket = "bucket does not exist" in words.lower() or "NoSuchBucket" in f"{name}{error.__cause__!r}{error}"
        return StoreMissing(f"{where}: there is no such {'bucket' if is_bucket else 'file'}")
    if isinstance(error, PermissionError) or name in ("NoCredentialsError", "AccessDenied"):
        hint = CREDENTIALS.get(scheme)
        come = f"; its credentials come from {hint}" if hint else ""
        return StoreDenied(f"{where}: access is denied ({words}){come}")
    if isinstance(error, ImportError):
        return DataError(f"{where}: {words}: {install_line(EXTRAS.get(scheme, 'storage'))}")
    return Silent(f"{where}: {words}")


def _of_oss(uri: str, error: BaseException, words: str) -> tuple[BaseException, str]:
    """Its driver knows four of the service's errors, and shows others with all that was signed."""
    answer = oss.answer(error)
    if answer is None:
        why = oss.silence(error)
        return error, _one_line(uri, why) if why else words
    status, code, said = answer
    words = _one_line(uri, said or code or f"the server answered {status}")
    if status in (401, 403):
        return PermissionError(words), words
    if code in ("NoSuchBucket", "NoSuchKey") or (status == 404 and not code):
        return FileNotFoundError(f"{code}: {words}"), words
    return error, words


def describe(uri: str, error: BaseException) -> str:
    """The words of a driver: one line, without anything secret."""
    text = _one_line(uri, getattr(error, "strerror", None) or str(error)) or type(error).__name__
    return text if not isinstance(error, KeyError | TypeError | ValueError) else f"{type(error).__name__}: {text}"


def _one_line(uri: str, words: object) -> str:
    lines = str(words).strip().splitlines()
    text = lines[0][:300] if lines else ""
    for secret in (*(os.environ.get(name, "") for name in _SECRET), *_login(uri)):
        if len(secret) >= 4:
            text = text.replace(secret, "…")
    return text.replace(uri, shown(uri))


def _login(uri: str) -> Iterator[str]:
    try:
        password = urlsplit(uri).password
    except ValueError:
        return
    if password:
        yield password
        yield unquote(password)


# What is there


class StoredFile(Value):
    """A file below a folder."""

    below: str
    path: str
    size: int


class StoredFolder(Value):
    """A folder: its files, sorted, and the folders in it."""

    files: tuple[StoredFile, ...]
    folders: tuple[str, ...]

    @property
    def size(self) -> int:
        return sum(each.size for each in self.files)


def look(files: Any, path: str, uri: str) -> tuple[StoredFolder | int, str]:
    """What a path names, a folder or the size of a file; and a text that changes when that does."""
    try:
        info = {} if uri.endswith("/") else _info(files, path)
        if info.get("type") == "file":
            state = {key: value for key, value in info.items() if isinstance(value, str | int | float)}
            mark = sha256(repr(sorted(state.items())).encode()).hexdigest()
            return int(info.get("size") or info.get("Size") or 0), mark
        found: Mapping[str, Mapping[str, Any]] = _find(files, path)
    except Exception as error:
        raise failure(uri, error) from None
    listing = _listing(found, path, uri)
    if not listing.files and not listing.folders and not _is_folder(files, path, uri):
        raise StoreMissing(f"{shown(uri)}: there is no such file")
    mark = sha256(repr(sorted((name, _version(each)) for name, each in found.items())).encode()).hexdigest()
    return listing, mark


def _info(files: Any, path: str) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = oss.info(files, path) if is_oss(files) else files.info(path)
    except FileNotFoundError:
        return {}  # perhaps a prefix of names, which the listing tells
    return found


def _find(files: Any, path: str) -> Mapping[str, Mapping[str, Any]]:
    invalidate = getattr(files, "invalidate_cache", None)
    if invalidate is not None:
        invalidate()
    found: Mapping[str, Mapping[str, Any]] = (
        dict(oss.find(files, path)) if is_oss(files) else files.find(path, detail=True, withdirs=True)
    )
    return found


def names(files: Any, path: str) -> Iterable[str]:
    """The files below a path; none if there is no such folder."""
    try:
        found: Iterable[str] = [name for name, _ in oss.find(files, path)] if is_oss(files) else files.find(path)
    except FileNotFoundError:
        return ()
    return found


def _is_folder(files: Any, path: str, uri: str) -> bool:
    if is_oss(files):
        return not files.split_path(path.rstrip("/"))[1]  # a bucket; a folder is there as long as something is in it
    try:
        return bool(files.isdir(path))
    except Exception as error:
        raise failure(uri, error) from None


def is_oss(files: Any) -> bool:
    return "oss" in ((files.protocol,) if isinstance(files.protocol, str) else files.protocol)


def _version(info: Mapping[str, Any]) -> str:
    keys = ("size", "Size", "ETag", "etag", "LastModified", "mtime", "modification_time", "modificationTime", "created")
    return repr([info.get(key) for key in keys])


def _listing(found: Mapping[str, Mapping[str, Any]], path: str, uri: str) -> StoredFolder:
    root = path.strip("/")
    entries, folders = [], set()
    for name, info in sorted(found.items()):
        full = name.strip("/")
        if full == root:
            continue
        below = full[len(root) :].lstrip("/") if root else full
        if any(part in ("", ".", "..") for part in below.split("/")) or "\0" in below:
            raise DataError(f"{shown(uri)}: holds {below!r}, which cannot be the name of a file here")
        if info.get("type") == "directory" or name.endswith("/"):
            folders.add(below)
        else:
            entries.append(StoredFile(below, name, int(info.get("size") or info.get("Size") or 0)))
    return StoredFolder(tuple(entries), tuple(sorted(folders)))


def probe_input(uri: str) -> None:
    """Refuse an input that is not there, before anything is done."""
    if uri.startswith(("http://", "https://")) or not is_remote(uri):
        return
    files, path = connect(uri)
    try:
        if is_oss(files):
            there = (not uri.endswith("/") and bool(_info(files, path))) or any(True for _ in oss.find(files, path))
        elif uri.endswith("/"):
            there = files.isdir(path)
        else:
            there = files.exists(path)
            if not there:
                files.info(path)  # says why not
    except Exception as error:
        raise failure(uri, error) from None
    if not there:
        raise StoreMissing(f"{shown(uri)}: there is no such {'folder' if uri.endswith('/') else 'file'}")


def probe_output(uri: str) -> None:
    """Refuse an output whose bucket is not there, or says no, before anything is done."""
    scheme = scheme_of(uri)
    if scheme not in ("s3", "oss"):
        return
    files, path = connect(uri)
    bucket = path.strip("/").partition("/")[0]
    try:
        if scheme == "s3":
            files.call_s3("head_bucket", Bucket=bucket)
        else:
            files._call_oss("get_bucket_info", bucket=bucket)
    except PermissionError as error:
        if oss.is_anonymous(files) if scheme == "oss" else not files.key and not os.environ.get("AWS_ACCESS_KEY_ID"):
            raise failure(uri, error) from None
        return  # who may write need not be allowed to look
    except Exception as error:
        found = failure(uri, error)
        raise StoreMissing(f"{shown(uri)}: there is no such bucket") if isinstance(found, StoreMissing) else found from None
