"""A real browser for tests: Debian's Chromium, driven by Playwright, and what its trace says about CPU time."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.http_server import PASSWORD

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the page is not tested in a browser; enable that with: make browser"
)
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("the page is not tested in a browser; enable that with: make browser", allow_module_level=True)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page, Playwright

    from tests.support.http_server import Server

OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PAGE_PATIENCE = 30
"""Seconds in which the page shows what it is told; a browser on a busy machine is slow."""
SLACK = 5
"""A time fails a test only above this multiple of its limit, since other work makes it longer. `make bench` judges the limits."""
FIGURES = os.environ.get("PAGE_FIGURES", "")
"""The file into which `make bench` has the figures written. It judges them itself, and follows logs for longer."""


_open: list[Playwright] = []


@contextmanager
def driver() -> Iterator[Playwright]:
    """Playwright, of which a process has one at a time; it ends with the last of those that use it."""
    _open.append(_open[-1] if _open else playwright.sync_playwright().start())
    try:
        yield _open[-1]
    finally:
        last = _open.pop()
        if not _open:
            last.stop()


@contextmanager
def browser_page(server: Server, theme: str = "light", user: str = "admin", **more: object) -> Iterator[Page]:
    """A page of a browser of its own that is logged in. Nothing may be written to its console or asked of another server."""
    with driver() as started, tempfile.TemporaryDirectory() as profile:
        context = started.chromium.launch_persistent_context(
            profile,
            executable_path=CHROMIUM,
            headless=True,
            args=list(OPTIONS),
            color_scheme=theme,
            permissions=["clipboard-read", "clipboard-write"],
            **more,
        )
        context.set_default_timeout(PAGE_PATIENCE * 1000)
        page = context.new_page()
        wrong: list[str] = []
        hosts: set[str] = set()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("request", lambda sent: hosts.add("/".join(sent.url.split("/")[:3])))
        enter(page, server, user)
        yield page
        # The browser itself tells of requests that were refused, or broke when a test killed the server.
        assert not [each for each in wrong if not each.startswith("Failed to load resource")]
        assert {each for each in hosts if not each.startswith(("data:", "blob:"))} == {server.url}
        context.close()


def enter(page: Page, server: Server, user: str = "admin") -> None:
    """Log in by hand."""
    page.goto(f"{server.url}/login?next=/jobs")
    page.fill("input[name=username]", user)
    page.fill("input[name=password]", PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("header.top")


class Trace:
    """CPU time of each task of a page's main thread, in milliseconds: thread time, which other processes do not lengthen."""

    def __init__(self, path: Path) -> None:
        events = json.loads(path.read_text())["traceEvents"]
        main = {
            (each["pid"], each["tid"])
            for each in events
            if each.get("name") == "thread_name" and each["args"]["name"] == "CrRendererMain"
        }
        self.tasks: list[float] = sorted(
            each.get("tdur", 0) / 1000 for each in events if each.get("name") == "RunTask" and (each["pid"], each["tid"]) in main
        )

    @property
    def longest(self) -> float:
        return self.tasks[-1] if self.tasks else 0.0

    @property
    def total(self) -> float:
        return sum(self.tasks)


def traced(page: Page, path: Path, work: Callable[[], object]) -> Trace:
    """What the main thread of a page did while `work` ran."""
    session = page.context.new_cdp_session(page)
    collected: list[dict[str, object]] = []
    session.on("Tracing.dataCollected", lambda told: collected.extend(told["value"]))
    done: list[bool] = []
    session.on("Tracing.tracingComplete", lambda _: done.append(True))
    session.send(
        "Tracing.start",
        {"transferMode": "ReportEvents", "categories": "disabled-by-default-devtools.timeline,__metadata"},
    )
    work()
    session.send("Tracing.end")
    while not done:
        page.wait_for_timeout(50)
    session.detach()
    path.write_text(json.dumps({"traceEvents": collected}))
    return Trace(path)


def told(number: int, what: str, figure: float | str, limit: float | str) -> None:
    """Print the figure of a check."""
    shown = f"{figure:,.1f}" if isinstance(figure, float) else str(figure)
    print(f"check {number:2}: {what}: {shown} (limit {limit})")


def within(number: int, what: str, figure: float, limit: float, unit: str) -> None:
    """Print a time, and fail at SLACK times its limit."""
    told(number, what, f"{figure:,.1f} {unit}", f"{limit:g} {unit}")
    if FIGURES:
        with open(FIGURES, "a") as file:
            file.write(json.dumps({"check": number, "what": what, "figure": figure, "limit": limit, "unit": unit}) + "\n")
        return
    assert figure <= limit * SLACK, f"{what}: {figure:.1f} {unit}, {SLACK} times its limit are {limit * SLACK:g}"
