"""`make screenshots`: pictures of the main views, light and dark, from a real server with the jobs of a small team."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

from tests.support.http_server import PASSWORD

from .demo import populate, serve

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
VIEWS = {
    "jobs": ("/jobs?all=1", ".grid.jobs"),
    "job": ("/jobs/bob~sweep-3", "section[aria-label=Why] a"),
    "logs": ("/jobs/ada~bert-large-07/logs/worker/0", ".log .line >> nth=20"),
    "submit": ("/submit?from=ada~eval-nightly", "text=It would start now."),
    "timeline": ("/jobs/ada~bert-large-07/timeline", ".timeline canvas"),
    "usage": ("/jobs/ada~bert-large-07/usage?role=worker&index=0", ".plot canvas"),
    "cluster": ("/cluster", ".bars"),
}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
USAGE_SECONDS = 120
"""A task's use is sampled every 5 s."""


def main() -> int:
    """Take every picture. Returns the exit status."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        print("needs chromium: sudo apt-get install chromium", file=sys.stderr)
        return 4
    PICTURES.mkdir(exist_ok=True)
    with serve() as server, sync_playwright() as started:
        populate(server)
        print(f"samples of two minutes are waited for, so that curves have a shape; pictures go to {PICTURES}")
        time.sleep(USAGE_SECONDS)
        for theme in THEMES:
            with tempfile.TemporaryDirectory() as profile:
                context = started.chromium.launch_persistent_context(
                    profile,
                    executable_path=chromium,
                    headless=True,
                    args=["--no-sandbox", "--disable-gpu"],
                    color_scheme=theme,
                    viewport={"width": 1200, "height": 640},
                )
                page = context.new_page()
                page.goto(f"{server.url}/login")
                page.fill("input[name=username]", "ada")
                page.fill("input[name=password]", PASSWORD)
                page.keyboard.press("Enter")
                page.wait_for_selector("header.top")
                for name, (path, shown) in VIEWS.items():
                    page.goto(f"{server.url}{path}")
                    page.wait_for_selector(shown)
                    page.screenshot(path=str(PICTURES / f"page-{name}-{theme}.png"), animations="disabled")
                    print(PICTURES / f"page-{name}-{theme}.png")
                context.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
