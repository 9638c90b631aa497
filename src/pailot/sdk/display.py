"""What a person sees while a program waits: a bar on a terminal, a table that lives in a notebook."""

from __future__ import annotations

import time
from html import escape
from threading import Thread

from ..client.errors import Unreachable
from ..errors import PailotError
from ..progress import RedrawnLine, as_html, bar, display_html, in_notebook, is_terminal
from ..views.cancellation import Quit
from .transfer_progress import Transfers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..progress import Progress
    from .run import Run

COLOURS = {"SUCCEEDED": "#1a7f37", "FAILED": "#cf222e", "STOPPED": "#9a6700", "RUNNING": "#0969da"}

DRAW_SECONDS = 1.0


def wanted(asked: bool | None) -> bool:
    """Whether to show progress by default: in a notebook, and on a terminal."""
    return asked if asked is not None else in_notebook() or is_terminal()


def watch(run: Run, timeout: float | None, quit: Quit) -> bool:
    """Wait for the end of a run, showing how far it is: once a second, and when it is over."""
    with Transfers(run.view) as transfers:
        return _watch(run, timeout, quit, transfers)


def _watch(run: Run, timeout: float | None, quit: Quit, transfers: Transfers) -> bool:
    began = time.monotonic()
    shown: Any = display_html(run._repr_html_()) if in_notebook() else RedrawnLine()
    ended: list[bool | BaseException] = []

    def wait() -> None:
        try:
            ended.append(run.view.wait(timeout, quit))
        except BaseException as error:  # raised below
            ended.append(error)

    waiting = Thread(target=wait, name=f"wait for {run.name}", daemon=True)
    waiting.start()
    try:
        while True:
            waiting.join(DRAW_SECONDS)
            _draw(run, shown, time.monotonic() - began, transfers.latest)
            if not waiting.is_alive():
                break
    except BaseException:  # Ctrl-C
        quit.set()
        raise
    finally:
        if isinstance(shown, RedrawnLine):
            shown.clear()
    if isinstance(ended[0], BaseException):
        raise ended[0]
    return ended[0]


def _draw(run: Run, shown: Any, seconds: float, moving: Progress | None) -> None:
    try:
        record = run.describe()
    except Unreachable:
        return  # the server is away; the wait has its own time limit
    if not isinstance(shown, RedrawnLine):
        shown.update(as_html(table(record) + (moving.html() if moving else "")))
    else:
        shown.draw(moving.line() if moving else line(record, seconds))


def line(record: Mapping[str, Any], seconds: float) -> str:
    """One line: a bar of the tasks that ended, how many, how long."""
    states = _states(record)
    ended = sum(state not in ("RUNNING", "WAITING", "HELD") for state in states)
    drawn = bar(ended / max(1, len(states)))
    return f"{record['name']} {drawn} {ended} of {len(states)} tasks ended · {record['state']} · {int(seconds)} s"


def table(record: Mapping[str, Any]) -> str:
    """A run as HTML."""

    def coloured(state: str) -> str:
        return f'<span style="color:{COLOURS.get(state, "#57606a")};font-weight:600">{escape(state)}</span>'

    states = _states(record)
    ended = sum(state not in ("RUNNING", "WAITING", "HELD") for state in states)
    rows = "".join(
        f"<tr><td>{escape(role)}:{task['index']}</td><td>{coloured(task['state'])}</td>"
        f"<td>{'' if task.get('exitCode') is None else task['exitCode']}</td><td>{task.get('attempts') or ''}</td>"
        f"<td style='text-align:left'>{escape(task.get('reason') or '')}</td></tr>"
        for role, node in record["taskRoles"].items()
        for task in node["tasks"][:50]
    )
    more = "" if len(states) <= 50 else f"<tr><td colspan=5>and more: {len(states)} tasks in all</td></tr>"
    return (
        f"<div><b>{escape(record['name'])}</b> {coloured(record['state'])} {escape(record.get('reason') or '')}<br>"
        f"<progress value='{ended}' max='{max(1, len(states))}'></progress> {ended} of {len(states)} tasks ended"
        "<table><thead><tr><th>task</th><th>state</th><th>exit code</th><th>attempts</th><th>reason</th></tr></thead>"
        f"<tbody>{rows}{more}</tbody></table></div>"
    )


def display_live(run: Run) -> None:
    """Show the table in a notebook, and keep it true until the run is over."""
    shown = display_html(run._repr_html_())

    def keep() -> None:
        try:
            for _ in run.view.events(Quit()):
                shown.update(as_html(run._repr_html_()))
            shown.update(as_html(run._repr_html_()))
        except PailotError:
            pass  # the record was deleted, or the server is away for good: the last that was known stays

    if not run.done:
        Thread(target=keep, name=f"table of {run.name}", daemon=True).start()


def _states(record: Mapping[str, Any]) -> list[str]:
    return [task["state"] for node in record["taskRoles"].values() for task in node["tasks"]]
