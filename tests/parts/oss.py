"""A stand-in for Alibaba's OSS, in a thread: buckets in memory behind its HTTP interface, with signatures of version 1.

There is no OSS server to be had, so this one is written after the public description of the protocol. It is as strict as that
says: each request is signed, parts must be large enough, be named in order and with their sums, a range that does not fit is
answered with the whole object.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import threading
import time
import uuid
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, quote, unquote
from xml.etree import ElementTree as Xml

import pytest

KEY, SECRET = "the-key-of-a-test", "the-very-secret-secret-of-a-test"
BEGAN = "2026-01-01T00:00:00.000Z"
SMALLEST_PART = 100 * 1024
"""Of all but the last."""
SIGNED = {
    "acl", "append", "bucketInfo", "continuation-token", "cors", "delete", "encryption", "lifecycle", "location", "logging",
    "objectMeta", "partNumber", "policy", "position", "referer", "restore", "security-token", "stat", "symlink", "tagging",
    "uploadId", "uploads", "versionId", "versioning", "versions", "website", "x-oss-process", "x-oss-traffic-limit",
}  # fmt: skip
"""The parameters of a query that are a part of what is signed; those that begin with response- are, too."""


@dataclass(frozen=True)
class Stored:
    data: bytes
    etag: str
    modified: float = field(default_factory=time.time)

    @property
    def iso(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(self.modified))


@dataclass
class Upload:
    key: str
    parts: dict[int, Stored] = field(default_factory=dict)


@dataclass
class Bucket:
    objects: dict[str, Stored] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, code: str, words: str, **more: str) -> None:
        super().__init__(code)
        self.status, self.code, self.words, self.more = status, code, words, more


class Oss:
    """The server, with one bucket named `bucket`; needs ossfs on the side of the client."""

    def __init__(self) -> None:
        pytest.importorskip("ossfs", reason="there is no driver for OSS; enable this test with: pip install 'pailot[oss]'")
        self.buckets = {"bucket": Bucket()}
        self.lock = threading.Lock()
        self.seen: list[tuple[str, str, int]] = []
        """Requests: the method, the path with its query, the status of the answer."""
        oss = self

        class Bound(Handler):
            server_part = oss

        self.web = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
        self.thread = threading.Thread(target=self.web.serve_forever, kwargs={"poll_interval": 0.01})
        self.environment = {
            "OSS_ACCESS_KEY_ID": KEY,
            "OSS_ACCESS_KEY_SECRET": SECRET,
            "OSS_ENDPOINT": f"http://127.0.0.1:{self.web.server_address[1]}",
        }

    def __enter__(self) -> Oss:
        self.thread.start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None) -> None:
        self.web.shutdown()
        self.web.server_close()
        self.thread.join()

    # What is in the bucket, seen from behind.

    def objects(self, prefix: str = "") -> dict[str, int]:
        with self.lock:
            found = self.buckets["bucket"].objects
            return {key: len(each.data) for key, each in found.items() if key.startswith(prefix)}

    def put(self, key: str, data: bytes) -> None:
        with self.lock:
            self.buckets["bucket"].objects[key] = stored(data)

    def get(self, key: str) -> bytes:
        with self.lock:
            return self.buckets["bucket"].objects[key].data

    def uploads(self) -> list[str]:
        """Uploads that were begun and are neither complete nor aborted."""
        with self.lock:
            return [each.key for each in self.buckets["bucket"].uploads.values()]


def stored(data: bytes) -> Stored:
    return Stored(data, f'"{hashlib.md5(data, usedforsecurity=False).hexdigest().upper()}"')


def element(name: str, *inside: Xml.Element, **leaves: object) -> Xml.Element:
    made = Xml.Element(name)
    for key, value in leaves.items():
        Xml.SubElement(made, key).text = str(value)
    made.extend(inside)
    return made


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_part: Oss

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self.query = dict(parse_qsl(query, keep_blank_values=True))
        self.name, _, self.key = unquote(path).removeprefix("/").partition("/")
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            with self.server_part.lock:
                self._check_signature()
                self._check_sum()
                answer = self._answer()
        except Refused as error:
            self._refuse(error)
        else:
            self._send(*answer)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815  # the names that the standard library looks for

    # Answers

    def _send(self, status: int, headers: dict[str, str], data: bytes | Xml.Element = b"") -> None:
        if isinstance(data, Xml.Element):
            headers = {"Content-Type": "application/xml", **headers}
            data = b'<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(data)
        self.server_part.seen.append((self.command, self.path, status))
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), "x-oss-request-id": uuid.uuid4().hex.upper(), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(data)

    def _refuse(self, error: Refused) -> None:
        words = {"Code": error.code, "Message": error.words, "RequestId": uuid.uuid4().hex.upper(), "HostId": "127.0.0.1"}
        self._send(error.status, {}, element("Error", **words, **error.more))

    # Who asks

    def _check_signature(self) -> None:
        kind, _, given = (self.headers.get("Authorization") or "").partition(" ")
        if kind != "OSS":
            raise Refused(403, "AccessDenied", "You have no right to access this object because of bucket acl.")
        who, _, signature = given.partition(":")
        if who != KEY:
            raise Refused(
                403, "InvalidAccessKeyId", "The OSS Access Key Id you provided does not exist in our records.", OSSAccessKeyId=who
            )
        ours = sorted((name.lower(), value.strip()) for name, value in self.headers.items() if name.lower().startswith("x-oss-"))
        signed = sorted(item for item in self.query.items() if item[0] in SIGNED or item[0].startswith("response-"))
        resource = f"/{self.name}/{self.key}" if self.name else "/"
        if signed:
            resource += "?" + "&".join(f"{name}={value}" if value else name for name, value in signed)
        head = [self.command, *(self.headers.get(name) or "" for name in ("Content-MD5", "Content-Type", "Date"))]
        text = "\n".join([*head, "".join(f"{name}:{value}\n" for name, value in ours) + resource])
        right = base64.b64encode(hmac.digest(SECRET.encode(), text.encode(), "sha1")).decode()
        if not hmac.compare_digest(right, signature):
            raise Refused(
                403,
                "SignatureDoesNotMatch",
                "The request signature we calculated does not match the signature you provided.",
                OSSAccessKeyId=who,
                SignatureProvided=signature,
                StringToSign=text,
            )

    def _check_sum(self) -> None:
        given = self.headers.get("Content-MD5")
        if given and base64.b64decode(given) != hashlib.md5(self.body, usedforsecurity=False).digest():
            raise Refused(400, "InvalidDigest", "The Content-MD5 you specified did not match what we received.")

    # What is asked

    def _answer(self) -> tuple[Any, ...]:
        if not self.name:
            more = {"Location": "oss-test", "CreationDate": BEGAN, "StorageClass": "Standard"}
            more |= {"ExtranetEndpoint": "127.0.0.1", "IntranetEndpoint": "127.0.0.1"}
            each = [element("Bucket", Name=name, **more) for name in sorted(self.server_part.buckets)]
            return 200, {}, element("ListAllMyBucketsResult", element("Buckets", *each), IsTruncated="false")
        bucket = self.server_part.buckets.get(self.name)
        if bucket is None:
            raise Refused(404, "NoSuchBucket", "The specified bucket does not exist.", BucketName=self.name)
        return self._of_object(bucket) if self.key else self._of_bucket(bucket)

    def _of_bucket(self, bucket: Bucket) -> tuple[Any, ...]:
        asked = self.command, next((word for word in ("bucketInfo", "uploads", "delete") if word in self.query), "")
        if asked == ("GET", "bucketInfo"):
            names = {
                "Name": self.name,
                "Location": "oss-test",
                "StorageClass": "Standard",
                "CreationDate": BEGAN,
                "ExtranetEndpoint": "127.0.0.1",
                "IntranetEndpoint": "127.0.0.1",
            }
            acl = element("AccessControlList", Grant="private")
            made = element("Bucket", acl, element("Owner", ID="1", DisplayName="1"), **names)
            return 200, {}, element("BucketInfo", made)
        if asked == ("GET", "uploads"):
            each = [
                element("Upload", Key=self._spelled(upload.key), UploadId=name, Initiated=BEGAN)
                for name, upload in sorted(bucket.uploads.items(), key=lambda item: (item[1].key, item[0]))
                if upload.key.startswith(self.query.get("prefix", ""))
            ]
            words = {
                "Bucket": self.name,
                "IsTruncated": "false",
                "NextKeyMarker": "",
                "NextUploadIdMarker": "",
                **self._encoding(),
            }
            return 200, {}, element("ListMultipartUploadsResult", *each, **words)
        if asked == ("POST", "delete"):
            wanted = [each.findtext("Key") or "" for each in self._xml().findall("Object")]
            for key in wanted:
                bucket.objects.pop(key, None)
            return (
                200,
                {},
                element("DeleteResult", *(element("Deleted", Key=self._spelled(key)) for key in wanted), **self._encoding()),
            )
        if asked == ("GET", ""):
            return 200, {}, self._list(bucket)
        raise self._unknown()

    def _of_object(self, bucket: Bucket) -> tuple[Any, ...]:
        if "uploads" in self.query and self.command == "POST":
            name = uuid.uuid4().hex.upper()
            bucket.uploads[name] = Upload(self.key)
            words = {"Bucket": self.name, "Key": self._spelled(self.key), "UploadId": name}
            return 200, {}, element("InitiateMultipartUploadResult", **words, **self._encoding())
        if "uploadId" in self.query:
            return self._of_upload(bucket, self.query["uploadId"])
        if self.command == "PUT":
            bucket.objects[self.key] = made = stored(self.body)
            return 200, {"ETag": made.etag}
        if self.command == "DELETE":
            bucket.objects.pop(self.key, None)
            return 204, {}
        if self.command not in ("GET", "HEAD"):
            raise self._unknown()
        found = bucket.objects.get(self.key)
        if found is None:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.", Key=self.key)
        headers = {
            "ETag": found.etag,
            "Last-Modified": formatdate(found.modified, usegmt=True),
            "Content-Type": "application/octet-stream",
            "Accept-Ranges": "bytes",
            "x-oss-object-type": "Normal",
            "x-oss-storage-class": "Standard",
        }
        return self._ranged(found.data, headers) if self.command == "GET" else (200, headers, found.data)

    def _ranged(self, data: bytes, headers: dict[str, str]) -> tuple[Any, ...]:
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if wanted is None or not (wanted[1] or wanted[2]):
            return 200, headers, data
        last = len(data) - 1
        start = int(wanted[1]) if wanted[1] else len(data) - int(wanted[2])
        end = int(wanted[2]) if wanted[1] and wanted[2] else last
        if not 0 <= start <= end <= last:
            if self.headers.get("x-oss-range-behavior") != "standard":
                return 200, headers, data
            if not 0 <= start <= last:
                raise Refused(416, "InvalidRange", "The requested range cannot be satisfied.")
            end = last
        return 206, {**headers, "Content-Range": f"bytes {start}-{end}/{len(data)}"}, data[start : end + 1]

    def _of_upload(self, bucket: Bucket, name: str) -> tuple[Any, ...]:
        upload = bucket.uploads.get(name)
        if upload is None or upload.key != self.key:
            raise Refused(404, "NoSuchUpload", "The specified upload does not exist.", UploadId=name)
        if self.command == "PUT":
            number = int(self.query["partNumber"])
            if not 1 <= number <= 10_000:
                raise Refused(400, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive.")
            upload.parts[number] = made = stored(self.body)
            return 200, {"ETag": made.etag}
        if self.command == "DELETE":
            del bucket.uploads[name]
            return 204, {}
        if self.command == "GET":
            each = [
                element("Part", PartNumber=number, ETag=part.etag, Size=len(part.data), LastModified=part.iso)
                for number, part in sorted(upload.parts.items())
            ]
            words = {"Bucket": self.name, "Key": self._spelled(self.key), "UploadId": name, "IsTruncated": "false"}
            words["NextPartNumberMarker"] = str(max(upload.parts, default=0))
            return 200, {}, element("ListPartsResult", *each, **words, **self._encoding())
        if self.command != "POST":
            raise self._unknown()
        bucket.objects[self.key] = whole = self._joined(upload)
        del bucket.uploads[name]
        words = {"Bucket": self.name, "Key": self._spelled(self.key), "ETag": whole.etag, "Location": self.path}
        return 200, {"ETag": whole.etag}, element("CompleteMultipartUploadResult", **words, **self._encoding())

    def _joined(self, upload: Upload) -> Stored:
        named = [(int(each.findtext("PartNumber") or 0), each.findtext("ETag") or "") for each in self._xml().findall("Part")]
        if not named or [number for number, _ in named] != sorted({number for number, _ in named}):
            raise Refused(400, "InvalidPartOrder", "The list of parts was not in ascending order.")
        for number, etag in named:
            part = upload.parts.get(number)
            if part is None or part.etag.strip('"') != etag.strip('"').upper():
                raise Refused(400, "InvalidPart", "One or more of the specified parts could not be found.")
            if number != named[-1][0] and len(part.data) < SMALLEST_PART:
                raise Refused(400, "EntityTooSmall", "Your proposed upload smaller than the minimum allowed size.")
        data = b"".join(upload.parts[number].data for number, _ in named)
        return Stored(data, f'{stored(data).etag[:-1]}-{len(named)}"')

    def _list(self, bucket: Bucket) -> Xml.Element:
        """Both versions."""
        second = self.query.get("list-type") == "2"
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter", "")
        most = int(self.query.get("max-keys") or 100)
        token = base64.b64decode(self.query.get("continuation-token", "")).decode()
        after = max(token, self.query.get("start-after", "")) if second else self.query.get("marker", "")
        contents: list[Xml.Element] = []
        prefixes: dict[str, None] = {}
        last, more = "", False
        for key, found in sorted(bucket.objects.items()):
            inside, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            name = f"{prefix}{inside}{cut}" if cut else key
            if not key.startswith(prefix) or name <= after or name in prefixes:
                continue
            if len(contents) + len(prefixes) == most:
                more = True
                break
            last = name
            if cut:
                prefixes[name] = None
                continue
            words = {
                "LastModified": found.iso,
                "ETag": found.etag,
                "Type": "Normal",
                "Size": len(found.data),
                "StorageClass": "Standard",
            }
            contents.append(element("Contents", Key=self._spelled(key), **words))
        folders = [element("CommonPrefixes", Prefix=self._spelled(each)) for each in prefixes]
        words = {"Name": self.name, "Prefix": self._spelled(prefix), "MaxKeys": most, "Delimiter": self._spelled(delimiter)}
        words |= {"IsTruncated": str(more).lower(), **self._encoding()}
        if second:
            words["KeyCount"] = len(contents) + len(prefixes)
        if more and second:
            words["NextContinuationToken"] = base64.b64encode(last.encode()).decode()
        elif more:
            words["NextMarker"] = self._spelled(last)
        return element("ListBucketResult", *contents, *folders, **words)

    # Spelling

    def _spelled(self, key: str) -> str:
        return quote(key, safe="") if self._encoding() else key

    def _encoding(self) -> dict[str, str]:
        return {"EncodingType": "url"} if self.query.get("encoding-type") == "url" else {}

    def _xml(self) -> Xml.Element:
        try:
            return Xml.fromstring(self.body)
        except Xml.ParseError:
            raise Refused(400, "MalformedXML", "The XML you provided was not well-formed.") from None

    def _unknown(self) -> Refused:
        return Refused(405, "MethodNotAllowed", "The specified method is not allowed against this resource.")
