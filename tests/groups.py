"""Groups of tests, for machines that run them side by side: each test belongs to exactly one.

    python -m tests.groups GROUP [pytest's arguments]

A new file is in the first group that one of its patterns names, and in `local` if none does.
"""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
GROUPS = {
    "unit": ("tests/unit/*",),
    "browser": ("tests/browser/*",),
    "docs": ("*/test_docs.py", "*/test_docstrings.py", "*/test_site.py"),
    "packages": ("*/test_wheel.py", "*/test_packages.py"),
    "kubernetes": ("*kubernetes*", "*chart*", "*/test_image.py"),
    "slurm": ("*slurm*",),
    "containers": ("*container*", "*/test_task_access_engines.py", "*/test_usage_sampling.py", "tests/conformance/*"),
    "server": (
        "*server*",
        "*/test_team*",
        "*/test_live.py",
        "*/test_page.py",
        "*/test_audit.py",
        "*/test_tls.py",
        "*/test_metrics.py",
        "*/test_sign_on*",
        "*/test_deploy*",
        "*/test_upgrade*",
        "*/test_task_access.py",
        "*/test_remote_access.py",
        "*/test_virtual_cluster*",
        "*/test_submit.py",
    ),
}
REST = "local"


def group_of(path: str) -> str:
    """Return the group of a file, by its path below the repository."""
    return next((group for group, patterns in GROUPS.items() if any(fnmatch(path, each) for each in patterns)), REST)


def files(group: str) -> list[str]:
    """Return the test files of a group."""
    found = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
    return [path for path in found if group_of(path) == group]


def main(arguments: list[str]) -> int:
    group, *rest = arguments
    return subprocess.call([sys.executable, "-m", "pytest", *files(group), *rest], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
