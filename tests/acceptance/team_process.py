"""A server without HTTP: `python -m tests.acceptance.team_process SOCKET` answers a line of JSON with a line of JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from pailot.protocol.problems import PailotError
from pailot.service.team.errors import Conflict
from pailot.service.team.serve import running_team
from pailot.service.team.team import Team
from pailot.service.team.values import Caller
from pailot.settings import Settings


async def answer(team: Team, question: dict[str, Any]) -> dict[str, Any]:
    caller = Caller(question["user"])
    if "submit" in question:
        try:
            return {"name": (await team.submit(caller, question["submit"])).name}
        except Conflict:
            return {"conflict": True}
    if "state" in question:
        record = await team.get(caller, f"{caller.name}~{question['state']}")
        return {"state": record.state, "attempts": record.attempts, "retries": record.retries, "folder": record.folder}
    return {"unfinished": len(team.floor.entries), "figures": team.figures()}


async def main(path: str) -> None:
    async with running_team(Settings()) as team:

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                async for line in reader:
                    try:
                        said = await answer(team, json.loads(line))
                    except PailotError as error:
                        said = {"error": str(error)}
                    writer.write(json.dumps(said).encode() + b"\n")
            except ConnectionError:
                pass  # whoever asked has gone
            finally:
                writer.close()

        async with await asyncio.start_unix_server(serve, path):
            print("ready", flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
