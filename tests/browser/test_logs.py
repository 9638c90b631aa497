"""Logs in a real browser: whole, live, fast, through crashes and rotations."""

from __future__ import annotations

import re
import time

import pytest

from tests.acceptance.runs import wait_for
from tests.support.http_server import Server, job

from .chromium import FIGURES, PAGE_PATIENCE, browser_page, told, traced, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs", PAILOT_CPUS="64") as started:
        yield started
        assert "defect" not in started.log.read_text()


@pytest.fixture(scope="module")
def page(server: Server) -> Iterator[Page]:
    with browser_page(server) as made:
        yield made


def python(script: str) -> str:
    """A job's command that runs a Python script."""
    return "python3 - <<'END'\n" + script.strip() + "\nEND"


def open_log(page: Page, server: Server, name: str, more: str = "") -> None:
    page.goto(f"{server.url}/jobs/admin~{name}/logs/main/0{more}")
    page.wait_for_selector(".log")


def lines_told(page: Page) -> int:
    """How many lines the page says it has."""
    return int(re.sub(r"\D", "", page.locator(".tools > span").last.inner_text().rpartition("·")[2]) or 0)


def ended(page: Page, lines: int, seconds: float = PAGE_PATIENCE) -> None:
    page.wait_for_selector(f"text=ended · {lines:,}", timeout=seconds * 1000)


FAST = """
import sys, time
begin, said, total, rate = time.time(), 0, {total}, {rate}
while said < total:
    now = min(total, int((time.time() - begin) * rate) + 1)
    sys.stdout.write("".join(f"line {{each}} {text}\\n" for each in range(said + 1, now + 1)))
    sys.stdout.flush()
    said = now
    time.sleep(0.02)
time.sleep({rest})
"""


@pytest.mark.parametrize(("rate", "seconds", "number"), [(5_000, 30 if FIGURES else 4, 7), (20_000, 12 if FIGURES else 3, 8)])
def test_a_fast_log_is_followed(page: Page, server: Server, tmp_path: Path, rate: int, seconds: int, number: int) -> None:
    """Checks 7 and 8: every line comes, the last is seen at once, and the page stays awake."""
    name, total = f"fast-{rate}", rate * seconds
    text = "loss=0.25 \\033[32mok\\033[0m"
    server.submit(job(name, python(FAST.format(total=total, rate=rate, text=text, rest=0))))
    server.begun(name)
    open_log(page, server, name)
    trace = traced(page, tmp_path / "trace.json", lambda: ended(page, total, 60 + seconds))
    assert page.locator(f".log .line:has-text('line {total} loss')").count() == 1
    told(number, f"lines at {rate:,} a second", lines_told(page), total)
    within(number, f"longest task at {rate:,} lines a second", trace.longest, 50, "ms CPU")
    begin = server.get(f"/jobs/admin~{name}/logs/main/0").text.splitlines()
    assert [int(each.split()[1]) for each in begin] == list(range(1, total + 1))


def test_the_last_line_is_seen_soon(page: Page, server: Server, tmp_path: Path) -> None:
    """Check 7: from the write of a line to its sight."""
    server.submit(job("soon", f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; date +'now %s.%N'; sleep 600"))
    server.begun("soon")
    open_log(page, server, "soon")
    page.wait_for_selector("text=live")
    (tmp_path / "go").touch()
    page.wait_for_selector(".log .line:has-text('now ')")
    seen = time.time()
    written = float(page.locator(".log .line").last.inner_text().split()[-1])
    within(7, "a line is seen after", 1000 * (seen - written), 500, "ms")
    server.ask("PUT", "/jobs/admin~soon/executionType", {"value": "STOP", "now": True})


def test_an_hour_of_progress_bars_is_one_row(page: Page, server: Server, tmp_path: Path) -> None:
    """Check 8: 36,000 updates of a bar, ten a second for an hour, come as they would when a page is opened late and in pieces."""
    script = """
import sys, time
for each in range(36000):
    sys.stderr.write(f"\\r{each / 360:5.1f}%|{'#' * (each // 900):40}| {each}/36000 [00:{each // 600:02}<01:00, 10.0it/s]")
    if each % 500 == 0: sys.stderr.flush(); time.sleep(0.01)
sys.stderr.write("\\ndone\\n")
"""
    server.submit(job("tqdm", python(script)))
    open_log(page, server, "tqdm")
    trace = traced(page, tmp_path / "trace.json", lambda: page.wait_for_selector("text=ended"))
    page.wait_for_selector(".log .line:has-text('35999/36000')")
    assert page.locator(".log .line").count() == 2
    told(8, "rows of an hour of tqdm", page.locator(".log .line").count() - 1, 1)
    within(8, "an hour of tqdm", trace.total / 1000, 1, "s CPU")


def test_a_long_line_is_cut_and_shown_whole_when_asked(page: Page, server: Server, tmp_path: Path) -> None:
    """Check 8: a line of 5 MB."""
    go = tmp_path / "go"
    script = f"import os, time\nprint('before', flush=True)\nwhile not os.path.exists('{go}'): time.sleep(0.02)\n"
    server.submit(job("wide", python(script + "print('x' * 5_000_000 + 'y')\nprint('after')")))
    open_log(page, server, "wide")
    page.wait_for_selector(".log .line:has-text('before')")

    def come() -> None:
        go.touch()
        ended(page, 3)

    trace = traced(page, tmp_path / "trace.json", come)
    page.wait_for_selector(".log .line:has-text('after')")
    within(8, "a line of 5 MB: longest task", trace.longest, 100, "ms CPU")
    page.click("text=show all (5.0 MB)")
    page.wait_for_selector("dialog pre")
    assert page.evaluate("document.querySelector('dialog pre').textContent.trim().length") == 5_000_001
    page.keyboard.press("Escape")
    page.reload()  # now the log is opened at its end, and the long line comes whole when what is earlier is asked for
    ended(page, 1)
    page.click(".edge button")
    ended(page, 3)


def test_tries_of_a_task_are_told_apart(page: Page, server: Server) -> None:
    """Check 12: three tries, each with its end and its reason between them."""
    server.run(job("tries", 'echo "this is try $FC_TASK_ATTEMPT_ID"; exit $((FC_TASK_ATTEMPT_ID + 3))', retries=2))
    open_log(page, server, "tries")
    page.wait_for_selector(".log .line:has-text('this is try 2')")
    page.click("text=Show try 2")
    page.wait_for_selector(".log .line:has-text('this is try 1')")
    page.click("text=Show try 1")
    page.wait_for_selector(".log .line:has-text('this is try 0')")
    rows = [each.inner_text() for each in page.locator(".log .line").all()]
    order = sorted(zip((_top(each) for each in page.locator(".log .line").all()), rows, strict=True))
    texts = [text for _, text in order]
    assert [re.sub(r"\D*(\d).*", r"\1", text.split("try ")[1]) for text in texts] == ["0", "1", "1", "2", "2"]
    assert page.locator(".log .between").count() == 2
    told(12, "tries told apart", page.locator(".log .between").count() + 1, 3)
    page.select_option("select[aria-label=Try]", "0.1")
    page.wait_for_selector(".log .line:has-text('this is try 1')")
    assert page.locator(".log .line").count() == 1


def _top(line: object) -> float:
    return float(line.evaluate("(each) => parseFloat(each.style.top)"))  # type: ignore[attr-defined]  # a locator


def test_scrolling_up_stops_following_and_the_page_does_not_drift(page: Page, server: Server) -> None:
    """Check 11: what is read stays where it is while lines come; a badge counts them."""
    server.submit(job("scrolled", python(FAST.format(total=10**6, rate=2000, text="of it", rest=0))))
    server.begun("scrolled")
    open_log(page, server, "scrolled")
    wait_for(lambda: lines_told(page) > 3000)
    page.hover(".log")
    page.mouse.wheel(0, -1200)
    page.wait_for_selector(".fresh")

    def seen() -> tuple[str, float]:
        found: tuple[str, float] = page.evaluate(
            "(() => { const box = document.querySelector('.log'), top = box.getBoundingClientRect().top;"
            "const line = [...box.querySelectorAll('.line')]"
            ".map((each) => [each.textContent, each.getBoundingClientRect().top - top])"
            ".filter(([, at]) => at >= 100).sort((one, other) => one[1] - other[1])[0]; return line; })()"
        )
        return found

    page.wait_for_timeout(300)  # the wheel turns smoothly
    first, lines = seen(), lines_told(page)
    wait_for(lambda: lines_told(page) > lines + 4000)
    assert seen() == first
    told(11, "drift after 4,000 lines", "0 px", "0 px")
    page.keyboard.press("f")
    page.wait_for_selector(".fresh", state="detached")
    server.ask("PUT", "/jobs/admin~scrolled/executionType", {"value": "STOP", "now": True})


def test_the_whole_of_a_log_is_reached_and_a_link_to_a_line_stays_true(page: Page, server: Server) -> None:
    """Check 11: a line in the middle of 8 MB is linked, copied and found again; the beginning is reached by scrolling."""
    server.run(job("whole", "seq -f 'line %.0f of many many many words' 1 200000"))
    text = server.get("/jobs/admin~whole/logs/main/0").body
    offset = text.index(b"line 100000 ")
    open_log(page, server, "whole", f"?attempt=0&try=0&at={offset + 4}")
    page.wait_for_selector(".log .line.marked:has-text('line 100000 ')")
    page.click(".log .line:has-text('line 100003 ') .n")
    page.click(".log .line:has-text('line 100005 ') .n", modifiers=["Shift"])
    page.wait_for_selector("text=3 lines")
    page.click(".picked >> text=Copy >> nth=0")
    wanted = "".join(f"line {each} of many many many words\n" for each in (100003, 100004, 100005))
    assert page.evaluate("navigator.clipboard.readText()") == wanted
    page.click(".picked >> text=Copy link")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.endswith(f"at={text.index(b'line 100003 ')}")
    page.goto(f"{server.url}/jobs")
    page.goto(link)
    page.wait_for_selector(".log .line.marked:has-text('line 100003 ')")
    # Later lines come as the reader scrolls, and the end is one click away.
    page.click(".fresh")
    page.wait_for_selector(".log .line:has-text('line 200000 ')")
    for _ in range(60):
        if page.locator(".edge").count() == 0:
            break
        with page.expect_response(lambda answer: "/logs/main/0" in answer.url):
            page.evaluate("(document.querySelector('.log').scrollTop = 0, null)")
        page.wait_for_timeout(20)
    page.evaluate("(document.querySelector('.log').scrollTop = 0, null)")
    page.wait_for_selector(".log .line:has-text('line 1 of')")
    ended(page, 200_000)


def test_a_link_to_a_line_stays_true_after_rotation(server: Server, tmp_path: Path) -> None:
    """Check 11: offsets count from the beginning of a log, of which only the last part is kept."""
    with Server(None, "--stop-jobs", PAILOT_LOG_ROTATE_MB="0.1") as small, browser_page(small) as page:
        wait = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done"
        lines = "seq -f 'old line %.0f of the log' 1 20000; {}; seq -f 'new line %.0f of the log' 1 10000"
        small.submit(job("rotated", lines.format(wait)))
        open_log(page, small, "rotated")
        page.wait_for_selector(".log .line:has-text('old line 20000 ')")
        page.click(".log .line:has-text('old line 19990 ') .n")
        link = page.url
        (tmp_path / "go").touch()
        small.wait("rotated")
        gone = small.ask("GET", "/jobs/admin~rotated/logs/main/0", headers={"Range": "bytes=0-9"})
        assert (gone.status, gone.code) == (416, "LogRotatedError")
        page.goto(f"{small.url}/jobs")
        page.goto(link)
        page.wait_for_selector(".log .line.marked:has-text('old line 19990 ')")
        told(11, "a link after rotation finds", "its line", "its line")


def test_stderr_and_times_are_shown(page: Page, server: Server) -> None:
    server.run(job("streams", "echo on stdout; sleep 0.1; echo on stderr >&2; sleep 0.1; echo again"))
    open_log(page, server, "streams")
    page.wait_for_selector(".log .line.err:has-text('on stderr')")
    assert page.locator(".log .line.err").count() == 1
    page.check("label:has-text('Times') input")
    page.wait_for_selector(".log .when:text-matches('^\\\\d\\\\d:\\\\d\\\\d:\\\\d\\\\d[.]\\\\d{3}$')")
    page.uncheck("label:has-text('Times') input")
    page.select_option("select[aria-label=Stream]", "stderr")
    ended(page, 1)
    assert page.locator(".log .line").count() == 1


def test_every_line_comes_once_through_crashes_of_the_server(server: Server, tmp_path: Path) -> None:
    """Check 13: killed and started again while 30,000 lines come, the page goes on within 5 s of the start."""
    with Server(None, "--stop-jobs") as other, browser_page(other) as page:
        name, total = "survivor", 30_000
        other.submit(job(name, python(FAST.format(total=total, rate=4_000, text="of it", rest=0))))
        other.begun(name)
        open_log(page, other, name)
        wait_for(lambda: lines_told(page) > 2000)
        other.kill()
        time.sleep(1)
        other.start()
        started, lines = time.time(), lines_told(page)
        wait_for(lambda: lines_told(page) > lines)
        within(13, "live again after a crash of the server", time.time() - started, 5, "s")
        ended(page, total, 90)
        page.evaluate("(document.querySelector('.log').scrollTop = 0, null)")
        page.wait_for_selector(".log .line:has-text('line 1 of')")
        told(13, "lines", lines_told(page), total)


BIG = """
import sys
block = "".join(f"line {{each:7}} of a log with words that nobody looks for\\n" for each in range(20000)).encode()
for each in range({blocks}):
    sys.stdout.buffer.write(block)
    if each == {blocks} // 2: sys.stdout.buffer.write(b"here is the Needle in the middle\\n")
"""


def test_find_in_a_long_log(page: Page, server: Server) -> None:
    """Check 10: the server looks, and the page reads little."""
    blocks = 92
    server.run(job("big", python(BIG.format(blocks=blocks))))
    size = int(server.ask("HEAD", "/jobs/admin~big/logs/main/0").headers["content-length"])
    assert size > 100_000_000
    read: list[int] = []
    page.on("requestfinished", lambda sent: read.append(sent.sizes()["responseBodySize"]))
    open_log(page, server, "big")
    page.wait_for_selector("text=ended")
    begin = time.time()
    page.keyboard.press("Control+f")
    page.keyboard.insert_text("needle")
    page.wait_for_selector("text=1 of 1")
    page.wait_for_selector(".log .line.hit.at:has-text('here is the Needle')")
    within(10, f"find in {size / 1e6:.0f} MB", time.time() - begin, 1.5, "s")
    told(10, "read by the page", f"{sum(read) / 1e6:.1f} MB", "8 MB")
    assert sum(read) < 8_000_000


def test_find_goes_from_hit_to_hit_and_over_all_tasks(page: Page, server: Server) -> None:
    words = 'for i in 1 2 3; do echo "Hit $i of $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"; seq 1 500; done'
    server.run(job("hits", words, instances=2))
    open_log(page, server, "hits")
    page.wait_for_selector("text=ended")
    page.keyboard.press("/")
    page.keyboard.insert_text("hit ")
    page.wait_for_selector("text=1 of 3")
    for each in (2, 3, 1):
        page.keyboard.press("Enter")
        page.wait_for_selector(f"text={each} of 3")
        page.wait_for_selector(f".log .line.at:has-text('Hit {each} of 0')")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector("text=3 of 3")
    page.click("button:has-text('Aa')")
    page.wait_for_selector("text=no match")
    page.click("button:has-text('.*')")
    page.fill("#find-log", "^Hit [23]")
    page.wait_for_selector("text=1 of 2")
    page.click("button:has-text('all tasks')")
    page.wait_for_selector("text=1 of 4")
    page.click(".hit-line:has-text('Hit 3 of 1')")
    page.wait_for_selector(".log .line.marked:has-text('Hit 3 of 1')")
    assert "/logs/main/1" in page.url


def test_logs_are_downloaded(page: Page, server: Server) -> None:
    server.run(job("loaded", "echo kept words"))
    open_log(page, server, "loaded")
    page.wait_for_selector("text=ended")
    for kind, first in (("1", b"kept words"), ("gz", b"\x1f\x8b"), ("zip", b"PK")):
        with page.expect_download() as waited:
            page.select_option("select.menu", kind)
        assert waited.value.path().read_bytes().startswith(first)
