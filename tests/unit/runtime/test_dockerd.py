"""What the daemon is asked for, and what is left to Docker's own program."""

from __future__ import annotations

import pytest

from pailot.runtime import docker_api


def test_plain_words_become_one_question() -> None:
    asked = docker_api.body(
        [
            *docker_api.mount("/data", "/mnt/data", read_only=True),
            "--memory", "200m", "--memory-swap", "200m", "--cpus", "2", "--shm-size", "64m",
            "--label", "pailot.job=me~a=b", "--user", "5:6", "--tmpfs", "/run/x:rw,size=1m",
            "--log-driver", "none", "--network", "host", "--pull", "never", "--env", "a-b=c",
        ]
    )  # fmt: skip
    assert asked == {
        "Labels": {"pailot.job": "me~a=b"},
        "Env": ["a-b=c"],
        "User": "5:6",
        "HostConfig": {
            "Mounts": [{"Type": "bind", "Source": "/data", "Target": "/mnt/data", "ReadOnly": True}],
            "Memory": 200 << 20,
            "MemorySwap": 200 << 20,
            "NanoCpus": 2_000_000_000,
            "ShmSize": 64 << 20,
            "Tmpfs": {"/run/x": "rw,size=1m"},
            "LogConfig": {"Type": "none"},
            "NetworkMode": "host",
        },
    }


@pytest.mark.parametrize(
    "more",
    [("--gpus", "all"), ("--network", "other"), ("--publish", "1:1"), ("--device", "/dev/x"), docker_api.mount("/a, b")],
)
def test_others_are_left_to_the_program(more: tuple[str, str]) -> None:
    assert docker_api.body(more) is None


def test_a_daemon_that_is_not_there_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert docker_api.run("/nowhere/docker.sock", "name", {}) == docker_api.FAILED
    assert "Cannot connect to the Docker daemon at /nowhere/docker.sock" in capfd.readouterr().err
