"""`git`: clone a repository before the commands run, with its history, trying again when the network fails."""

from __future__ import annotations

from ...protocol.model import START
from .plugin_api import Steps, on, quote, text, texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_DIR = "$PAI_WORK_DIR/code"


def plugin(
    *,
    repo_uri: Any = None,
    options: Any = None,
    clone_dir: Any = None,
    callbacks: Any = (),
    failurePolicy: str = "fail",  # noqa: N803  # the file's own spelling
    **_: Any,
) -> Steps:
    """Clone `repo_uri` into `clone_dir`."""
    repository = quote(text(repo_uri, "repo_uri"))
    target = text(clone_dir, "clone_dir", needed=False) or DEFAULT_DIR
    notes = (
        () if clone_dir else (f"the repository goes to {DEFAULT_DIR}; OpenPAI used /usr/local/pai/code. Set clone_dir to choose",)
    )
    words = " ".join(["git clone", *texts(options, "options"), repository, quote(target)])
    clone = f"for pause in 1 5 30 end; do\n  {words} && break\n  [ $pause != end ] || exit 1\n  sleep $pause\ndone"
    return Steps((on(START, [clone], failurePolicy), *callbacks), notes=notes)
