"""The packages of a release: their metadata, what they hold, and that they work in fresh environments of each Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import pailot

from .test_wheel import called

ROOT = Path(__file__).parents[2]
HOME = "https://example.org/somebody/pailot"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
COMPLETIONS = {
    "bash": "share/bash-completion/completions/pailot",
    "zsh": "share/zsh/site-functions/_pailot",
    "fish": "share/fish/vendor_completions.d/pailot.fish",
}
JOB = """\
protocolVersion: 2
name: hello
type: job
prerequisites: [{name: image, type: dockerimage, uri: debian}]
taskRoles:
  main:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands: [echo hello from $PAI_CURRENT_TASK_ROLE_NAME]
"""


def build(folder: Path, source: Path, *targets: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", *targets, "-d", str(folder)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    done = subprocess.run(
        command, cwd=source, env=environment | {"PAILOT_REPOSITORY_URL": HOME}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An sdist, and the wheel made from it alone, as installers do that find no wheel."""
    folder = tmp_path_factory.mktemp("packages")
    build(folder, ROOT, "-t", "sdist")
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    build(folder, source, "-t", "wheel")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (each for each in opened.namelist() if each.endswith(".dist-info/METADATA"))
        return Parser().parsestr(opened.read(name).decode())


def test_they_pass_the_check_of_the_index(packages: tuple[Path, Path]) -> None:
    told = called([sys.executable, "-m", "twine", "check", "--strict", *map(str, packages)], ROOT)
    assert told.count("PASSED") == 2, told


def test_the_metadata_tell_who_what_and_where(packages: tuple[Path, Path]) -> None:
    told = metadata(packages[1])
    assert told["Version"] == pailot.__version__
    assert told["License-Expression"] == "Apache-2.0"
    urls = dict(each.split(", ", 1) for each in told.get_all("Project-URL", ()))
    assert urls["Repository"] == HOME
    assert {"Changelog", "Documentation", "Issues", "Job protocol"} <= set(urls)
    assert set(told.get_all("Provides-Extra", ())) >= {"all", "server", "postgres", "luigi", "s3", "enter"}
    classifiers = told.get_all("Classifier", ())
    assert [each.rpartition(" ")[2] for each in classifiers if "Python :: 3." in each] == list(PYTHONS)
    assert "Typing :: Typed" in classifiers


def test_no_file_of_the_checkout_is_missing_in_a_wheel_that_was_made_from_the_sdist(packages: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(packages[1]) as opened:
        names = set(opened.namelist())
    own = [path for path in (ROOT / "src" / "pailot").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {f"pailot/{path.relative_to(ROOT / 'src' / 'pailot')}" for path in own} <= names
    for place in COMPLETIONS.values():
        assert f"pailot-{pailot.__version__}.data/data/{place}" in names


def interpreter(version: str) -> str | None:
    """The path of a Python of that version, if this machine has one."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}.*/bin/python{version}")
    for candidate in (shutil.which(f"python{version}"), *map(str, kept)):
        if candidate is not None:
            command = [candidate, "-c", "import sys, venv; print(sys.executable)"]
            told = subprocess.run(command, capture_output=True, text=True, check=False)
            if told.returncode == 0:
                return told.stdout.strip()
    return None


@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_works_in_a_fresh_environment(version: str, packages: tuple[Path, Path], tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}")
    prefix = tmp_path / "fresh"
    called([python, "-m", "venv", "--without-pip", str(prefix)], tmp_path)
    fresh = prefix / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(fresh), "--quiet", "--disable-pip-version-check"]
    called([*pip, "install", "--no-index", "--no-deps", str(packages[1])], tmp_path)
    program = str(prefix / "bin" / "pailot")
    assert called([program, "--version"], tmp_path) == f"pailot {pailot.__version__}\n"
    (tmp_path / "job.yaml").write_text(JOB)
    assert called([program, "run", "job.yaml", "--quiet"], tmp_path) == "hello from main\n"
    for shell, place in COMPLETIONS.items():
        assert (prefix / place).read_text() == called([program, "completion", shell], tmp_path)
    (tmp_path / "tell.py").write_text("from pailot.install_lines import install_line\nprint(install_line('server'))\n")
    assert called([str(fresh), "tell.py"], tmp_path) == f"pip install '{packages[1]}[server]'\n"
