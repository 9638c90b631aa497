"""The web page as it is served: files, addresses, headers; and sessions, which need a cookie and a page secret together."""

from __future__ import annotations

import http.client
import json
import posixpath
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pailot.server.page import CONTENT_SECURITY_POLICY
from pailot.testing.runs import PATIENCE

from ..support.http_server import PASSWORD, Answer, Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "src" / "pailot" / "page"
OWN = [each for each in PAGE.rglob("*.js") if "vendor" not in each.parts]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs") as started:
        yield started
        assert "defect" not in started.log.read_text()


class Browser:
    """Keeps a cookie and a page secret, and sends what it is told to."""

    def __init__(self, server: Server) -> None:
        self.server, self.cookie, self.page = server, "", ""

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        more: dict[str, str] | None = None,
        *,
        cookie: bool = True,
        page: bool = True,
    ) -> Answer:
        line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if cookie and self.cookie:
            headers["Cookie"] = self.cookie
        if page and self.page:
            headers["X-Pailot-Page"] = self.page
        line.request(method, path, json.dumps(body) if body is not None else None, {**headers, **(more or {})})
        answer = line.getresponse()
        found = Answer(answer.status, answer.headers, answer.read())
        line.close()
        return found

    def enter(self, **body: str) -> Answer:
        answer = self.ask("POST", "/api/v2/session", body or {"username": "admin", "password": PASSWORD})
        if answer.status == 200:
            self.cookie = (answer.headers["Set-Cookie"] or "").partition(";")[0]
            self.page = answer.json["page"]
        return answer


@pytest.fixture
def browser(server: Server) -> Browser:
    made = Browser(server)
    assert made.enter().status == 200
    return made


def test_every_address_of_the_page_is_the_page(server: Server) -> None:
    browser = Browser(server)
    for path in ("/", "/jobs", "/jobs/admin~x/logs/main/0?at=1", "/submit", "/cluster", "/account", "/login?next=/jobs"):
        answer = browser.ask("GET", path)
        assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8"), path
        assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert browser.ask("GET", "/api/v2/nothing").code == "NoApiError"
    assert browser.ask("GET", "/page/../../../etc/passwd").status == 404
    assert browser.ask("POST", "/jobs").status == 404


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/job-detail.html?username=ann&jobName=first", "/jobs/ann~first"),
        ("/job-detail.html?username=ann&jobName=a%2F..%2Fb", "/jobs/ann~a%2F..%2Fb"),
        ("/job-list.html", "/jobs"),
        ("/submit.html", "/submit"),
        ("/view.html", "/jobs"),
    ],
)
def test_addresses_of_openpais_page_lead_to_ours(server: Server, old: str, new: str) -> None:
    answer = Browser(server).ask("GET", old)
    assert (answer.status, answer.headers["location"]) == (302, new)


def test_every_file_that_is_imported_is_served_and_a_copy_is_asked_for_once(server: Server) -> None:
    browser, seen, todo = Browser(server), set(), ["main.js"]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        answer = browser.ask("GET", f"/page/{name}")
        assert (answer.status, answer.headers["content-type"]) == (200, "text/javascript; charset=utf-8"), name
        again = browser.ask("GET", f"/page/{name}", more={"If-None-Match": answer.headers["etag"]})
        assert (again.status, again.body) == (304, b"")
        if not name.startswith("vendor/"):
            named = re.findall(r'(?:from|import\()\s*"(\.[^"]+)"', answer.text)
            todo += [posixpath.normpath(posixpath.join(posixpath.dirname(name), each)) for each in named]
    assert {f"{each.relative_to(PAGE)}" for each in OWN} <= seen


def test_the_first_load_is_small() -> None:
    import gzip

    first = ["index.html", "style.css", "main.js", "vendor/preact.js", "views/login.js", "views/jobs.js", "icon.svg"]
    first += [f"lib/{name}.js" for name in ("api", "format", "keys", "router", "ui", "words")]
    assert len(first) <= 14
    assert sum(len(gzip.compress((PAGE / each).read_bytes())) for each in first) < 60_000


def test_text_is_never_made_into_html() -> None:
    """What a task prints, or a user is called, is a text node; nothing here makes HTML of a string."""
    words = "innerHTML outerHTML insertAdjacentHTML document[.]write eval[(] Function[(] dangerouslySetInnerHTML srcdoc"
    banned = re.compile("|".join(words.split()))
    assert not [each for each in OWN if banned.search(each.read_text())]
    assert not re.search(r"""\bon\w+=|<script(?! type="module" src="/page/main\.js")|style=""", (PAGE / "index.html").read_text())


def test_a_session_needs_its_cookie_and_its_page_secret(browser: Browser) -> None:
    assert browser.ask("GET", "/api/v2/session").json["user"] == "admin"
    for cookie, page in ((True, False), (False, True), (False, False)):
        for path in ("/api/v2/session", "/api/v2/jobs", "/api/v2/live/jobs"):
            assert browser.ask("GET", path, cookie=cookie, page=page).status == 401, (cookie, page, path)
    wrong = Browser(browser.server)
    wrong.cookie, wrong.page = browser.cookie, "x" * 43
    assert wrong.ask("GET", "/api/v2/jobs").status == 401


def test_the_cookie_is_no_token_and_no_script_reads_it(browser: Browser, server: Server) -> None:
    opened = browser.enter()
    said = opened.headers["Set-Cookie"]
    assert "HttpOnly" in said
    assert "SameSite=Strict" in said
    id = browser.cookie.partition("=")[2]
    assert id not in opened.text
    assert server.get("/jobs", id).status == 401
    assert not [each for each in server.home.rglob("*") if each.is_file() and id.encode() in each.read_bytes()]


def test_a_form_of_another_page_opens_no_session(server: Server) -> None:
    browser = Browser(server)
    kind = {"Content-Type": "text/plain"}
    assert browser.ask("POST", "/api/v2/session", {"username": "admin", "password": PASSWORD}, kind).status == 415


def test_logging_out_ends_a_session_at_once(browser: Browser) -> None:
    assert browser.ask("DELETE", "/api/v2/session").status == 200
    over = browser.ask("GET", "/api/v2/jobs")
    assert (over.status, over.code) == (401, "SessionOverError")


def test_sessions_and_tokens_are_shown_by_id_and_never_whole(browser: Browser, server: Server) -> None:
    token = server.ask("POST", "/tokens/application", {"note": "nightly"}).json["token"]
    held = browser.ask("GET", "/api/v2/sessions")
    assert token not in held.text
    assert token.split(".")[2] not in held.text
    assert browser.ask("GET", "/api/v2/tokens").status == 403
    (nightly,) = [each for each in held.json if each["note"] == "nightly"]
    assert nightly["kind"] == "application"
    assert [each["kind"] for each in held.json if each["current"]] == ["page"]
    assert browser.ask("DELETE", f"/api/v2/sessions/{nightly['id']}").status == 200
    assert server.get("/jobs", token).status == 401


def test_a_new_password_ends_other_sessions(server: Server) -> None:
    server.user("changer")
    one, other = Browser(server), Browser(server)
    for each in (one, other):
        assert each.enter(username="changer", password=PASSWORD).status == 200
    body = {"oldPassword": PASSWORD, "newPassword": "another horse"}
    assert one.ask("PUT", "/api/v2/users/changer/password", body).status == 201
    assert one.ask("GET", "/api/v2/session").status == 200
    assert other.ask("GET", "/api/v2/session").status == 401


def test_a_code_opens_a_session_once(server: Server) -> None:
    program = server.ask("POST", "/tokens/application", {}).json["token"]
    assert server.ask("POST", "/session/code", {}, program).status == 403
    code = server.ask("POST", "/session/code", {}).json["code"]
    first, second = Browser(server), Browser(server)
    assert first.enter(code=code).json["user"] == "admin"
    assert first.ask("GET", "/api/v2/jobs").status == 200
    assert second.enter(code=code).status == 401
    assert second.enter(code="made up").status == 401


def test_a_session_outlives_the_server(tmp_path: Path) -> None:
    with Server(tmp_path / "home") as server:
        browser = Browser(server)
        browser.enter()
        server.kill()
        server.start()
        assert browser.ask("GET", "/api/v2/session").json["user"] == "admin"


def test_what_the_page_lists(browser: Browser, server: Server) -> None:
    server.run(job("listed", "true"))
    rows = browser.ask("GET", "/api/v2/jobs?format=row&withTotalCount=true&keyword=listed").json
    assert rows["totalCount"] == 1
    row = rows["data"][0]
    assert (row["state"], row["tasks"], row["cpus"], row["memoryMB"]) == ("SUCCEEDED", 1, 1, 64)
    assert browser.ask("GET", "/api/v2/jobs/counts?keyword=listed").json["SUCCEEDED"] == 1
    capacity = browser.ask("GET", "/api/v2/capacity").json
    assert capacity["total"]["cpu"] == 16
    assert "default" in capacity["virtualClusters"]


def test_capacity_names_holders_and_the_line(browser: Browser, server: Server) -> None:
    server.submit(job("holds", "sleep 600").replace("cpu: 1", "cpu: 16"))
    server.submit(job("behind", "true"))
    shown = browser.ask("GET", "/api/v2/capacity").json
    assert [each["job"] for each in shown["holders"]] == ["admin~holds"]
    (waiting,) = [each for each in shown["waiting"] if each["job"] == "admin~behind"]
    assert waiting["reason"]["holders"][0]["job"] == "admin~holds"
    server.ask("PUT", "/jobs/admin~holds/executionType", {"value": "STOP", "now": True})
    server.wait("behind")


def test_the_types_of_the_page_are_right() -> None:
    tsc = ROOT / "page-vendor" / "node_modules" / ".bin" / "tsc"
    if not tsc.exists():
        pytest.skip("the types of the page are not checked; enable that with: cd page-vendor && npm ci")
    done = subprocess.run([tsc, "-p", ROOT / "page-vendor"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_third_party_code_is_built_again_byte_for_byte(tmp_path: Path) -> None:
    vendor = ROOT / "page-vendor"
    if not (vendor / "node_modules" / "esbuild").exists():
        pytest.skip("the third-party code of the page is not built again; enable that with: cd page-vendor && npm ci")
    subprocess.run(["node", "build.js", str(tmp_path)], cwd=vendor, check=True, capture_output=True)
    for made in tmp_path.iterdir():
        assert made.read_bytes() == (PAGE / "vendor" / made.name).read_bytes(), made.name


def test_the_docs_show_every_picture_of_the_page() -> None:
    shown = (ROOT / "docs" / "how-to" / "use-the-page.md").read_text()
    there = {each.name for each in (ROOT / "docs" / "pictures").glob("page-*.png")}
    assert there == {
        f"page-{view}-{theme}.png"
        for view in ("jobs", "job", "logs", "timeline", "usage", "submit", "cluster")
        for theme in ("light", "dark")
    }
    assert not [each for each in there if f"../pictures/{each}" not in shown]


def test_modules_without_a_browser() -> None:
    node = shutil.which("node")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout if node else "v0"
    if node is None or int(version.lstrip("v").partition(".")[0]) < 20:
        pytest.skip("needs node 20 or newer: sudo apt-get install nodejs")
    tests = sorted(str(each) for each in (ROOT / "tests" / "page").glob("*.test.js"))
    done = subprocess.run([node, "--test", *tests], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
