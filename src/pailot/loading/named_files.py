"""Which files of the submitter's folder the commands of a job name: a hint that its code was forgotten. Pure."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..planning import Plan

_WORD = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./-]*")
_SCRIPT = re.compile(r"(?:\bpython[0-9.]*|\bbash|\bsh)\s+(?:-[a-z]+\s+)*([A-Za-z0-9_.][A-Za-z0-9_./-]*\.(?:py|sh))\b")
_BRINGS_FILES = re.compile(r"\b(?:cd|pushd|git|wget|curl|cp|tar|unzip|aws|gsutil|hdfs|cat\s*>|tee)\b|>")
"""Commands after which a file may be there that was not sent."""
MAX_WORDS = 5_000


def forgotten_files(plan: Plan, is_file: Callable[[str], bool]) -> tuple[str, bool]:
    """Return the first file that the commands seem to expect in the working directory, and whether the submitter has it.

    `is_file` says whether a relative path is a file in the submitter's folder. The name is empty if the job brings code of its
    own, or if nothing points to a missing file.
    """
    options = plan.options
    if options.code or (options.channels is not None and options.channels.code):
        return "", False
    scripts = [role.scripts.main for role in plan.roles.values()]
    for word in _words(scripts):
        if is_file(word):
            return word, True
    for role in plan.roles.values():
        found = _SCRIPT.search(role.scripts.main)
        if found and not role.scripts.start and not role.provisions and not _BRINGS_FILES.search(role.scripts.main):
            return found[1], False
    return "", False


def _words(scripts: Iterable[str]) -> Iterable[str]:
    """Yield the words that could be relative paths to a file."""
    seen: dict[str, None] = {}
    for script in scripts:
        for word in _WORD.findall(script):
            if ("." in word or "/" in word) and not word.startswith("..") and len(seen) < MAX_WORDS:
                seen[word] = None
    return seen
