"""What all handlers share: the team, the accounts, the limits; and the begin and end of the server's life."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

from ..jobserver import server_log
from ..jobserver.audit import AuditLog
from ..jobserver.lifespan import running_team
from ..jobserver.oidc.configuration import check_address, sign_on_settings
from ..jobserver.sessions import Sessions
from ..jobserver.task_sessions import TaskSessions
from .auth import Gate
from .bootstrap import open_accounts, open_sign_in
from .toolkit.addresses import Proxies
from .toolkit.metrics import AccessLog, Metrics
from .toolkit.rate_limits import Limiter, parse_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypeVar

    from ..jobserver.accounts import Accounts
    from ..jobserver.oidc.sign_in import SignIn
    from ..jobserver.service import Team
    from ..settings import Settings
    from ..store.server import ServerStore
    from .toolkit.http import Headers, Response, Scope
    from .toolkit.routing import Route

    P = ParamSpec("P")
    T = TypeVar("T")

_REMEMBERED = 2000
_EXPOSED = (
    b"Content-Range, ETag, Retry-After, X-Log-Ended, X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"
)


class Site:
    """The server's insides."""

    team: Team
    store: ServerStore
    accounts: Accounts
    sessions: Sessions
    gate: Gate
    task_sessions: TaskSessions
    audit: AuditLog
    sign_in: SignIn | None = None
    """Single sign-on, where it is set."""
    routes: tuple[Route, ...] = ()

    def __init__(self, settings: Settings, *, engine: str = "local", host: str = "127.0.0.1") -> None:
        self.settings = settings
        self.engine = engine
        self.host = host
        self.limiter = Limiter(parse_limits(settings["rate_limits"]))
        self.proxies = Proxies(settings["trusted_proxies"])
        self.cors = tuple(settings["cors"])
        self.metrics = Metrics()
        self.log_options = server_log.LogOptions.of(settings)
        self.access_log = (
            AccessLog(settings["access_log"], as_json=self.log_options.format == "json") if settings["access_log"] else None
        )
        self.succeeded = settings["v1_succeeded_state"]
        self.anonymous_read = _anonymous_read(settings["v1_anonymous_read"])
        """`on`, `off`, or `auto`: the gate looks where each request comes from."""
        self.code_limit = int(settings["code_limit_mb"] * 1_000_000)
        self.node = socket.gethostname()
        self.ending = "hand-over"
        self.password: str | None = None
        """Of the first user, where it was made up by this start."""
        self.on_ready: Callable[[], None] | None = None
        self.sign_on = sign_on_settings(settings)
        self.public_url = str(settings["public_url"]).rstrip("/")
        if self.public_url:
            check_address("public_url", self.public_url)
        self._roles: dict[str, dict[str, int]] = {}
        self._threads = ThreadPoolExecutor(4, "pailot-work")
        self._password_threads = ThreadPoolExecutor(2, "pailot-password")
        self._provider_threads = ThreadPoolExecutor(2, "pailot-provider")
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Open the home, find the jobs, make the first user."""
        self.team = await self._stack.enter_async_context(running_team(self.settings, engine=self.engine))
        self.store = self.team.store
        self.accounts, self.password = await self.call(open_accounts, self.store, self.settings)
        self.sessions = Sessions(self.store, self.accounts, time.time)
        if self.sign_on is not None:
            self.sign_in = open_sign_in(self.sign_on, self.store, self.settings, self.accounts, self.sessions)
        self.gate = Gate(self)
        self.task_sessions = TaskSessions(self.team, self.settings)
        self.audit = AuditLog(self.settings.home, self.settings["audit_file_mb"])

    async def stop(self) -> None:
        await self.team.shutdown(self.ending)
        await self._stack.aclose()
        self.audit.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._password_threads.shutdown(wait=False, cancel_futures=True)
        self._provider_threads.shutdown(wait=False, cancel_futures=True)

    async def call(self, work: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
        """Something that waits or computes, beside the loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(*args, **keywords))

    async def hash(self, work: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
        """Something that hashes a password: 20 MB and many milliseconds each, so two at once, and outside of the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._password_threads, lambda: work(*args, **keywords))

    async def ask_provider(self, work: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
        """Something that waits for the identity provider, in threads of its own: where that is slow, nothing else is."""
        return await asyncio.get_running_loop().run_in_executor(self._provider_threads, lambda: work(*args, **keywords))

    async def roles(self, job: str) -> dict[str, int]:
        """A job's task roles, and how many tasks each has; that never changes."""
        known = self._roles.get(job)
        if known is None:
            text = await self.call(self.store.jobs.plan, job)
            plan = json.loads(text) if text else {}
            if len(self._roles) >= _REMEMBERED:
                self._roles.clear()
            known = self._roles[job] = {name: role["instances"] for name, role in plan.get("taskRoles", {}).items()}
        return known

    def cors_headers(self, scope: Scope, method: str, response: Response) -> Headers:
        """What tells a browser that a page of another address may read the answer."""
        origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
        if origin is None or not ("*" in self.cors or origin.decode("latin-1") in self.cors):
            return []
        headers = [
            (b"access-control-allow-origin", b"*" if "*" in self.cors else origin),
            (b"access-control-expose-headers", _EXPOSED),
            (b"vary", b"Origin"),
        ]
        if method == "OPTIONS":
            allowed = next((value for name, value in response.headers if name == b"allow"), b"GET")
            headers += [
                (b"access-control-allow-methods", allowed),
                (b"access-control-allow-headers", b"Authorization, Content-Type, If-None-Match, If-Range, Last-Event-ID, Range"),
                (b"access-control-max-age", b"600"),
            ]
        return headers

    def log_defect(self, error: BaseException | None, where: str = "") -> str:
        """Write down a defect of ours under a number that the client is told."""
        number = secrets.token_hex(4)
        if error is not None:
            text = "".join(traceback.format_exception(error))
            server_log.SERVER.error("defect %s", number, extra={"fields": {"of": where}, "traceback": text})
        return number


def _anonymous_read(word: str) -> str:
    word = word.lower()
    return "on" if word in ("on", "true", "yes", "1") else "auto" if word == "auto" else "off"
