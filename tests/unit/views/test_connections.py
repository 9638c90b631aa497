"""Connections of several threads to one server, as one user."""

from __future__ import annotations

from pailot.views.cancellation import Quit
from pailot.views.connections import Connections

from ...support.stand_in_server import Answer, Request, StandIn


def test_a_token_that_has_expired_is_renewed_once_for_all_connections() -> None:
    made: list[str] = []

    def renew(refused: str) -> str:
        made.append(refused)
        return f"token-{len(made)}"

    def answer(request: Request) -> Answer:
        if request.headers["Authorization"] != "Bearer token-1":
            return 401, {"code": "UnauthorizedUserError", "message": "Your token is invalid."}
        return 200, {"username": "ann"}

    with StandIn(answer) as server:
        connections = Connections(server.url, "expired", "", renew)
        aside = connections.aside(Quit())  # made while the old token was good
        assert connections.mine.whoami() == {"username": "ann"}
        assert aside.request("GET", "/api/v2/tokens/check").json() == {"username": "ann"}
        connections.mine.close()
        aside.close()
    assert made == ["expired"]
