"""What is in a bucket of OSS, asked of the service itself.

Its driver for fsspec looks at a file by listing the folder that it is in, and at a folder with one request for each folder below;
and it does not tell the sums by which a change is seen.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

PAGE = 1000


def info(files: Any, path: str) -> Mapping[str, Any]:
    """An object."""
    bucket, key = files.split_path(path)
    if not key:
        return {"type": "directory"}
    found = files._call_oss("head_object", key, bucket=bucket)
    return {"type": "file", "size": found.content_length, "ETag": found.etag, "LastModified": found.last_modified}


def find(files: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects below a path, in the order of their names."""
    bucket, key = files.split_path(path.rstrip("/"))
    prefix = f"{key}/" if key else ""
    for each in files._call_oss("ObjectIterator", prefix=prefix, max_keys=PAGE, bucket=bucket):
        yield f"{bucket}/{each.key}", {"type": "file", "size": each.size, "ETag": each.etag, "LastModified": each.last_modified}


def is_anonymous(files: Any) -> bool:
    return type(files._auth).__name__ == "AnonymousAuth"


def answer(error: BaseException) -> tuple[int, str, str] | None:
    """What the service returned: status, code and message. None if the error does not come from the service."""
    for each in (error, error.__cause__):
        status, code, words = (getattr(each, name, None) for name in ("status", "code", "message"))
        if isinstance(status, int) and status > 0 and isinstance(code, str) and isinstance(words, str):
            return status, code, words
    return None


def silence(error: BaseException) -> str:
    """Why there was no answer; empty if the driver does not say."""
    for each in (error, error.__cause__):
        body = getattr(each, "body", None)
        if isinstance(body, str) and body:
            return body.removeprefix("RequestError: ")
    return ""
