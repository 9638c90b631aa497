"""A program of a user, with every public name. It is checked by mypy --strict, and run, where only our wheel is installed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import pailot
from pailot import Auth, Callback, Data, Deployment, DockerImage, Output, Prerequisite, Script, TaskRole


def build(*, secret: bool = False) -> pailot.Job:
    auth = Auth("me", "<% $secrets.key %>", registry="registry.example.com")
    image = DockerImage("image", "debian:12", auth=auth if secret else None)
    tool: Prerequisite = Script(
        "tool", callbacks=[Callback("containerStart", "echo start"), Callback("containerExit", ["echo end"])]
    )
    role = TaskRole(
        commands=["echo <% $parameters.word %> >&2", "echo <% $data.uri[0] %> <% $output.uri %>"],
        image=image,
        data=Data("data", "/data"),
        output=Output("output", "/output"),
        prerequisites=[tool],
        instances=2,
        ports={"http": 1},
    )
    job: pailot.Job = pailot.Job(
        "script",
        {"main": role},
        parameters={"word": "hello"},
        secrets={"key": "a-secret-word"} if secret else None,
        deployments=[Deployment("here", {"main": ["echo before"]})],
        deployment="here",
    )
    return job


def problems(error: pailot.InvalidJob) -> Sequence[pailot.Problem]:
    return [problem for problem in error.problems if problem.is_error]


def check(file: str) -> None:
    job = build(secret=True)
    job.save(file, with_secrets=True)
    assert pailot.load(file) == pailot.loads(job.to_yaml(with_secrets=True)) == job
    plan: pailot.Plan = pailot.plan(job)
    assert "hello" in plan.roles["main"].entrypoint
    try:
        pailot.loads("name: no")
    except pailot.InvalidJob as error:
        assert problems(error)  # noqa: PT017  # this is no test


def follow(run: pailot.Run) -> list[str]:
    logs: pailot.Logs = run.logs("main", 0, follow=True, stream="stdout")
    lines: list[str] = list(logs)
    events: list[pailot.Event] = list(run)
    assert events[-1].kind == "ended"
    result: pailot.Result = run.result(timeout=600)
    assert result.seconds >= 0
    return lines


async def two() -> list[str]:
    runs = await asyncio.gather(*[pailot.run_async(build(), unique=True) for _ in range(2)])
    return [result.state for result in await asyncio.gather(*runs)]


def fails() -> tuple[str | None, int | None]:
    try:
        pailot.run(pailot.Job("fails", {"main": TaskRole(commands="exit 3", image="debian")}), labels={"a": "b"}).result()
    except pailot.JobFailed as error:
        return error.task, error.exit_code
    return None, None


def errors() -> None:
    """What somebody would write around a call."""
    for kind in (
        pailot.WaitTimeout,
        pailot.JobStopped,
        pailot.RunError,
        pailot.Conflict,
        pailot.NoSuchRun,
        pailot.BadSetting,
        pailot.DataError,
        pailot.EngineError,
        pailot.StoreError,
        pailot.Denied,
        pailot.NotFound,
        pailot.Refused,
        pailot.Unreachable,
        pailot.WireError,
    ):
        error: type[pailot.PailotError] = kind
        assert issubclass(error, pailot.PailotError)
    try:
        pailot.Client("http://127.0.0.1:9", token="x").get("any")
    except pailot.Unreachable as problem:
        assert "127.0.0.1:9" in str(problem)  # noqa: PT017  # this is no test


def main() -> None:
    check(sys.argv[1])
    sys.stdout.write(f"{pailot.__version__} {follow(pailot.run(build()))}\n")
    sys.stdout.write(f"{asyncio.run(two())} {fails()} {pailot.get('fails').state} {len(list(pailot.runs()))}\n")
    errors()


if __name__ == "__main__":
    main()
