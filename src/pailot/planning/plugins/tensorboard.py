"""`tensorboard`: in the background of the first task of the first role."""

from __future__ import annotations

from ...protocol.model import START
from .plugin_api import PluginError, Steps, on, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def plugin(
    *,
    port: Any = None,
    logdir: Any = None,
    callbacks: Any = (),
    failurePolicy: str = "fail",  # noqa: N803  # the file's own spelling
    **_: Any,
) -> Steps:
    """Show the log folders in `logdir` on `port`."""
    if not logdir:
        return Steps(tuple(callbacks), notes=("without 'logdir' there is nothing to show, so it is not started",))
    if not isinstance(logdir, dict) or not all(isinstance(path, str) for path in logdir.values()):
        raise PluginError("'logdir' should be a mapping from names to folders", "logdir")
    if port is not None and not str(port).isdecimal():
        raise PluginError("'port' should be a number", "port")
    folders = ",".join(f"{name}:{path}" for name, path in logdir.items())
    chosen = str(port) if port is not None else '"$PAI_CONTAINER_HOST_PORT"'
    command = f"""\
if [ "$PAI_CURRENT_TASK_ROLE_NAME:$PAI_TASK_INDEX" = "${{PAI_TASK_ROLE_LIST%%,*}}:0" ]; then
  if command -v tensorboard >/dev/null; then
    tensorboard --logdir_spec={quote(folders)} --port={chosen} --bind_all >/dev/null 2>&1 &
  else
    echo "tensorboard is not installed here; go on without it" >&2
  fi
fi"""
    return Steps((on(START, [command], failurePolicy), *callbacks))
