"""Processing jobs on a real Slurm cluster of several nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pailot.engines.preparation import sandbox
from pailot.processor import Processor, Session, TrainingJob, UnexpectedStatusException

from ..parts import meeting
from ..parts.slurm import Cluster, cluster

SLURM = Session(engine="slurm")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    slurm: Cluster = cluster()
    for name, value in {**slurm.environment, "PAILOT_SLURM_POLL_SECONDS": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield tmp_path / "here"
    slurm.slurm("scancel", "--user=root")


def test_instances_on_several_nodes(here: Path) -> None:
    (here / "code").mkdir()
    (here / "code" / "meet.py").write_text(meeting.PROGRAM)
    (here / "code" / "given").write_text("code")
    (here / "set").write_text("data")
    other = "/ml/outputs/data/model" if sandbox.works() else "$PAI_OUTPUT_MODEL"
    command = f'pwd; cat "$PAI_INPUT_SET"; echo; python3 meet.py; touch {other}/other'
    job = Processor("image", command, "code", instance_count=3, session=SLURM).run(
        {"set": "set"}, {"model": "model"}, show_logs=False
    )
    inside = "/ml" if sandbox.works() else None
    for index, lines in meeting.expected(3).items():
        where, *rest = job.logs(index)
        # A task that is done early leaves its file where a later one looks.
        assert [line.removesuffix(" other") for line in rest] == ["data", *lines]
        assert where == f"{inside}/usercode" if inside else where.endswith(f"worker-{index}/ml/usercode")
    assert sorted(path.name for path in (here / "model").iterdir()) == ["0", "1", "2", "other"]
    assert TrainingJob.get(job.id, SLURM).describe()["Status"] == "Succeed"


def test_what_fails_and_what_is_stopped(here: Path) -> None:
    with pytest.raises(UnexpectedStatusException) as caught:
        Processor("image", "echo why; exit 6", session=SLURM).run(show_logs=False)
    assert (caught.value.status, caught.value.exit_code, caught.value.last_lines) == ("Failed", 6, ("why",))
    job = Processor("image", "echo begun; exec sleep 1000", session=SLURM).run(wait=False)
    assert next(job.logs(0, follow=True)) == "begun"
    job.stop()
    with pytest.raises(UnexpectedStatusException, match="Terminated"):
        job.wait(show_logs=False)
