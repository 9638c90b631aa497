"""The three bash scripts of a task: start callbacks, commands, exit callbacks.

They are three processes, so that nothing in the commands (`exec`, a trap, `kill -9 $$`) can skip the exit
callbacks. What the start callbacks export reaches the others through the file $PAI_EXPORTS_FILE.
"""

from __future__ import annotations

from ..protocol.model import EXIT, FAILS, START, SUCCEEDS
from .plan import Scripts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .plan import PlannedCallback

STRICT = "#!/bin/bash\nset -o errexit -o nounset -o pipefail\n"
LENIENT = "#!/bin/bash\nset -o errexit\n"
"""For callbacks, as OpenPAI runs what its plugins bring: an unset variable or a pipe's first command fails nothing."""
_OUTPUT_FOLDER = '\nmkdir -p -- "$PAI_OUTPUT_DIR" || true  # where output goes; who does not use it can do without\n'
_SAVE = 'export -p >"$PAI_EXPORTS_FILE"'
_OUTCOMES = {EXIT: "", SUCCEEDS: "succeeded", FAILS: "failed"}


def build_scripts(entrypoint: str, callbacks: Sequence[PlannedCallback], output_dir: str = "") -> Scripts:
    """The scripts of a role: its rendered commands and the callbacks in start order. The first one makes the output folder."""
    starts = [each for each in callbacks if each.event == START]
    exits = [each for each in callbacks if each.event != START]
    first = _OUTPUT_FOLDER if output_dir.startswith("/") else ""
    return Scripts(
        main=_main(entrypoint, bool(starts), "" if starts else first),
        start=_start(starts, first),
        exit=_exit(exits, bool(starts)),
    )


def exit_order(callbacks: Iterable[PlannedCallback]) -> list[PlannedCallback]:
    """Prerequisites in reverse, the callbacks of each in their own order."""
    groups: list[list[PlannedCallback]] = []
    for each in callbacks:
        if groups and groups[-1][0].prerequisite == each.prerequisite:
            groups[-1].append(each)
        else:
            groups.append([each])
    return [each for group in reversed(groups) for each in group]


def _main(entrypoint: str, after_start: bool, first: str) -> str:
    imports = '\n. "$PAI_EXPORTS_FILE"  # what the prerequisites exported\ncd "$PAI_WORK_DIR"\n' if after_start else ""
    return f"{STRICT}{imports}{first}\n{entrypoint}\n"


def _start(callbacks: Sequence[PlannedCallback], first: str) -> str:
    if not callbacks:
        return ""
    parts = [LENIENT, first, f"\n# Exports of the prerequisites reach the commands.\ntrap '{_SAVE}' EXIT\n"]
    for each in callbacks:
        body = _body(each)
        if each.ignore_failure:
            parts.append(
                f"\n# {each.prerequisite}: a failure here is ignored\n{_SAVE}\n"
                f"(\ntrap '{_SAVE}' EXIT\nset +o errexit\n{body}) || true\n"
                '. "$PAI_EXPORTS_FILE"\n'
            )
        else:
            parts.append(f"\n# {each.prerequisite}\n{body}")
    parts.append(f"\n{_SAVE}\n")
    return "".join(parts)


def _exit(callbacks: Sequence[PlannedCallback], after_start: bool) -> str:
    if not callbacks:
        return ""
    parts = ["#!/bin/bash\n\n# Every callback gets its turn; the first failure is the result.\nresult=0\n"]
    if after_start:
        parts.append('[ ! -e "$PAI_EXPORTS_FILE" ] || . "$PAI_EXPORTS_FILE"\n')
    for each in exit_order(callbacks):
        outcome = _OUTCOMES[each.event]
        when = f"when the task {outcome}" if outcome else "always"
        policy = "; a failure is ignored" if each.ignore_failure else ""
        parts.append(f"\n# {each.prerequisite}, {when}{policy}\n")
        if outcome:
            parts.append(f'if [ "$PAI_TASK_OUTCOME" = {outcome} ]; then\n')
        # No `||` around the subshell: it would switch errexit off inside.
        errexit = "set +o errexit" if each.ignore_failure else "set -o errexit"
        parts.append(f"(\n{errexit}\n{_body(each)})\n")
        if not each.ignore_failure:
            parts.append("status=$?; [ $result -ne 0 ] || result=$status\n")
        if outcome:
            parts.append("fi\n")
    parts.append("\nexit $result\n")
    return "".join(parts)


def _body(each: PlannedCallback) -> str:
    return "\n".join(['cd "$PAI_WORK_DIR"', *(command.rstrip("\n") for command in each.commands), ""])
