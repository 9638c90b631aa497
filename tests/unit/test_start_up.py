"""Start-up is a feature: what a quick command may import, and what it may not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .views.folders import FolderOfARun

HELLO = Path(__file__).parents[2] / "examples" / "hello" / "job.yaml"
NEVER = set(
    "asyncio importlib.metadata msgspec dataclasses typing inspect yaml sqlite3 http.client urllib.request ssl tomllib".split()
)

MOST_MODULES_OF_A_RUN = 121


def imported_by(*arguments: str) -> set[str]:
    """The modules that a command loads."""
    code = "import sys; from pailot.cli.main import main; main(sys.argv[1:]); sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def baseline() -> set[str]:
    done = subprocess.run([sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_version_costs_next_to_nothing() -> None:
    more = imported_by("--version") - baseline()
    assert more - {"__future__"} == {"pailot", "pailot.cli", "pailot.cli.main"}


@pytest.mark.parametrize("command", ["validate", "plan"])
def test_quick_commands_load_nothing_heavy(command: str) -> None:
    assert imported_by(command, str(HELLO)) & (NEVER - baseline()) == set()


@pytest.mark.parametrize("arguments", [("ps",), ("show", "demo"), ("logs", "demo"), ("events", "demo"), ("why", "demo")])
def test_looking_at_a_run_reads_no_job_file(arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path))
    monkeypatch.setenv("PAILOT_SERVER", "none")
    run = FolderOfARun(tmp_path)
    run.prints(b"x\n")
    run.ends()
    run.view.record()  # which brings the index up to date
    loaded = imported_by(*arguments)
    assert loaded & (NEVER - baseline()) == set()
    assert loaded & {"pailot.protocol", "pailot.loading", "pailot.client.api", "threading", "ctypes"} == set()


def test_import_pailot_loads_one_module() -> None:
    code = "import sys; before = set(sys.modules); import pailot; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) - {"__future__"} == {"pailot"}


def test_running_one_task_loads_and_starts_no_more_than_it_did(tmp_path: Path) -> None:
    """A higher number needs a measurement of what that costs: `python bench/against.py OTHER_CHECKOUT`."""
    told = tmp_path / "told"
    code = (
        "import atexit, os, sys\n"
        "started = []\n"
        "kinds = ('os.fork', 'os.posix_spawn', 'subprocess.Popen')\n"
        "sys.addaudithook(lambda name, _: started.append(name) if name in kinds else None)\n"
        "from pailot.cli.main import main\n"
        "main(['run', '--quiet', sys.argv[1]])\n"
        "open(sys.argv[2], 'w').write(' '.join(started) + '\\n' + ' '.join(sys.modules))\n"
    )
    environment = {**os.environ, "PAILOT_HOME": str(tmp_path / "home"), "PAILOT_LOCKS": str(tmp_path / "locks")}
    subprocess.run(
        [sys.executable, "-c", code, str(HELLO), str(told)], capture_output=True, check=True, env=environment, cwd=tmp_path
    )
    started, loaded = told.read_text().split("\n")
    assert started.split() == ["os.fork"], "the shim; bash is not asked about a script of plain words"
    ours = [name for name in loaded.split() if name.startswith("pailot")]
    assert len(ours) <= MOST_MODULES_OF_A_RUN
    assert not {"array", "termios", "subprocess", "threading"} & (set(loaded.split()) - baseline())
