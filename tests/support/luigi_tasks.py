"""What the tests of Luigi tasks share: a place of their own, a task as in a pipeline of today, and luigi's own workers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import luigi
import pytest
from luigi.configuration import get_config

from pailot.luigi import PaiTask, TaskRole, auth, backends

__all__ = ["Failing", "Hello", "build", "configure", "here", "wait_for_file"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    config = get_config()
    configure(pai_url="local")
    auth.KNOWN.clear()
    backends._FOUND.clear()
    yield tmp_path / "here"
    for option in ("pai_url", "username", "password", "token", "expiration"):
        if config.has_option("OpenPai", option):
            config.remove_option("OpenPai", option)
    luigi.task_register.Register.clear_instance_cache()


def configure(**options: str) -> None:
    luigi.task_register.Register.clear_instance_cache()
    for name, value in options.items():
        get_config().set("OpenPai", name, value)


class Hello(PaiTask):
    """As in a pipeline of today."""

    mark = luigi.Parameter(default="hello")
    command = 'echo "$PAI_JOB_NAME"; echo done >"$PAI_OUTPUT_DIR/file"'

    @property
    def name(self) -> str:
        return f"job-{self.mark}"

    @property
    def image(self) -> str:
        return "debian:12"

    @property
    def tasks(self) -> list[TaskRole]:
        return [TaskRole("worker", self.command)]


def build(*wanted: luigi.Task, workers: int = 1) -> bool:
    return bool(luigi.build(list(wanted), local_scheduler=True, workers=workers, log_level="WARNING", no_lock=True))


class Failing(Hello):
    retry_count = 2
    command = 'echo "attempt" >>tries; echo the-cause >&2; exit 5'


def wait_for_file(path: Path) -> None:
    end = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < end, path
        time.sleep(0.02)
