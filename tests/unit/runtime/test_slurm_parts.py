"""What a batch script is told of its allocation."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.runtime.slurm import allocation
from pailot.runtime.slurm.allocation import Slot
from pailot.runtime.slurm.driver import ending


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10,12],login", ["n08", "n09", "n10", "n12", "login"]),
        ("r[1-2]c[01-02]", ["r1c01", "r1c02", "r2c01", "r2c02"]),
        ("gpu-[1,3]-ib.cluster", ["gpu-1-ib.cluster", "gpu-3-ib.cluster"]),
        ("", []),
    ],
)
def test_a_list_of_nodes_is_expanded(listed: str, names: list[str]) -> None:
    assert allocation.expand(listed) == names


@pytest.mark.skipif(not shutil.which("scontrol"), reason="no Slurm: sudo apt-get install slurm-client")
@given(
    st.lists(
        st.tuples(st.from_regex("[a-z]{1,3}", fullmatch=True), st.lists(st.integers(0, 20), min_size=1, max_size=4)), min_size=1
    )
)
def test_it_is_expanded_as_slurm_does(parts: list[tuple[str, list[int]]]) -> None:
    listed = ",".join(f"{name}[{','.join(f'{number:02}-{number + 3:02}' for number in numbers)}]" for name, numbers in parts)
    environment = {**os.environ, "SLURM_CONF": "/dev/null"}
    done = subprocess.run(["scontrol", "show", "hostnames", listed], capture_output=True, text=True, env=environment, check=False)
    if done.returncode == 0:
        assert allocation.expand(listed) == done.stdout.split()


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 9))))
def test_task_counts_are_read(pairs: list[tuple[int, int]]) -> None:
    written = ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in pairs)
    assert allocation.counts(written) == [count for count, times in pairs for _ in range(times)]


def test_slots_of_a_plain_and_a_heterogeneous_job() -> None:
    plain = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "2,1"}
    assert allocation.slots(plain) == [[Slot("n1"), Slot("n1"), Slot("n2")]]
    het = {"SLURM_HET_SIZE": "2", "SLURM_JOB_NODELIST_HET_GROUP_0": "n3", "SLURM_TASKS_PER_NODE_HET_GROUP_0": "1"}
    het |= {"SLURM_JOB_NODELIST_HET_GROUP_1": "n[1-2]", "SLURM_TASKS_PER_NODE_HET_GROUP_1": "1(x2)"}
    assert allocation.slots(het) == [[Slot("n3", 0)], [Slot("n1", 1), Slot("n2", 1)]]


@pytest.mark.parametrize(
    ("state", "asked", "cause", "verdict"),
    [
        ("CANCELLED", False, "stopped", "STOPPED"),
        ("CANCELLED", True, "stopped", "STOPPED"),
        ("TIMEOUT", False, "user", "FAILED"),
        ("OUT_OF_MEMORY", False, "user", "FAILED"),
        ("PREEMPTED", False, "preempted", "FAILED"),
        ("NODE_FAIL", False, "platform", "FAILED"),
        ("FAILED", False, "platform", "FAILED"),
        ("COMPLETED", False, "platform", "FAILED"),
        ("BOOT_FAIL", False, "platform", "FAILED"),
    ],
)
def test_what_slurms_states_mean_without_a_result(state: str, asked: bool, cause: str, verdict: str) -> None:
    found = ending(state, asked)
    assert (found.cause, found.verdict.state) == (cause, verdict)
