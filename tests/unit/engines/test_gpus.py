"""GPUs: found with nvidia-smi (a script stands for it), declared, and given to one run at a time."""

from __future__ import annotations

import os
import select
from pathlib import Path

import pytest

from pailot.engines.preparation import gpus as module
from pailot.engines.preparation.gpus import Gpu, Gpus, GpusBusy, TooFewGpus, discover, of_type, variables
from pailot.engines.preparation.machine import MachineError
from pailot.settings import BadSetting

LINES = """\
0, GPU-aa11, NVIDIA A100-SXM4-40GB, 40960
1, GPU-aa22, NVIDIA GB10, Rev. A, [N/A]
2, GPU-bb33, Tesla T4, 15360
"""
FOUND = (
    Gpu(0, "GPU-aa11", "NVIDIA A100-SXM4-40GB", 40960),
    Gpu(1, "GPU-aa22", "NVIDIA GB10, Rev. A"),
    Gpu(2, "GPU-bb33", "Tesla T4", 15360),
)


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing but what the test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return folder


def nvidia_smi(path: Path, text: str = LINES, ending: str = "exit 0") -> None:
    script = path / "nvidia-smi"
    query = "--query-gpu=index,uuid,name,memory.total --format=csv,noheader,nounits"
    script.write_text(
        f'#!/bin/sh\n[ "$*" = "{query}" ] || exit 2\nwhile read -r line; do echo "$line"; done <<END\n{text}END\n{ending}\n'
    )
    script.chmod(0o755)


def test_gpus_are_found(path: Path) -> None:
    assert discover("auto") == ()
    nvidia_smi(path)
    assert discover("auto") == discover("") == FOUND


def test_a_machine_without_a_driver_has_none(path: Path) -> None:
    nvidia_smi(path, "NVIDIA-SMI has failed\n", "exit 9")
    assert discover("auto") == ()
    nvidia_smi(path, "No devices were found\n")
    assert discover("auto") == ()


def test_a_driver_that_hangs_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 0.05)
    os.mkfifo(path / "never")
    nvidia_smi(path, ending=f"read line <{path}/never")
    with pytest.raises(MachineError, match="nvidia-smi does not answer within"):
        discover("auto")


@pytest.mark.parametrize(
    ("visible", "indexes"),
    [
        ("2,0,9,1", [2, 0]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("1, 2", [1, 2]),
        ("GPU-bb33,0", [2, 0]),
        ("GPU-b", [2]),
        ("GPU-aa", []),
        ("0,0", [0]),
    ],
)
def test_our_own_share_is_kept_as_cuda_reads_it(
    visible: str, indexes: list[int], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia_smi(path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.index for gpu in discover("auto")] == indexes
    assert len(discover("3")) == 3


def test_gpus_are_declared_or_chosen(path: Path) -> None:
    assert [gpu.index for gpu in discover("3")] == [0, 1, 2]
    assert [gpu.index for gpu in discover("5, 2")] == [5, 2]
    assert discover("0") == discover("none") == ()
    nvidia_smi(path)
    assert len(discover("7")) == 7
    assert discover("2,") == (FOUND[2],)
    assert discover("GPU-aa22,0,1") == (FOUND[1], FOUND[0])


@pytest.mark.parametrize("setting", ["some", "1,x", "GPU-cc,", "9,", "-1"])
def test_a_gpu_that_is_not_there_is_an_error(setting: str, path: Path) -> None:
    nvidia_smi(path)
    with pytest.raises(BadSetting, match=r"there is no GPU .* here, but: 0 "):
        discover(setting)


def test_a_task_is_always_told() -> None:
    assert variables(FOUND[:2]) == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "NVIDIA_VISIBLE_DEVICES": "GPU-aa11,GPU-aa22",
    }
    assert variables(()) == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}
    assert variables(discover("2"))["NVIDIA_VISIBLE_DEVICES"] == "0,1"


def test_all_or_none_are_taken_and_the_holders_named() -> None:
    ann, bob, eve = (Gpus(discover("4"), f"{name}~job") for name in ("ann", "bob", "eve"))
    assert [gpu.index for gpu in ann.take(2)] == [0, 1]
    assert [gpu.index for gpu in bob.take(1)] == [2]
    with pytest.raises(GpusBusy) as caught:
        eve.take(2)
    assert caught.value.holders == "GPU 0 and 1 are held by ann~job, GPU 2 is held by bob~job"
    assert [gpu.index for gpu in ann.take(1)] == [3]  # eve kept none
    assert [gpu.index for gpu in ann.held] == [0, 1, 3]
    ann.close()
    with eve.released() as sign:
        assert sign.is_set()
    assert [gpu.index for gpu in eve.take(3)] == [0, 1, 3]
    for each in (bob, eve):
        each.close()


def test_more_than_there_are_is_another_error() -> None:
    with pytest.raises(TooFewGpus, match="3 GPUs are needed, but there are only 2"):
        Gpus(discover("2"), "ann").take(3)


def test_no_gpus_need_no_file(locks: Path) -> None:
    nothing = Gpus((), "ann")
    assert nothing.take(0) == ()
    assert nothing.descriptors == ()
    nothing.close()
    assert not locks.exists()


def test_a_name_is_shown_as_one_line(locks: Path) -> None:
    one, other = Gpus(discover("1"), "ann\x1b[2J~\n" + "x" * 500), Gpus(discover("1"), "bob")
    one.take(1)
    with pytest.raises(GpusBusy) as caught:
        other.take(1)
    assert caught.value.holders.startswith("GPU 0 is held by ann[2J~xxx")
    assert caught.value.holders.isprintable()
    assert len(caught.value.holders) < 250
    (locks / "gpu-0.holder").write_text("")
    with pytest.raises(GpusBusy, match="GPU 0 is held by another run"):
        other.take(1)
    one.close()
    other.close()


def test_a_gpu_that_is_given_back_is_told_to_a_loop_that_waits_for_other_things_too() -> None:
    one, other = Gpus(discover("1"), "ann"), Gpus(discover("1"), "bob")
    one.take(1)
    with other.released() as sign:
        assert not sign.is_set()
        assert select.select([sign], [], [], 0)[0] == []
        one.close()
        assert select.select([sign], [], [], 10)[0] == [sign]
        assert sign.is_set()
    with other.released() as sign:
        assert sign.is_set()  # it was free before anybody looked
    other.close()


def test_a_type_is_found_in_the_names_in_whole_words() -> None:
    here = (*FOUND, Gpu(3, name="NVIDIA GeForce RTX 3090"), Gpu(4, name="NVIDIA A10"), Gpu(5))
    for wanted, indexes in {
        "A100": [0],
        "a100-sxm4": [0],
        "A10": [4],
        "t4": [2],
        "RTX3090": [3],
        "rtx_3090": [3],
        "NVIDIA": [0, 1, 3, 4],
        "K80": [],
        "": [],
    }.items():
        assert [gpu.index for gpu in of_type(here, wanted)] == indexes, wanted


def test_types_can_be_declared() -> None:
    assert discover("0:K80, 2:Tesla V100") == (Gpu(0, name="K80"), Gpu(2, name="Tesla V100"))


def test_the_setting_is_heeded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PAILOT_GPUS", raising=False)
    monkeypatch.chdir(tmp_path)
    for text, count in {'gpus = "none"': 0, "gpus = 3": 3, "gpus = [4, 5]": 2, 'gpus = ["0:K80"]': 1, "": 0}.items():
        (tmp_path / "pailot.toml").write_text(text)
        assert len(discover()) == count, text
    monkeypatch.setenv("PAILOT_GPUS", "5")
    assert len(discover()) == 5
