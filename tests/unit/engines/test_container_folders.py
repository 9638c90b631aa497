"""Which folders of this machine a container sees because its job names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pailot.engines.docker.run_arguments import job_folders
from pailot.job_values import Options
from pailot.runtime.docker_api import mount, mount_target


def test_what_a_job_names_is_shown_at_its_own_path(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    output, data = str(tmp_path / "new" / "output"), str(tmp_path / "data")
    assert job_folders(Options(output_dir=output, data_dir=data), []) == [*mount(output), *mount(data, read_only=True)]
    assert (tmp_path / "new" / "output").is_dir()


@pytest.mark.parametrize(
    "place", ["results/x", "hdfs://node/x", "file:///tmp/x", "/usr", "/usr/../bin", "//usr/", "/proc/no/such"]
)
def test_what_is_no_folder_of_the_jobs_own_is_left_to_the_image(place: str) -> None:
    assert job_folders(Options(output_dir=place, data_dir=place), []) == []


@pytest.mark.parametrize("shown", ["", "/", "/out put", '/a, "b"'])
def test_nothing_is_mounted_into_what_is_mounted_already(tmp_path: Path, shown: str) -> None:
    """At the same path an engine refuses it; below another one the folder that was mounted decides what is there."""
    words = mount("/elsewhere", f"{tmp_path}{shown}")
    assert job_folders(Options(output_dir=f"{tmp_path}{shown}/x".replace("//", "/")), words) == []
    beside = f"{tmp_path}beside"
    Path(beside).mkdir()
    assert job_folders(Options(output_dir=beside), words) == [*mount(beside)]


def test_the_place_of_a_mount_is_read_again() -> None:
    for place in ("/plain", "/with, comma", '/with "quotes"', "/with=sign"):
        assert mount_target(mount("/source", place, read_only=True)[1]) == place
