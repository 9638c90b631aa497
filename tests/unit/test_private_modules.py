"""Modules of Python that are not for everybody: each used in one place, for a gain that was measured, and never needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "pailot"
HELLO = Path(__file__).parents[2] / "examples" / "hello" / "job.yaml"
USED = {
    "_ctypes": "runtime/processes.py",
    "_md5": "planning/quick_md5.py",
    "_socket": "runtime/quick_socket.py",
    "_sqlite3": "store/index.py",
    "_thread": "store/index.py",
}
DOCUMENTED = {"_thread"}


def uses(tree: ast.Module) -> list[tuple[str, bool]]:
    """Private modules of Python that a file imports, and whether it can do without."""
    optional = {
        id(node)
        for each in ast.walk(tree)
        if isinstance(each, ast.Try)
        and any("ImportError" in ast.unparse(handler.type) for handler in each.handlers if handler.type)
        for node in each.body
    }
    found = []
    for node in ast.walk(tree):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        found += [(name, id(node) in optional) for name in names if name.startswith("_") and not name.startswith("__")]
    return found


def test_each_is_imported_in_one_module_which_can_do_without() -> None:
    found = [
        (name, str(file.relative_to(SOURCE)), optional)
        for file in SOURCE.rglob("*.py")
        for name, optional in uses(ast.parse(file.read_text()))
    ]
    assert sorted(found) == sorted((name, place, name not in DOCUMENTED) for name, place in USED.items())


WITHOUT = """
import builtins, sys
ordinary = builtins.__import__
refused = set()
def without(name, globals=None, *rest):
    if name in ("_ctypes", "_md5", "_socket", "_sqlite3") and (globals or {}).get("__name__", "").startswith("pailot"):
        refused.add(name)
        raise ImportError(name)
    return ordinary(name, globals, *rest)
builtins.__import__ = without
from pailot.cli.main import main
status = main(sys.argv[1:])
print(*sorted(refused), file=sys.stderr)
sys.exit(status)
"""


def test_a_job_runs_on_a_python_that_has_none_of_them(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "PAILOT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "run", str(HELLO), "--quiet"],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "_ctypes _md5 _socket _sqlite3"), done
    listed = subprocess.run(
        [sys.executable, "-m", "pailot", "ps", "--all"], capture_output=True, text=True, check=True, cwd=tmp_path, env=environment
    )
    assert "SUCCEEDED" in listed.stdout
