"""Luigi tasks whose jobs run in real containers of this machine: what they leave behind is on the host."""

from __future__ import annotations

import os
from pathlib import Path

import luigi
import pytest

import pailot
from pailot.luigi import PaiTask, TaskRole

from ..parts import containers
from ..support import luigi_tasks
from ..support.luigi_tasks import build

here = luigi_tasks.here
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True, params=["docker", "podman"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    found = getattr(containers, request.param)()
    for name, value in {**found.environment, "PAILOT_ENGINE": "docker"}.items():
        monkeypatch.setenv(name, value)


class Prepare(PaiTask):
    name = "prepare"
    image = containers.IMAGE
    tasks = [TaskRole("main", 'seq 10 >"$PAI_OUTPUT_DIR/numbers"')]


class Count(PaiTask):
    """Reads what the first has left, by the two ways there are."""

    name = "count"
    image = containers.IMAGE
    tasks = [
        TaskRole(
            "main",
            'wc -l <"$PAI_DATA_DIR/numbers" >"$PAI_OUTPUT_DIR/count"; '
            'cat "$PAI_DEFAULT_FS_URI/prepare/output/numbers" | tail -n 1 >>"$PAI_OUTPUT_DIR/count"',
        )
    ]

    def requires(self) -> luigi.Task:
        return Prepare()

    @property
    def data_dir(self) -> str:
        return str(Prepare().output().path)  # type: ignore[union-attr]  # one folder

    @property
    def output_dir(self) -> str:
        return os.path.abspath("../results, all/count")


def test_the_output_of_a_task_is_on_the_host(here: Path) -> None:
    assert build(Count())
    assert (here.parent / "results, all" / "count" / "count").read_text().split() == ["10", "10"]
    assert Prepare().complete()
    assert Count().complete()
    assert build(Count())
    assert len(list(pailot.runs())) == 2


def test_data_of_this_machine_can_be_read_and_not_changed(here: Path) -> None:
    data = here.parent / "data"
    data.mkdir()
    (data / "numbers").write_text("1\n")

    class Read(Prepare):
        name = "read"
        data_dir = str(data)
        tasks = [TaskRole("main", 'cat "$PAI_DATA_DIR/numbers"; touch "$PAI_DATA_DIR/mine" 2>/dev/null || echo read-only')]

    assert build(Read())
    assert list(pailot.get("read").logs()) == ["1", "read-only"]


def test_an_output_that_is_shown_already_is_shown_once(here: Path) -> None:
    class Beside(Prepare):
        name = "beside"
        output_dir = str(here)

    class Below(Prepare):
        name = "below"
        output_dir = str(here / "results" / "below")

    class OfTheImage(Prepare):
        name = "of-the-image"
        output_dir = "/root"
        tasks = [TaskRole("main", "test ! -e /root/.bashrc")]

    assert build(Beside(), Below(), OfTheImage())
    assert (here / "numbers").exists()
    assert (here / "results" / "below" / "numbers").exists()
