"""What travels to the task runs on Python 3.9 with its standard library, and starts quickly."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src"
TRAVELS = sorted(path for room in ("lifecycle", "runfolder", "runtime") for path in (SOURCE / "pailot" / room).rglob("*.py"))
OURS = ["runtime.cgroups", "runfolder.logs", "runfolder.masking", "runfolder.atomic_json", "runfolder.careful_files"]
USE = """
import sys, tempfile
sys.path.insert(0, sys.argv[1])
from pailot.runfolder import logs, masking, atomic_json
from pailot.runtime import cgroups
with tempfile.TemporaryDirectory() as folder:
    writer = logs.LogWriter(folder, ["hunter22", "it's\\na key", "käse"], rotate_bytes=4)
    writer.write("stdout", b"a hunter22 b")
    writer.close()
    assert logs.read(folder, "stdout", 0) == (b"a ****** b", 10), logs.read(folder, "stdout", 0)
    atomic_json.write_record(folder + "/record", {"a": 1})
    assert atomic_json.read_record(folder + "/record") == {"a": 1}
    atomic_json.append_line(folder + "/journal", {"b": 2})
    assert atomic_json.read_lines(folder + "/journal") == [{"b": 2}]
    assert atomic_json.claim(folder + "/claim") and not atomic_json.claim(folder + "/claim")
limits = cgroups.available()
if limits:
    group = limits.create("travels", 64, 1)
    assert not group.oom_killed()
    group.kill()
    group.remove()
print("done")
"""


@pytest.mark.parametrize("path", TRAVELS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_grammar_is_that_of_python_3_9(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    # This the parser lets pass: parentheses around several context managers are new in 3.10, `match` is a name there.
    assert not [node for node in ast.walk(tree) if type(node).__name__ in ("Match", "TryStar")]
    assert "from __future__ import annotations\n" in path.read_text() or not [
        node for node in ast.walk(tree) if isinstance(node, ast.arg | ast.AnnAssign)
    ]


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.12", "3.13"])
def test_it_works_on_other_versions(version: str) -> None:
    installed = [shutil.which(f"python{version}"), *(Path.home() / ".pyenv/versions").glob(f"{version}.*/bin/python")]
    # What stands in for a version that pyenv has switched off is there, but does not run.
    found = next((path for path in installed if path and subprocess.call([path, "-c", ""], stderr=subprocess.DEVNULL) == 0), None)
    if not found:
        pytest.skip(f"there is no python{version}")
    done = subprocess.run([found, "-I", "-S", "-B", "-c", USE, SOURCE], check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_importing_it_loads_next_to_nothing() -> None:
    code = f"""
import sys
sys.path.insert(0, {str(SOURCE)!r})
import os
before = set(sys.modules)
import {", ".join(f"pailot.{name}" for name in OURS)}
print(*(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) - {"__future__", "errno", "binascii", "time", "struct", "_struct", "bisect", "_bisect"} == {
        "pailot",
        "pailot.runfolder",
        "pailot.runfolder.layout",
        "pailot.runfolder.log_index",
        "pailot.runtime",
        "pailot.values",
        *(f"pailot.{name}" for name in OURS),
    }
