"""The room travels to the task: what it may be written in, and what it may load."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[3] / "src"
FILES = sorted((SOURCES / "pailot" / "lifecycle").glob("*.py"))
USE_ALL = """
import sys
before = set(sys.modules)
from pailot.lifecycle import attempt_machine, claims, completion, exit_classes, retry, run_machine, settling, states
loaded = set(sys.modules) - before
rooms = "attempt_machine claims completion exit_classes retry run_machine settling states".split()
assert loaded <= {"__future__", "pailot", "pailot.errors", "pailot.values", "pailot.lifecycle",
    *("pailot.lifecycle." + name for name in rooms)}, loaded
rules = (completion.RoleRule("worker", 2, 1, None),)
end = attempt_machine.TaskEnded(completion.TaskEnd("worker", 1, False, 3))
run = run_machine.RunMachine(run_machine.RunTerms(attempt_machine.AttemptTerms(rules, 30.0), 0, 1.0))
for event in (run_machine.AttemptPrepared(False), run_machine.AttemptStarted(0.0), end, attempt_machine.AllGone()):
    run.handle(event)
assert run.finished.verdict.state == states.FAILED
assert claims.Claims(rules).add("worker", 1) is False
assert exit_classes.classify(exit_classes.End(1), "\\x1b[31mImportError: x").code == 232
assert exit_classes.classify(exit_classes.End(None, 9), "").code == 137
assert retry.delay(3, 1, 0) == 2
assert retry.next_attempt("user", 0, 0, 1).counted_as == "user"
"""


def test_the_room_has_its_files() -> None:
    assert {file.name for file in FILES} >= set(
        "__init__.py attempt_machine.py completion.py exit_table.py exit_classes.py retry.py run_machine.py states.py".split()
    )


@pytest.mark.parametrize("file", [*FILES, SOURCES / "pailot" / "values.py"], ids=lambda file: file.name)
def test_python_3_9_can_read_it(file: Path) -> None:
    ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))


def test_it_loads_nothing_else() -> None:
    subprocess.run([sys.executable, "-c", USE_ALL], check=True, env={**os.environ, "PYTHONPATH": str(SOURCES)})


def test_python_3_9_can_run_it() -> None:
    python = shutil.which("python3.9")
    if not python or subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip("there is no Python 3.9 here")
    subprocess.run([python, "-c", USE_ALL], check=True, env={**os.environ, "PYTHONPATH": str(SOURCES)})
