"""Buckets that take an object in parts, and show it only when they are told that it is complete: S3 and OSS."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    class Bucket(Protocol):
        """What is asked of a bucket; keys are paths below its name."""

        def begin(self, key: str) -> str: ...

        def send(self, key: str, upload: str, number: int, data: bytes) -> Any: ...

        def complete(self, key: str, upload: str, parts: Sequence[Any]) -> None: ...

        def put(self, key: str, data: bytes) -> None: ...

        def abort(self, key: str, upload: str) -> None: ...

        def remove(self, key: str) -> None: ...


PART = 8 * 1024 * 1024
MOST_PARTS = 9_000
"""Both take 10,000 parts an object."""


def part_size(size: int) -> int:
    """How large the parts of an object are; all alike, as some stores demand."""
    megabyte = 1024 * 1024
    return max(PART, -(-size // MOST_PARTS // megabyte) * megabyte)


def bucket_of(files: Any, path: str) -> tuple[Bucket, str] | None:
    """The bucket that a path is in, and the key; None if the file system is no such store."""
    named = files.protocol
    protocols = (named,) if isinstance(named, str) else tuple(named)
    kind = S3 if "s3" in protocols else Oss if "oss" in protocols else None
    if kind is None:
        return None
    name, _, key = path.strip("/").partition("/")
    return kind(files, name), key


class S3:
    """A bucket of S3, or of anything that speaks like it."""

    def __init__(self, files: Any, name: str) -> None:
        self._files, self._name = files, name

    def _call(self, method: str, key: str, **more: Any) -> Any:
        return self._files.call_s3(method, Bucket=self._name, Key=key, **more)

    def begin(self, key: str) -> str:
        return str(self._call("create_multipart_upload", key)["UploadId"])

    def send(self, key: str, upload: str, number: int, data: bytes) -> Any:
        answer = self._call("upload_part", key, UploadId=upload, PartNumber=number, Body=data)
        sums = {name: answer[name] for name in answer if name.startswith("Checksum") and name != "ChecksumType"}
        return {"PartNumber": number, "ETag": answer["ETag"], **sums}

    def complete(self, key: str, upload: str, parts: Sequence[Any]) -> None:
        self._call("complete_multipart_upload", key, UploadId=upload, MultipartUpload={"Parts": list(parts)})

    def put(self, key: str, data: bytes) -> None:
        self._call("put_object", key, Body=data)

    def abort(self, key: str, upload: str) -> None:
        self._call("abort_multipart_upload", key, UploadId=upload)

    def remove(self, key: str) -> None:
        self._call("delete_object", key)


class Oss:
    """A bucket of Alibaba's OSS."""

    def __init__(self, files: Any, name: str) -> None:
        self._files, self._name = files, name

    def _call(self, method: str, *words: Any) -> Any:
        return self._files._call_oss(method, *words, bucket=self._name)

    def begin(self, key: str) -> str:
        return str(self._call("init_multipart_upload", key).upload_id)

    def send(self, key: str, upload: str, number: int, data: bytes) -> Any:
        return number, self._call("upload_part", key, upload, number, data).etag

    def complete(self, key: str, upload: str, parts: Sequence[Any]) -> None:
        info = import_module("oss2.models").PartInfo
        self._call("complete_multipart_upload", key, upload, [info(number, etag) for number, etag in parts])

    def put(self, key: str, data: bytes) -> None:
        self._call("put_object", key, data)

    def abort(self, key: str, upload: str) -> None:
        self._call("abort_multipart_upload", key, upload)

    def remove(self, key: str) -> None:
        self._call("delete_object", key)
