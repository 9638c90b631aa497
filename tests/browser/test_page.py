"""The web page in a real browser: Debian's Chromium, driven by Playwright. `make browser` installs both."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.acceptance.http_server import PASSWORD, Server, job
from tests.acceptance.runs import PATIENCE

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the page is not tested in a browser; enable that with: make browser"
)
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("the page is not tested in a browser; enable that with: make browser", allow_module_level=True)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CANARIES = (
    "<img src=x onerror=\"document.title='stolen'\">",
    "<script>document.title='stolen'</script>",
    "\\033]8;;javascript:document.title='stolen'\\007link\\033]8;;\\007",
    "\\033]0;stolen\\007",
    "{{constructor.constructor('document.title=1')()}}",
    "\u202estolen",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs", PAILOT_CPUS="4") as started:
        yield started
        assert "defect" not in started.log.read_text()


@pytest.fixture(scope="module", params=["light", "dark"])
def page(request: pytest.FixtureRequest, server: Server) -> Iterator[Page]:
    """A page that is logged in; nothing may be written to its console, and nothing may be refused by its policy."""
    with playwright.sync_playwright() as started, tempfile.TemporaryDirectory() as profile:
        context = started.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, headless=True, args=list(OPTIONS), color_scheme=request.param
        )
        context.set_default_timeout(PATIENCE * 1000)
        made = context.new_page()
        wrong: list[str] = []
        made.on("pageerror", lambda error: wrong.append(str(error)))
        made.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        hosts: set[str] = set()
        made.on("request", lambda sent: hosts.add(re.sub(r"^(\w+://[^/]*).*", r"\1", sent.url)))
        made.goto(f"{server.url}/login?next=/jobs")
        made.fill("input[name=username]", "admin")
        made.fill("input[name=password]", PASSWORD)
        made.keyboard.press("Enter")
        made.wait_for_selector("header.top")
        yield made
        # The browser itself tells of requests that were refused, or broke when a test killed the server.
        assert not [each for each in wrong if not each.startswith("Failed to load resource")]
        assert {each for each in hosts if not each.startswith(("data:", "blob:"))} == {server.url}
        context.close()


def test_from_a_waiting_job_to_the_one_that_holds_what_it_needs(page: Page, server: Server) -> None:
    held, waits = f"holds-{id(page)}", f"waits-{id(page)}"
    server.submit(job(held, "sleep 600").replace("cpu: 1", "cpu: 4"))
    server.submit(job(waits, "true").replace("cpu: 1", "cpu: 3"))
    page.goto(f"{server.url}/jobs")
    page.click(f"text={waits}")
    page.click(f"section[aria-label=Why] a:has-text('admin~{held}')")
    page.wait_for_selector(f"h1:has-text('admin~{held}')")
    page.click("button:has-text('Stop')")
    page.click("dialog button.danger")
    page.wait_for_selector(".state.stopped")
    server.wait(waits)


def test_a_failed_job_is_cloned_mended_and_followed(page: Page, server: Server) -> None:
    name = f"fails-{id(page)}"
    server.run(job(name, "echo about to fail; exit 3"))
    page.goto(f"{server.url}/jobs/admin~{name}")
    page.click("text=Open the log")
    page.wait_for_selector(".log .line:has-text('about to fail')")
    page.click("text=Clone")
    page.wait_for_selector(".editor .cm-content")
    page.wait_for_selector("text=It would start now.")
    page.fill("label:has-text('Name') input", f"{name}-mended")
    page.click(".editor .cm-content")
    page.keyboard.press("Control+End")
    page.keyboard.type("wrong: [")
    page.wait_for_selector(".problem .error")
    for _ in range(9):
        page.keyboard.press("Backspace")
    page.wait_for_selector("text=No problems.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(f"h1:has-text('admin~{name}-mended')")
    page.wait_for_selector(".state.failed")


def test_a_misspelt_key_is_fixed_by_a_click(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/submit?from=example")
    page.wait_for_selector(".editor .cm-content")
    page.click(".editor .cm-content")
    page.keyboard.press("Control+Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.type("\nparamters: {}")
    page.click("button:has-text('Fix')")
    page.wait_for_selector("text=No problems.")


def test_what_a_task_prints_is_text(page: Page, server: Server) -> None:
    name = f"canaries-{id(page)}"
    words = "; ".join("printf '%b\\n' '" + each.replace("'", "'\\''") + "'" for each in CANARIES)
    server.run(job(name, words))
    page.goto(f"{server.url}/jobs/admin~{name}/logs/main/0")
    page.wait_for_selector(".log .line:has-text('<script>')")
    assert page.title() == "Pailot"
    assert page.locator(".log img, .log script, .log a").count() == 0
    page.goto(f"{server.url}/jobs/admin~{name}/file")
    page.wait_for_selector("pre:has-text('onerror')")
    assert page.title() == "Pailot"


def test_a_log_is_followed_through_a_crash_of_the_server(page: Page, server: Server, tmp_path: Path) -> None:
    name, go = f"long-{id(page)}", tmp_path / "go"
    script = f"for i in $(seq 1 5000); do echo line $i; done; until [ -e {go} ]; do sleep 0.05; done; seq -f 'line %g' 5001 10000"
    server.submit(job(name, script))
    page.goto(f"{server.url}/jobs/admin~{name}/logs/main/0")
    page.wait_for_selector(".log .line:has-text('line 5000')")
    server.kill()
    server.start()
    go.touch()
    page.wait_for_selector(".log .line:has-text('line 10000')")
    page.wait_for_selector("text=ended · 10,000")


def test_a_revoked_session_asks_for_the_password_and_loses_nothing(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/submit?from=example")
    page.wait_for_selector(".editor .cm-content")
    page.click(".editor .cm-content")
    page.keyboard.press("Control+End")
    page.keyboard.type("# kept text")
    assert server.ask("DELETE", "/sessions").status == 200
    server._token = ""
    page.keyboard.press("Space")
    page.wait_for_selector("dialog input[name=password]")
    page.fill("dialog input[name=password]", PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog", state="detached")
    assert "# kept text" in page.locator(".editor .cm-content").inner_text()


@pytest.mark.parametrize("path", ["/jobs", "/submit", "/cluster", "/account", "/admin", "/alerts"])
def test_every_view_at_the_width_of_a_telephone(page: Page, server: Server, path: str) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{server.url}{path}")
    page.wait_for_selector("main h1, main .grid, main .chips")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 1280, "height": 800})
