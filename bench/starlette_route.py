"""A bare Starlette route with the same answer as ours, for comparison: `python starlette_route.py`; prints its port."""

from __future__ import annotations

import socket

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

ANSWER = {
    "name": "PAI RESTful API",
    "version": "pailot-0.0.0",
    "launcherType": "k8s",
    "authnMethod": "basic",
    "openPAIversion": "v1.8.1",
}


async def info(_: Request) -> JSONResponse:
    return JSONResponse(ANSWER)


if __name__ == "__main__":
    line = socket.socket()
    line.bind(("127.0.0.1", 0))
    print(line.getsockname()[1], flush=True)
    app = Starlette(routes=[Route("/api/v2/info", info)])
    config = uvicorn.Config(app, log_level="error", access_log=False, loop="uvloop", http="httptools", lifespan="off")
    uvicorn.Server(config).run(sockets=[line])
