"""The three bash scripts of a task: start callbacks, commands, exit callbacks.

They are three processes, so that nothing in the commands (`exec`, a trap, `kill -9 $$`) can skip the exit
callbacks. What the start callbacks export reaches the others through the file $PAI_EXPORTS_FILE.
"""

from __future__ import annotations

from ..protocol.model import EXIT, FAILS, START, SUCCEEDS
from ..runfolder.plan import Scripts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..runfolder.plan import PlannedCallback

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


def bodies(callbacks: Sequence[PlannedCallback], script: str, start: str) -> list[tuple[PlannedCallback, int, bool]]:
    """The callbacks in a script (`start` or `exit`), and the line of the first command of each; `start` is the start script."""
    starts = [each for each in callbacks if each.event == START]
    exits = [each for each in callbacks if each.event != START]
    first = _OUTPUT_FOLDER if start.startswith(LENIENT + _OUTPUT_FOLDER) else ""
    line, found = 1, []
    for part, each in _start_parts(starts, first) if script == "start" else _exit_parts(exits, bool(starts)):
        if each is not None:
            is_body = not part.endswith("exit $result\n") or part.startswith("cd ")
            found.append((each, line + is_body, is_body))  # commands stand after the way to the working directory
        line += part.count("\n")
    return found


def _start(callbacks: Sequence[PlannedCallback], first: str) -> str:
    return "".join([text for text, _ in _start_parts(callbacks, first)])


def _exit(callbacks: Sequence[PlannedCallback], after_start: bool) -> str:
    return "".join([text for text, _ in _exit_parts(callbacks, after_start)])


def _start_parts(callbacks: Sequence[PlannedCallback], first: str) -> list[tuple[str, PlannedCallback | None]]:
    """The script of the start callbacks, piece by piece; with a callback if the piece holds its commands."""
    if not callbacks:
        return []
    parts: list[tuple[str, PlannedCallback | None]] = [
        (LENIENT + first, None),
        (f"\n# Exports of the prerequisites reach the commands.\ntrap '{_SAVE}' EXIT\n", None),
    ]
    for each in callbacks:
        if each.ignore_failure:
            parts += [
                (
                    f"\n# {each.prerequisite}: a failure here is ignored\n{_SAVE}\n(\ntrap '{_SAVE}' EXIT\nset +o errexit\n",
                    None,
                ),
                (_body(each), each),
                (') || true\n. "$PAI_EXPORTS_FILE"\n', None),
            ]
        else:
            parts += [(f"\n# {each.prerequisite}\n", None), (_body(each), each)]
    parts.append((f"\n{_SAVE}\n", None))
    return parts


def _exit_parts(callbacks: Sequence[PlannedCallback], after_start: bool) -> list[tuple[str, PlannedCallback | None]]:
    """The script of the exit callbacks, likewise."""
    if not callbacks:
        return []
    several = sum(not each.ignore_failure for each in callbacks) > 1
    begin = f"#!/bin/bash\n\n# Every callback gets its turn; the first failure is the result.\nresult=0{' culprit=0' * several}\n"
    parts: list[tuple[str, PlannedCallback | None]] = [(begin, None)]
    if after_start:
        parts.append(('[ ! -e "$PAI_EXPORTS_FILE" ] || . "$PAI_EXPORTS_FILE"\n', None))
    counted: list[PlannedCallback] = []
    for each in exit_order(callbacks):
        outcome = _OUTCOMES[each.event]
        when = f"when the task {outcome}" if outcome else "always"
        policy = "; a failure is ignored" if each.ignore_failure else ""
        only = f'if [ "$PAI_TASK_OUTCOME" = {outcome} ]; then\n' if outcome else ""
        # No `||` around the subshell: it would switch errexit off inside.
        errexit = "set +o errexit" if each.ignore_failure else "set -o errexit"
        parts += [(f"\n# {each.prerequisite}, {when}{policy}\n{only}(\n{errexit}\n", None), (_body(each), each)]
        counts = ""
        if not each.ignore_failure:
            counted.append(each)
            blames = f" culprit={len(counted)}" if several else ""
            counts = f"status=$?; [ $result -ne 0 ] || result=$status{blames}\n"
        parts.append((f")\n{counts}{'fi' + chr(10) if outcome else ''}", None))
    # The line at which this script ends tells which callback failed.
    parts.append(("\n", None))
    parts += [(f"[ $culprit -ne {number} ] || exit $result\n", each) for number, each in enumerate(counted[:-1], 1)]
    parts.append(("exit $result\n", counted[-1] if counted else None))
    return parts


def _body(each: PlannedCallback) -> str:
    return "\n".join(['cd "$PAI_WORK_DIR"', *(command.rstrip("\n") for command in each.commands), ""])
