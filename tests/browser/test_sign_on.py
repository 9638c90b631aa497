"""Single sign-on in a real browser: the page, and the end of `pailot login`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pailot.testing.runs import PATIENCE
from tests.acceptance.test_oidc import RETURN, address_in, settings
from tests.parts.oidc import RealProvider
from tests.support.http_server import Server

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the page is not tested in a browser; enable that with: make browser"
)
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("the page is not tested in a browser; enable that with: make browser", allow_module_level=True)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from playwright.sync_api import BrowserContext, Page


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    provider = RealProvider(tmp_path_factory.mktemp("provider"))
    more = settings(provider.issuer, tmp_path_factory.mktemp("server"))
    with Server(None, "--stop-jobs", **more) as started:
        provider.user("alice", "researchers")
        provider.user("admin")
        provider.start(f"{started.url}{RETURN}")
        yield started
        assert "defect" not in started.log.read_text()
    provider.close()


@pytest.fixture
def context() -> Iterator[BrowserContext]:
    with playwright.sync_playwright() as started, tempfile.TemporaryDirectory() as profile:
        made = started.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, headless=True, args=["--no-sandbox", "--disable-gpu"]
        )
        made.set_default_timeout(PATIENCE * 1000)
        yield made
        made.close()


def watched(context: BrowserContext) -> tuple[Page, list[str]]:
    """A page, and what goes wrong in it."""
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    return page, wrong


def at_the_provider(page: Any, user: str) -> None:
    page.fill("input[name=login]", user)
    page.fill("input[name=password]", "any")
    page.click("button[type=submit]")
    page.click("button[type=submit]")  # that Pailot may know it


def test_the_page_arrives_with_a_session_and_nothing_in_its_history(server: Server, context: BrowserContext) -> None:
    page, wrong = watched(context)
    page.goto(f"{server.url}/login?next=/cluster")
    page.click("text=Sign in with Example")
    at_the_provider(page, "alice")
    page.wait_for_selector("header.top")
    assert page.inner_text("a.me") == "alice"
    assert page.url == f"{server.url}/cluster"
    page.go_back()
    assert "grant" not in page.url
    page.go_forward()
    assert page.evaluate("sessionStorage.getItem('pailot-verifier')") is None
    page.reload()
    page.wait_for_selector("header.top")
    assert not wrong

    # A grant of a sign-in that began elsewhere opens nothing here.
    page.click("text=Log out")
    page.wait_for_selector("text=Sign in with Example")
    page.goto("about:blank")
    page.goto(f"{server.url}/login#grant=of-a-stranger")
    page.wait_for_selector("text=begun elsewhere")
    assert page.url == f"{server.url}/login"


def test_the_page_says_why_a_user_may_not_come_in(server: Server, context: BrowserContext) -> None:
    page, wrong = watched(context)
    page.goto(f"{server.url}/login")
    page.click("text=Sign in with Example")
    at_the_provider(page, "admin")
    page.wait_for_selector("text=Another account has your name")
    page.goto("about:blank")
    page.goto(f"{server.url}/login#error=<img src=x>")
    page.wait_for_selector("text=did not confirm")
    assert not wrong


def test_the_command_line_is_logged_in_when_the_user_says_so(server: Server, context: BrowserContext, tmp_path: Path) -> None:
    environment = {**server.environment, "XDG_CONFIG_HOME": str(tmp_path), "PAILOT_HOME": str(tmp_path), "BROWSER": "true"}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    arguments = [sys.executable, "-m", "pailot", "login", server.url]
    process = subprocess.Popen(arguments, env=environment, text=True, **pipes)
    page, wrong = watched(context)
    page.goto(address_in(process))
    at_the_provider(page, "alice")
    page.wait_for_selector("text=asks to act as alice")
    page.click("button")
    page.wait_for_selector("text=logged in on the command line")
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "as alice" in out) == (0, True), err
    assert not wrong

    # No other place gets a grant, whatever a link says.
    page.goto("about:blank")
    page.goto(f"{server.url}/login#grant=x&for=command&user=alice&state=y&to=http://evil.example:80/")
    page.wait_for_selector("text=did not confirm")
    assert page.locator("button").count() == 0
