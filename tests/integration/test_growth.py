"""What a job file costs grows with its size, whatever it is full of; and no file costs much."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from pailot.cli.problem_report import format_problem
from pailot.loading import plan, read_job
from pailot.problem import MOST_SHOWN
from pailot.protocol import InvalidJob, Problem
from pailot.userruns.masked_job_file import recorded
from tests.support.growing_jobs import FAMILIES

SMALL, TIMES = 40, 4
ALLOWED = 1.6
"""Of what the size would explain. A family that grows with its square has 4."""
BOUNDED = {"a chain of required ones with callbacks"}
"""Grows with the square by its nature, up to one of JOB_LIMITS."""
LARGE = 60_000
"""Bytes, more or less."""
MOST_CPU_SECONDS = 3.0
"""Some ten times what the dearest takes here: it tells minutes from moments, on any machine."""


def work(text: str) -> tuple[Problem, ...]:
    """Everything that happens to a job file until its problems are shown or it could run."""
    try:
        job = read_job(text, "job.yaml", own_files=False)
        made = plan(job, "someone")
        json.dumps(recorded(job, text, made).plan)
        problems = made.warnings
    except InvalidJob as invalid:
        problems = invalid.problems
    for problem in problems:
        format_problem(problem)
    json.dumps([problem.to_json() for problem in problems])
    return problems


def steps(call: Callable[[], object]) -> int:
    """How many functions are called, ours and those of the interpreter: the same number in every run."""
    count = 0

    def note(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("name", sorted(FAMILIES.keys() - BOUNDED))
def test_four_times_the_size_is_at_most_four_times_the_work(name: str) -> None:
    small, large = FAMILIES[name](SMALL), FAMILIES[name](TIMES * SMALL)
    work(small)  # what is made once, is
    base = steps(lambda: work(FAMILIES[name](1)))
    first, second = steps(lambda: work(small)) - base, steps(lambda: work(large)) - base
    assert second <= ALLOWED * TIMES * max(first, 300)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_large_file_is_read_in_a_moment(name: str) -> None:
    """Counts see no work inside one call of the interpreter; this does."""
    family = FAMILIES[name]
    size = LARGE * SMALL // len(family(SMALL))
    text = family(size)
    began = time.process_time()
    problems = work(text)
    assert time.process_time() - began < MOST_CPU_SECONDS
    assert len(problems) <= MOST_SHOWN + 1
    assert sum(len(problem.message) + len(problem.path) for problem in problems) < 1_000_000
