"""The web page in a real browser: Debian's Chromium, driven by Playwright. `make browser` installs both."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pailot.testing.runs import PATIENCE
from tests.support.http_server import PASSWORD, Server, job

from .chromium import CHROMIUM, browser_page, playwright

AXE = Path(__file__).parents[2] / "page-vendor" / "node_modules" / "axe-core" / "axe.min.js"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs", PAILOT_CPUS="4") as started:
        yield started
        assert "defect" not in started.log.read_text()


@pytest.fixture(scope="module")
def page(server: Server) -> Iterator[Page]:
    with browser_page(server) as made:
        yield made


@pytest.fixture(params=["light", "dark"])
def themed(request: pytest.FixtureRequest, page: Page) -> Iterator[Page]:
    page.emulate_media(color_scheme=request.param)
    yield page
    page.emulate_media(color_scheme="light")


def test_from_a_waiting_job_to_the_one_that_holds_what_it_needs(page: Page, server: Server) -> None:
    held, waits = f"holds-{id(page)}", f"waits-{id(page)}"
    server.submit(job(held, "sleep 600").replace("cpu: 1", "cpu: 4"))
    server.begun(held)
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


@pytest.mark.parametrize("path", ["/jobs", "/submit", "/cluster", "/library", "/account", "/admin", "/alerts"])
def test_every_view_at_the_width_of_a_telephone(page: Page, server: Server, path: str) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{server.url}{path}")
    page.wait_for_selector("main h1, main .grid, main .chips")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 1280, "height": 800})


TABS = ("tasks", "logs", "timeline", "usage", "file", "plan", "events")
VIEWS = ("/jobs?all=1", "/jobs/admin~seen", *(f"/jobs/admin~seen/{tab}" for tab in TABS))
OTHER_VIEWS = (
    "/submit",
    "/cluster",
    "/library",
    "/library?edit=1",
    "/account",
    *(f"/admin/{each}" for each in ("users", "groups", "clusters", "storages")),
    "/alerts",
)


@pytest.mark.skipif(not AXE.exists(), reason="axe is not installed; enable that with: cd page-vendor && npm ci")
def test_every_view_is_accessible(themed: Page, server: Server) -> None:
    """Check 23: axe finds nothing serious or critical, wide and narrow, light and dark."""
    if server.get("/jobs/admin~seen").status == 404:
        server.run(job("seen", "echo seen"))
    found: list[tuple[str, int, str]] = []
    # axe measures with inline styles, which the page's policy refuses and the console tells. So it has a tab of its own.
    with themed.context.new_page() as other:
        other.emulate_media(
            color_scheme="dark" if themed.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
        )
        for width in (1280, 390):
            other.set_viewport_size({"width": width, "height": 800})
            for path in (*VIEWS, *OTHER_VIEWS):
                other.goto(f"{server.url}{path}")
                other.wait_for_selector("main h1, main .grid, main .chips")
                other.evaluate(AXE.read_text())
                wrong = other.evaluate(
                    "axe.run().then((done) => done.violations.map((each) => [each.impact, each.id, each.nodes[0].html]))"
                )
                found += [(path, width, f"{rule} {where}") for impact, rule, where in wrong if impact in ("serious", "critical")]
    print(f"axe: {len(found)} serious or critical in {2 * len((*VIEWS, *OTHER_VIEWS))} views")
    assert not found


def test_the_first_load_and_the_editor_are_small(page: Page, server: Server) -> None:
    """Check 1: bytes and requests as the browser counts them, all from this server (which the fixture checks)."""
    sums = {}
    for path, waited in (("/jobs", "main .chips"), ("/submit?from=example", ".editor .cm-content")):
        sent: list[Any] = []
        with page.context.new_page() as other:
            other.on("requestfinished", lambda each, sent=sent: sent.append(each))  # a built-in cannot be marked by Playwright
            other.route("**/page/**", lambda route: route.continue_())  # routed requests bypass the browser's cache
            other.goto(f"{server.url}{path}")
            other.wait_for_selector(waited)
            files = [each for each in sent if "/api/" not in each.url]
            sums[path] = (len(files), sum(each.sizes()["responseBodySize"] for each in files))
    print(f"files and bytes: {sums}")
    assert sums["/jobs"][0] <= 14
    assert sums["/jobs"][1] <= 60_000
    assert sums["/submit?from=example"][1] <= 220_000


BROKEN = (
    "protocolVersion: 2\nname: x\n",
    "name: [",
    "protocolVersion: 3\nname: x\ntype: job\ntaskRoles: {}\n",
    job("twelve").replace("commands", "comands"),
    job("twelve").replace("instances: 1", "instances: two"),
    job("twelve").replace("cpu: 1", "cpu: -1"),
    job("twelve").replace("dockerImage: image", "dockerImage: imgae"),
    job("twelve").replace("type: job", "type: jbo"),
    job("twelve", "echo <% $parameters.none %>"),
    job("twelve", "echo <% $secrets.none %>"),
    job("twelve") + "name: again\n",
    job("twelve").replace("memoryMB: 64", "memoryMB: lots"),
)


def test_problems_in_the_editor_are_those_of_the_command_line(page: Page, server: Server, tmp_path: Path) -> None:
    """Check 16: twelve broken files, problem by problem."""
    pailot = Path(sys.executable).with_name("pailot")
    page.goto(f"{server.url}/submit?from=example")
    page.wait_for_selector(".editor .cm-content")
    for text in BROKEN:
        (tmp_path / "job.yaml").write_text(text)
        said = subprocess.run([pailot, "validate", "--json", tmp_path / "job.yaml"], capture_output=True, text=True, check=False)
        wanted = [f"{each['line']}:{each['column']} {each['message']}" for each in json.loads(said.stdout)]
        assert wanted
        page.click(".editor .cm-content")
        page.keyboard.press("Control+A")
        page.keyboard.press("Delete")  # typing over a selection would make Chromium itself write inline styles into the editor
        with page.expect_response(lambda answer: answer.url.split("?")[0].endswith("/validate")):
            page.keyboard.insert_text(text)
        playwright.expect(page.locator(".problem")).to_have_count(len(wanted))
        shown = [
            " ".join((each.locator(".place").inner_text(), each.locator("span").first.inner_text()))
            for each in page.locator(".problem").all()
        ]
        assert sorted(" ".join(each.split()) for each in shown) == sorted(" ".join(each.split()) for each in wanted)
    print(f"{len(BROKEN)} files: problems equal to those of the command line")


def test_a_clone_is_the_file_as_it_was_written_and_knows_no_secret(page: Page, server: Server) -> None:
    """Check 17: comments and layout stay, the secret is never told, and the clone runs without typing it."""
    name = f"secret-{id(page)}"
    text = job(name, "echo <% $secrets.word %> | wc -c  # kept", more="# a comment   with spaces\nsecrets: {word: hush-hush-9}")
    server.run(text)
    told: list[str] = []
    page.on(
        "response", lambda answer: told.append(answer.text()) if "/api/" in answer.url and "/live" not in answer.url else None
    )
    page.goto(f"{server.url}/submit?from=admin~{name}")
    page.wait_for_selector("text=It would start now.")
    shown = server.get(f"/jobs/admin~{name}/config?format=text").text
    assert [each for each in text.splitlines() if "hush" not in each] == [
        each for each in shown.splitlines() if "word: " not in each
    ]
    assert (
        page.evaluate("[...Object.values(localStorage), ...Object.values(sessionStorage)].join().includes('hush-hush-9')")
        is False
    )
    page.keyboard.press("Control+Enter")
    page.click("button.main")
    page.wait_for_selector(f"h1:has-text('admin~{name}-2')")
    page.wait_for_selector(".state.succeeded")
    assert not [each for each in told if "hush-hush-9" in each]


def test_ten_tabs_all_work(page: Page, server: Server) -> None:
    """Check 14: browsers open six connections to a server; four tabs stream, the others ask now and then."""
    name = f"tabs-{id(page)}"
    server.submit(job(name, "sleep 600"))
    server.begun(name)
    tabs = [page.context.new_page() for _ in range(10)]
    for tab in tabs:
        tab.goto(f"{server.url}/jobs/admin~{name}")
    for tab in tabs:
        tab.wait_for_selector(".state.running")
    server.ask("PUT", f"/jobs/admin~{name}/executionType", {"value": "STOP", "now": True})
    for tab in tabs:
        tab.bring_to_front()
        tab.wait_for_selector(".state.stopped")
        tab.close()


def test_a_foreign_user_sees_nothing_of_others(page: Page, server: Server) -> None:
    """Check 24: a job of a cluster that the user is no member of shows its state, and no file, log or plan."""
    name, user = f"closed-{id(page)}", f"stranger{id(page)}"
    assert (
        server.ask("PUT", "/virtual-clusters/closed", {"resourcesGuaranteed": {"cpu": 1, "memory": 1024, "gpu": 0}}).status < 300
    )
    server.run(job(name, "echo inner words") + "defaults: {virtualCluster: closed}\n")
    token = server.user(user)
    assert server.get(f"/jobs/admin~{name}/config", token).status == 403
    with tempfile.TemporaryDirectory() as profile:
        code = server.ask("POST", "/session/code", {}, token).json["code"]
        script = "from playwright.sync_api import sync_playwright as p\nimport sys\n" + _FOREIGN
        done = subprocess.run(
            [sys.executable, "-c", script, profile, str(CHROMIUM), server.url, f"admin~{name}", code],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE * 4,
        )
    assert done.returncode == 0, done.stderr
    assert "inner words" not in done.stdout
    assert done.stdout.count("403") == 4, done.stdout
    # The share of a virtual cluster is kept from all others, and later jobs here ask for the whole machine.
    assert server.ask("DELETE", "/virtual-clusters/closed").status < 300


_FOREIGN = """
profile, chromium, url, job, code = sys.argv[1:]
with p() as started:
    options = ["--no-sandbox", "--disable-gpu"]
    context = started.chromium.launch_persistent_context(profile, executable_path=chromium, headless=True, args=options)
    page = context.new_page()
    page.goto(f"{url}/jobs#code={code}")
    page.wait_for_selector("header.top")
    for tab in ("file", "plan", "events", "logs/main/0"):
        page.goto(f"{url}/jobs/{job}/{tab}")
        page.wait_for_selector(".trouble")
        print(page.inner_text("main"))
    context.close()
"""


def test_from_login_to_stop_by_keyboard_alone(page: Page, server: Server) -> None:
    """Check 23: no mouse. Jobs, the row, why, logs, clone, stop, the list of keys."""
    name = f"typed-{id(page)}"
    server.submit(job(name, "echo deciding line; sleep 600"))
    server.begun(name)
    page.goto(f"{server.url}/cluster")
    page.wait_for_selector("h1")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_selector(f".grid.jobs :text-is('{name}')")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"h1:has-text('{name}')")
    page.keyboard.press("l")
    page.wait_for_selector(".log .line:has-text('deciding line')")
    page.keyboard.press("/")
    page.keyboard.type("deciding")
    page.wait_for_selector("text=1 of 1")
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    page.wait_for_selector("dialog kbd")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    page.keyboard.press("s")
    page.wait_for_selector("dialog button.danger")
    page.keyboard.press("Enter")
    page.wait_for_selector(".state.stopped")
    page.keyboard.press("c")
    page.wait_for_selector(".editor .cm-content")


def test_an_administrator_keeps_users_groups_clusters_and_storages(page: Page, server: Server) -> None:
    mark = f"{id(page) % 100000}"
    page.goto(f"{server.url}/admin/clusters")
    page.click("main > p > button:has-text('Add')")
    page.fill("form [name=name]", f"lab{mark}")
    page.fill("form [name=cpu]", "1")
    page.click("form button.main")
    page.wait_for_selector(f".grid :text-is('lab{mark}')")
    page.goto(f"{server.url}/admin/users")
    page.click("main > p > button:has-text('Add')")
    page.fill("form [name=username]", f"ann{mark}")
    page.fill("form [name=password]", PASSWORD)
    page.check(f"form [value=lab{mark}]")
    page.click("form button.main")
    page.wait_for_selector(f".grid [role=row]:has-text('ann{mark}'):has-text('lab{mark}')")
    page.click(f"button[aria-label='Change ann{mark}']")
    page.fill("form [name=email]", "ann@lab.example")
    page.click("form button.main")
    page.wait_for_selector("text=ann@lab.example")
    assert server.get(f"/users/ann{mark}").json["virtualCluster"] == ["default", f"lab{mark}"]
    page.goto(f"{server.url}/admin/storages")
    page.click("main > p > button:has-text('Add')")
    page.fill("form [name=name]", f"nas{mark}")
    page.fill("form [name=data]", '{"address": "nas.example", "path": "/data"}')
    page.click("form button.main")
    page.wait_for_selector(f".grid :text-is('nas{mark}')")
    page.goto(f"{server.url}/admin/groups")
    page.click("main > p > button:has-text('Add')")
    page.fill("form [name=groupname]", f"team{mark}")
    page.check(f"form [name=storage][value=nas{mark}]")
    page.check(f"form [name=member][value=ann{mark}]")
    page.click("form button.main")
    page.wait_for_selector(f".grid [role=row]:has-text('team{mark}'):has-text('ann{mark}')")
    assert f"nas{mark}" in server.get(f"/users/ann{mark}").json["storageConfig"]
    for tab, name in (("groups", "team"), ("storages", "nas"), ("users", "ann"), ("clusters", "lab")):
        page.goto(f"{server.url}/admin/{tab}")
        page.click(f"button[aria-label='Delete {name}{mark}']")
        page.click("dialog button.danger")
        page.wait_for_selector(f".grid :text-is('{name}{mark}')", state="detached")


def test_a_token_is_shown_once_and_revoked_by_its_id(page: Page, server: Server) -> None:
    note = f"nightly-{id(page)}"
    page.goto(f"{server.url}/account")
    page.fill("[name=note]", note)
    page.click("form:has([name=note]) button")
    token = page.locator(".panel .copy code").first.inner_text()
    assert server.get("/jobs?limit=1", token).status == 200
    page.reload()
    page.wait_for_selector(f"[role=row]:has-text('{note}')")
    assert token not in page.content()
    page.click(f"[role=row]:has-text('{note}') button")
    page.wait_for_selector(f"[role=row]:has-text('{note}')", state="detached")
    assert server.get("/jobs?limit=1", token).status == 401


def test_keys_are_completed_and_explained_from_the_schema(page: Page, server: Server) -> None:
    with page.expect_response(lambda answer: answer.url.endswith("/schema")):
        page.goto(f"{server.url}/submit?from=example")
    page.wait_for_selector(".editor .cm-content")
    page.click(".editor .cm-line:has-text('instances')")
    page.keyboard.press("End")
    page.keyboard.type("\ntaskRet")
    page.wait_for_selector(".editor .cm-tooltip-autocomplete li:has-text('taskRetryCount')")
    page.wait_for_timeout(150)  # what is offered is accepted a moment after it is shown
    page.keyboard.press("Enter")
    page.keyboard.type("2")
    page.wait_for_selector(".editor .cm-line:has-text('taskRetryCount: 2')")
    page.hover(".editor .cm-line:has-text('instances') span >> nth=0")
    page.wait_for_selector(".editor .about b:text-is('instances')")
    page.wait_for_selector("text=No problems.")
