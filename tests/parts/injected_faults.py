"""Pailot with faults: a job's name says in which step something unforeseen happens to it.

    python -m tests.parts.injected_faults serve --json --port 0

`python -m pailot`, but for this: a job that is named `KIND-CLASS-METHOD` makes that method raise whenever it is called for that
job; a step that is about no job in particular raises once, after such a job has come. Every step is taken from the classes
themselves. The keeper is started with the same. Production knows nothing of all this.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KINDS = ("quick", "again", "stop")
FIRED = "FAULTS_FIRED"
"""The variable with the path of a file that gets a line for each fault."""


class Unforeseen(Exception):
    """Nothing of ours knows this exception."""


def classes() -> dict[str, type]:
    """Whose methods are steps of a loop that serves jobs, by the name in a job's name."""
    from pailot.engines.local.engine import LocalEngine
    from pailot.jobserver.dispatcher import Dispatcher
    from pailot.jobserver.housekeeping import Housekeeping
    from pailot.jobserver.keeper.keeper import Keeper, Running
    from pailot.jobserver.notifications import Notices
    from pailot.userruns.driver import Driver

    return {each.__name__: each for each in (Keeper, Running, Driver, LocalEngine, Dispatcher, Housekeeping, Notices)}


NO_STEPS = {
    "Keeper": "run listen _leave _retire _take _serve _fail _end _owner_failed",
    "Dispatcher": "begin end add stop watch unwatch decide_soon _enter _hear _lost _new_keeper _decide_now _also _for _defect "
    "_spawn _spawn_for",
    "Housekeeping": "begin end _run",
    "Notices": "begin end _run _wake _deliver",
}
"""Methods that are the loop itself, that requests call (whoever asks hears the fault), or that hear of faults themselves."""


def steps() -> list[str]:
    """`CLASS-METHOD` for each step."""
    return [
        f"{name}-{method}"
        for name, each in classes().items()
        for method, function in vars(each).items()
        if inspect.isfunction(function) and not method.startswith("__") and method not in NO_STEPS.get(name, "").split()
    ]


def inject() -> None:
    """Make every step one that can fail."""
    named: dict[str, str] = {}
    once: set[str] = set()
    driver = classes()["Driver"]
    make = driver.__init__  # type: ignore[misc]  # of a class, not of an object

    def made(self: Any, folder: Any, plan: Any, engine: Any, *more: Any, **options: Any) -> None:
        make(self, folder, plan, engine, *more, **options)
        engine.job_of_test = plan.name

    driver.__init__ = made  # type: ignore[misc]  # as above
    for step in steps():
        name, _, method = step.partition("-")
        each = classes()[name]
        setattr(each, method, _faulty(getattr(each, method), step, named, once))
    for table in (driver._AT_ONCE, driver._IN_STEPS):  # type: ignore[attr-defined]  # by which instructions are carried out
        table.update({instruction: getattr(driver, function.__name__) for instruction, function in table.items()})


def _faulty(function: Callable[..., Any], step: str, named: dict[str, str], once: set[str]) -> Callable[..., Any]:
    def check(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        found = list(_jobs((*arguments, *keywords.values()), named))
        for job in found:
            if job.partition("-")[2] == step:
                _fire(step, job)
        if not found and step not in once and any(job.partition("-")[2] == step for job in named.values()):
            once.add(step)
            _fire(step, "")

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*arguments: Any, **keywords: Any) -> Any:
            check(arguments, keywords)
            return await function(*arguments, **keywords)

        return coroutine

    @functools.wraps(function)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        check(arguments, keywords)
        return function(*arguments, **keywords)

    return wrapper


def _fire(step: str, job: str) -> None:
    with open(os.environ[FIRED], "a") as stream:
        stream.write(f"{step} {job}\n")
    raise Unforeseen(f"injected into {step}")


def _jobs(values: tuple[Any, ...], named: dict[str, str]) -> Iterator[str]:
    """The names of the jobs that a call is about."""
    for value in values:
        if isinstance(value, str):
            if value in named:
                yield named[value]
        elif isinstance(value, dict):
            if isinstance(value.get("job"), dict):
                named[value["id"]] = value["job"]["name"]
            if value.get("id") in named:
                yield named[value["id"]]
        else:
            plan = getattr(value, "plan", None) or getattr(getattr(value, "driver", None), "plan", None)
            record = getattr(value, "record", value)
            if hasattr(value, "job_of_test"):
                yield value.job_of_test
            elif getattr(record, "submitted", None) is not None and getattr(record, "name", None):
                named[record.id] = record.name
                yield record.name
            elif getattr(plan, "roles", None) is not None:
                assert plan is not None
                yield plan.name
            elif isinstance(getattr(value, "job", None), str) and value.job in named:
                yield named[value.job]


def main() -> None:
    from pailot.cli.main import main as pailot
    from pailot.jobserver import keeper_client

    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    words = f"import sys; sys.path[:0] = [sys.argv[1], {here!r}]; from tests.parts.injected_faults import inject; inject(); "
    keeper_client._START = words + keeper_client._START
    inject()
    sys.exit(pailot(sys.argv[1:]))


if __name__ == "__main__":
    main()
