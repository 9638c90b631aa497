"""What users install: the wheel, alone in a fresh environment, with its types."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pailot

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "parts" / "user_script.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    called([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has the wheel, and nothing else."""
    folder = tmp_path_factory.mktemp("fresh")
    called([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder)
    fresh = folder / "bin" / "python"
    install = [
        "-m",
        "pip",
        "--python",
        str(fresh),
        "--quiet",
        "--disable-pip-version-check",
        "install",
        "--no-index",
        "--no-deps",
    ]
    called([sys.executable, *install, str(wheel)], folder)
    return fresh


def called(command: list[str], cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PAILOT_SERVER")}
    done = subprocess.run(
        command, cwd=cwd, env={**environment, "PAILOT_HOME": str(cwd / "home")}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_holds_what_it_should(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    assert "pailot/py.typed" in names
    sources = {f"pailot/{path.relative_to(ROOT / 'src' / 'pailot')}" for path in (ROOT / "src" / "pailot").rglob("*.py")}
    assert sources <= names
    assert not {name for name in names if "test" in name.split("/")[0]}


def test_a_users_program_runs_with_the_wheel_alone(python: Path, tmp_path: Path) -> None:
    assert set(pailot.__all__) <= set(re.findall(r"\w+", SCRIPT.read_text()))  # it uses every public name
    lines = called([str(python), "-I", "-W", "error", str(SCRIPT), str(tmp_path / "job.yaml")], tmp_path).splitlines()
    assert lines == [
        f"{pailot.__version__} ['start', 'before', '/data /output', 'end']",
        "['SUCCEEDED', 'SUCCEEDED'] ('main:0', 3) FAILED 4",
    ]


def test_a_users_program_is_checked_strictly_with_our_types(python: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.read_text())
    options = ["--strict", "--python-executable", str(python), "--cache-dir", str(tmp_path / "cache")]
    assert "no issues found" in called([sys.executable, "-m", "mypy", *options, "script.py"], tmp_path)
    (tmp_path / "wrong.py").write_text("import pailot\npailot.load(3)\npailot.run('x').wait('soon')\n")
    with pytest.raises(AssertionError, match="Found 2 errors"):
        called([sys.executable, "-m", "mypy", *options, "wrong.py"], tmp_path)
