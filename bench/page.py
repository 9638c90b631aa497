"""The web page in a real browser against its limits: CPU of its main thread, and times that a reader waits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from running import Failed, Figure

ROOT = Path(__file__).parents[1]
CHECKS = ("tests/browser/test_logs.py", "tests/browser/test_checks.py")


def page(*, quick: bool) -> list[Figure]:
    """Run the checks of the page that have limits, and judge what they measured."""
    if shutil.which("chromium") is None:
        print("no figures of the web page: make browser installs what they need", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory(prefix="pailot-bench-") as folder:
        figures = Path(folder) / "figures"
        environment = {**os.environ, "PAGE_FIGURES": str(figures)}
        chosen = ["-k", "fast or thousand"] if quick else []
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", *CHECKS, *chosen], cwd=ROOT, env=environment, check=False)
        if done.returncode:
            raise Failed("the checks of the web page failed")
        told = [json.loads(line) for line in figures.read_text().splitlines()]
    return [
        Figure(
            f"page: {each['what']}",
            f"{each['figure']:.1f} {each['unit']}",
            f"{each['limit']:g} {each['unit']}",
            each["figure"] / each["limit"],
            1.0,
        )
        for each in told
    ]
