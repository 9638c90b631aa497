"""What is done with the rights of root is in one module: found in the source, so that a new place is seen."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "src" / "pailot"
ROOTS_OWN = set("chown fchown lchown setuid seteuid setreuid setresuid setgid setegid setresgid setgroups".split())


def _calls(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [func.attr for func in named if isinstance(func, ast.Attribute) and func.attr in ROOTS_OWN]


def test_owners_and_users_are_changed_in_one_module() -> None:
    found = {str(path.relative_to(SOURCE)): calls for path in sorted(SOURCE.rglob("*.py")) if (calls := _calls(path))}
    assert set(found) == {"runtime/rights.py"}, found
