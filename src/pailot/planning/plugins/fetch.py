"""`fetch`: any URI, brought by Pailot before the task starts and linked into its working directory.

The task itself needs no downloader: an image may have nothing but /bin/sh.
"""

from __future__ import annotations

import re

from ...protocol.model import START
from ...runfolder.plan import Provision
from .plugin_api import PluginError, Steps, on, quote, text, texts, variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def plugin(
    *,
    name: str,
    uri: Any = None,
    sha256: Any = None,
    target: Any = None,
    callbacks: Any = (),
    failurePolicy: str = "fail",  # noqa: N803  # the file's own spelling
    **_: Any,
) -> Steps:
    """Fetch `uri` (one or several), check it, and link it to `target`."""
    sources = texts(uri, "uri")
    if not sources:
        raise PluginError("'uri' is missing")
    sums = texts(sha256, "sha256")
    if sums and (len(sums) != len(sources) or not all(re.fullmatch("[0-9a-f]{64}", each) for each in sums)):
        raise PluginError("'sha256' should be 64 hexadecimal digits for each uri", "sha256")
    wanted = text(target, "target", needed=False)
    provisions, commands = [], []
    for position, source in enumerate(sources):
        where = variable("PAI_FETCH", name) + (f"_{position}" if len(sources) > 1 else "")
        provisions.append(Provision("fetch", source, where, sums[position] if sums else ""))
        file_name = source.rstrip("/").rpartition("/")[2].partition("?")[0] or name
        link = f"{wanted}/{file_name}" if wanted and len(sources) > 1 else wanted or file_name
        if "/" in link:
            commands.append(f"mkdir -p {quote(link.rpartition('/')[0] or '/')}")
        commands.append(f'ln -sfn "${where}" {quote(link)}')
    return Steps((on(START, commands, failurePolicy), *callbacks), tuple(provisions))
