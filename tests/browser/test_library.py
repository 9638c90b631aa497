"""The library in a real browser: searched, used in a new job, changed in the checking editor; what it holds is only text."""

from __future__ import annotations

import pytest

from tests.support.http_server import Server, job

from .chromium import browser_page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

CANARY = "<img src=x onerror=\"document.title='stolen'\">"
GREETER = """\
name: greeter
type: script
version: 3
description: %s
callbacks:
  - event: containerStart
    commands: ['export GREETING=hello']
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs", PAILOT_CPUS="4") as started:
        yield started
        assert "defect" not in started.log.read_text()


@pytest.fixture(scope="module")
def page(server: Server) -> Iterator[Page]:
    with browser_page(server) as made:
        yield made


def keep(server: Server, name: str, text: str) -> None:
    answer = server.ask("PUT", f"/library/{name}?replace=true", text, kind="text/yaml")
    assert answer.status in (200, 201), answer


def test_an_empty_library_says_how_to_fill_it(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/library")
    page.wait_for_selector("text=The library is empty.")
    page.wait_for_selector("code:has-text('pailot library add FILE')")


def test_an_entry_is_found_shown_and_used_in_a_new_job(page: Page, server: Server) -> None:
    keep(server, "greeter", GREETER % f"'{CANARY.replace(chr(39), chr(39) * 2)}'")
    keep(
        server, "pictures", "name: pictures\ntype: data\nversion: 1\nplugin: fetch\nuri: ['https://data.example/p']\nsize: 3 GB\n"
    )
    page.goto(f"{server.url}/library")
    page.wait_for_selector(".grid.library [role=row]:has-text('pictures'):has-text('3.0 GB')")
    page.fill("input[type=search].grow", "greet")
    page.wait_for_selector(".grid.library:has-text('greeter'):not(:has-text('pictures'))")
    assert page.title() == "Pailot"
    assert page.locator("main img").count() == 0
    page.click("a.name:has-text('greeter')")
    page.wait_for_selector("pre:has-text('export GREETING=hello')")
    page.click("text=Use in a new job")
    page.wait_for_selector(".editor .cm-content:has-text('greeter@3')")
    page.wait_for_selector("text=It would start now.")
    page.click("button.main")
    page.wait_for_selector("h1:has-text('admin~use-greeter')")
    server.wait("admin~use-greeter")
    page.goto(f"{server.url}/library/pictures")
    page.wait_for_selector(".content[data-state=not-fetched] code:has-text('https://data.example/p')")
    assert page.title() == "Pailot"


def test_a_template_is_a_start(page: Page, server: Server) -> None:
    keep(server, "starter", f"# as it was written\n{job('starter', 'echo from a template')}")
    page.goto(f"{server.url}/submit")
    page.select_option("label:has-text('Template') select", "starter")
    page.wait_for_selector(".editor .cm-content:has-text('# as it was written')")
    page.wait_for_selector("text=It would start now.")


def test_an_administrator_adds_and_removes_in_the_checking_editor(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/library")
    page.click("text=New entry")
    page.wait_for_selector(".editor .cm-content")
    page.wait_for_selector("text=No problems.")
    page.click(".editor .cm-content")
    page.keyboard.press("Control+End")
    page.keyboard.type("plugn: x\nrequire: nothing\n")
    page.wait_for_selector(".problem .error")
    assert page.locator("button.main").is_disabled()
    for _ in range(17):
        page.keyboard.press("Backspace")
    page.wait_for_selector("text=No problems.")
    page.click("button.main:has-text('my-data@1')")
    page.wait_for_selector("h1:has-text('my-data')")
    assert "plugn: x" in server.get("/library/my-data").json["text"]
    page.click("text=Change")
    page.wait_for_selector(".editor .cm-content:has-text('plugn')")
    page.click("button.main:has-text('my-data@1')")
    page.wait_for_selector("dl.facts")
    page.click("button.danger:has-text('Delete')")
    page.click("dialog button.danger")
    page.wait_for_selector("h1:has-text('Library')")
    assert server.get("/library/my-data").status == 404


def test_who_may_not_change_it_sees_no_button_for_that(server: Server) -> None:
    keep(server, "greeter", GREETER % "x")
    server.user("eve")
    with browser_page(server, user="eve") as made:
        made.goto(f"{server.url}/library/greeter")
        made.wait_for_selector("text=Use in a new job")
        assert made.locator("main button.danger").count() == 0
        made.goto(f"{server.url}/library")
        made.wait_for_selector(".grid.library")
        assert made.locator("text=New entry").count() == 0
