"""What a shim measures of its task: a real process with a known curve, retries, GPUs told by a library of ours."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from pailot.runfolder import usage
from pailot.runtime import cgroups, nvidia, shim, usage_sampling
from pailot.userruns import task_usage

from .test_shim import ran

SAW_TOOTH = """python3 -c '
import time
for _ in range(3):
    block = bytearray(b"x") * (80 << 20)
    time.sleep(0.5)
    del block
    time.sleep(0.5)
'
"""


def quickly() -> None:
    shim.SAMPLE_SECONDS = 0.1


@pytest.mark.parametrize("grouped", [False, True])
def test_the_curve_of_a_saw_tooth_is_within_a_tenth(tmp_path: Path, grouped: bool) -> None:
    if grouped and cgroups.available() is None:
        pytest.skip(f"no control groups: {cgroups.why_not()}")
    end = ran(tmp_path, quickly, main=SAW_TOOTH, **({"memory_mb": 400, "cpus": 1} if grouped else {}))
    samples = usage.read(str(tmp_path / "tasks" / "main-0"))
    measured = [each.memory_kb / 1024 for each in samples[1:-1]]
    high, low = [each for each in measured if each > 70], [each for each in measured if each < 30]
    assert len(high) >= 6
    assert len(low) >= 6
    base = sorted(low)[len(low) // 2]
    height = sorted(high)[len(high) // 2] - base
    assert 72 <= height <= 88, f"80 MiB go up and down; measured {height:.1f}"
    falls = sum(before > 50 > after for before, after in pairwise(measured))
    assert falls >= 2, "the teeth are apart"
    assert end["peakMemoryKb"] / 1024 < 1.1 * (80 + base)
    assert end["cpuSeconds"] > 0


def test_processor_time_is_that_of_the_processes(tmp_path: Path) -> None:
    busy = "for i in 1 2; do (timeout 0.7 sh -c 'while :; do :; done'; true); done"
    end = ran(tmp_path, quickly, main=busy)
    samples = usage.read(str(tmp_path / "tasks" / "main-0"))
    assert samples[-1].cpu_seconds == pytest.approx(end["cpuSeconds"], abs=0.01)
    used = [each.cpu_seconds for each in samples]
    assert used == sorted(used)
    assert used[-1] > 0.2  # of a machine that may be busy


def test_attempts_of_a_task_are_kept_apart(tmp_path: Path) -> None:
    ran(tmp_path, quickly, main="sleep 0.35; exit 1", retries=1, retry_delay=0.01)
    folder = tmp_path / "tasks" / "main-0"
    assert {each.attempt for each in usage.read(str(folder))} == {0, 1}


def test_a_short_task_has_a_peak_and_no_file(tmp_path: Path) -> None:
    end = ran(tmp_path, main="true")
    assert not (tmp_path / "tasks" / "main-0" / "usage").exists()
    assert end["maxRssKb"] > 0
    assert end["cpuSeconds"] >= 0
    assert "peakMemoryKb" not in end


def test_a_file_that_cannot_be_written_costs_the_samples_only(tmp_path: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    def spoil() -> None:
        quickly()
        setattr(usage_sampling, "append", full)  # noqa: B010  # in the forked process alone

    assert ran(tmp_path, spoil, main="sleep 0.3")["outcome"] == "succeeded"


def test_gpus_are_told_by_the_drivers_library(tmp_path: Path) -> None:
    source = tmp_path / "nvml.c"
    source.write_text(
        """
        #include <string.h>
        int nvmlInit_v2(void) { return 0; }
        int nvmlDeviceGetHandleByIndex_v2(unsigned int n, void **out) { *out = (void *)(long)(n + 1); return n < 2 ? 0 : 6; }
        int nvmlDeviceGetHandleByUUID(const char *id, void **out) { *out = (void *)2L; return strcmp(id, "GPU-ab") ? 6 : 0; }
        int nvmlDeviceGetUtilizationRates(void *d, unsigned int *u) { u[0] = 40 * (unsigned int)(long)d; u[1] = 0; return 0; }
        int nvmlDeviceGetMemoryInfo(void *d, unsigned long long *m) { m[0] = 8; m[1] = 4; m[2] = (long)d << 30; return 0; }
        """
    )
    library = tmp_path / "libnvml.so"
    if subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=False, capture_output=True).returncode:
        pytest.skip("no C compiler")
    both = nvidia.opened({"NVIDIA_VISIBLE_DEVICES": "0,GPU-ab"}, str(library))
    assert both is not None
    assert both.measure() == (120.0, 3072)
    assert nvidia.opened({"NVIDIA_VISIBLE_DEVICES": "void"}, str(library)) is None
    assert nvidia.opened({"CUDA_VISIBLE_DEVICES": "7"}, str(library)) is None
    assert nvidia.opened({"CUDA_VISIBLE_DEVICES": "0"}, str(tmp_path / "none.so")) is None


def test_a_container_may_not_be_taken_for_the_whole_machine() -> None:
    assert cgroups.folders_of(os.getpid()) == []


def test_peaks_in_words() -> None:
    assert task_usage.words(None, {}) == ""
    assert json.loads(json.dumps(task_usage.asked({}, "worker"))) == {"cpus": None, "memoryMB": None, "gpus": None}
