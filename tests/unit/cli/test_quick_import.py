"""Our own modules are loaded quickly, and never from a compiled file that does not belong to its source."""

from __future__ import annotations

import importlib.util
import inspect
import os
import py_compile
import subprocess
import sys
from importlib.util import MAGIC_NUMBER, module_from_spec
from pathlib import Path

import pytest

from pailot.cli.quick_import import QuickFinder

FINDER = QuickFinder(MAGIC_NUMBER)


def written(folder: Path, text: str = "ANSWER = 42\n", name: str = "part.py", *, compiled: bool = True) -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (1e9, 1e9))
    if compiled:
        py_compile.compile(str(path), doraise=True)
    return path


def test_a_compiled_module_is_loaded_as_python_loads_it(tmp_path: Path) -> None:
    path = written(tmp_path, "def answer():\n    return 42\n")
    found = FINDER.find_spec("pailot.part", [str(tmp_path)])
    usual = importlib.util.spec_from_file_location("pailot.part", path)
    assert found is not None
    assert usual is not None
    assert found.loader is not None
    assert (found.name, found.origin, found.cached, found.parent) == (usual.name, usual.origin, usual.cached, usual.parent)
    assert (found.has_location, found.submodule_search_locations) == (True, None)
    module = module_from_spec(found)
    found.loader.exec_module(module)
    assert module.answer() == 42
    assert (module.__file__, module.__cached__, module.__package__) == (str(path), usual.cached, "pailot")
    assert inspect.getsource(module) == path.read_text()


def test_a_package_has_its_folder(tmp_path: Path) -> None:
    written(tmp_path, name="room/__init__.py")
    found = FINDER.find_spec("pailot.room", [str(tmp_path)])
    assert found is not None
    assert found.submodule_search_locations == [str(tmp_path / "room")]
    assert found.origin == str(tmp_path / "room" / "__init__.py")


@pytest.mark.parametrize(
    "way", ["not compiled", "newer source", "longer source", "no source", "by hash", "other Python", "large"]
)
def test_all_else_is_left_to_python(way: str, tmp_path: Path) -> None:
    path = written(tmp_path, "TEXT = '" + "x" * 70_000 + "'\n" if way == "large" else "A = 1\n", compiled=way != "not compiled")
    if way == "newer source":
        os.utime(path, (1e9 + 1, 1e9 + 1))
    elif way == "longer source":
        path.write_text("A = 1000\n")
        os.utime(path, (1e9, 1e9))
    elif way == "no source":
        path.unlink()
    elif way == "by hash":
        py_compile.compile(str(path), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    finder = QuickFinder(b"old\n") if way == "other Python" else FINDER
    assert finder.find_spec("pailot.part", [str(tmp_path)]) is None


def test_modules_of_others_are_left_to_python(tmp_path: Path) -> None:
    written(tmp_path)
    assert FINDER.find_spec("part", [str(tmp_path)]) is None
    assert FINDER.find_spec("pailot") is None


def test_files_that_were_compiled_under_another_path_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, compiled=False)
    py_compile.compile(str(tmp_path / "part.py"), dfile="part.py", doraise=True)
    finder = QuickFinder(MAGIC_NUMBER)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    assert finder.find_spec("pailot.part", [str(tmp_path)]) is None
    assert finder not in sys.meta_path


def test_the_program_itself_uses_it() -> None:
    code = (
        "import os, sys\n"
        "os._exit = lambda status: os.write(2, type(sys.meta_path[0]).__name__.encode()) and sys.exit(status)\n"
        "sys.argv = ['pailot', '--version']\n"
        "from pailot.cli.main import main; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "QuickFinder"
