"""One thing that is wrong with a job, or doubtful in it: its code, how grave it is, and where it stands."""

from __future__ import annotations

import re

from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ERROR, WARNING = "error", "warning"

# Every code, with its severity. Each has a paragraph in docs/reference/problems.md.
CODES: dict[str, str] = {
    "file-unreadable": ERROR,
    "yaml-syntax": ERROR,
    "yaml-encoding": ERROR,
    "yaml-limit": ERROR,
    "yaml-duplicate-key": ERROR,
    "yaml-documents": ERROR,
    "yaml-tag": ERROR,
    "yaml-alias": ERROR,
    "missing-key": ERROR,
    "unknown-key": ERROR,
    "wrong-type": ERROR,
    "bad-value": ERROR,
    "bad-name": ERROR,
    "out-of-range": ERROR,
    "too-few": ERROR,
    "duplicate-prerequisite": ERROR,
    "duplicate-deployment": ERROR,
    "duplicate-role": ERROR,
    "unknown-prerequisite": ERROR,
    "ambiguous-prerequisite": ERROR,
    "require-cycle": ERROR,
    "unknown-plugin": ERROR,
    "plugin-parameters": ERROR,
    "unknown-deployment": ERROR,
    "unknown-role": ERROR,
    "template-unresolved": ERROR,
    "template-malformed": ERROR,
    "hived-conflict": ERROR,
    "bad-override": ERROR,
    "masked-secrets": ERROR,
    "cannot-convert": ERROR,
    "job-limit": ERROR,
    "library-secret": ERROR,
    "yaml-ambiguous": WARNING,
    "data-uri-string": WARNING,
    "deployment-unknown-role": WARNING,
    "completion-cuts-off": WARNING,
    "completion-unreachable": WARNING,
    "retry-never": WARNING,
    "unused-prerequisite": WARNING,
    "unused-parameter": WARNING,
    "unused-secret": WARNING,
    "unused-deployment": WARNING,
    "role-collision": WARNING,
    "shm-above-memory": WARNING,
    "secret-literal": WARNING,
    "secret-short": WARNING,
    "template-string-index": WARNING,
    "ignored-key": WARNING,
    "openpai-refuses": WARNING,
    "plugin-note": WARNING,
    "place-refused": ERROR,
    "shell-syntax": WARNING,
    "shell-syntax-error": ERROR,
    "code-folder": WARNING,
    "auth-file": WARNING,
    "lossy-conversion": WARNING,
    "more-problems": WARNING,
}
MOST_SHOWN = 100
"""At most this many problems of a job are shown; of the others, their number."""


_WORD = r"""<%.*?%>|"[^"]*"?|'[^']*'?|[^\s,\[\]{}:]*"""


class Problem(Value):
    """One thing that is wrong (or doubtful) and where."""

    code: str
    message: str
    file: str = "-"
    line: int = 1
    column: int = 1
    path: str = ""
    source: str = ""
    """The line, without anything secret."""
    hint: str = ""
    """The word that was probably meant."""

    @property
    def end_column(self) -> int:
        """The column after the word or quoted text that the problem points at."""
        found = re.match(_WORD, self.source[self.column - 1 :])
        return self.column + (len(found[0]) if found else 0)

    @property
    def severity(self) -> str:
        """The severity: `error` or `warning`."""
        return CODES[self.code]

    @property
    def is_error(self) -> bool:
        """Whether the job cannot be run because of it."""
        return CODES[self.code] == ERROR

    def to_json(self) -> dict[str, object]:
        """The shape that `validate --json` prints."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "path": self.path,
        }

    def to_marks(self) -> dict[str, object]:
        """The same for an editor: with the end of what is wrong, and the word that was probably meant."""
        return {**self.to_json(), "endLine": self.line, "endColumn": self.end_column, "hint": self.hint or None}

    @property
    def place(self) -> str:
        """The place, as `job.yaml:12:3`; the file alone where there are no lines (0), as in a job that was written in Python."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.place}: {self.severity}[{self.code}]: {self.message}"


class Rest(Problem):
    """Stands for the problems that are not told one by one."""

    count: int = 0


def together(problems: Iterable[Problem], more: int = 0) -> tuple[Problem, ...]:
    """Problems as they are told: each once, errors rather than warnings if there are too many, then the number of the rest."""
    distinct = dict.fromkeys(problems)
    rests = [each for each in distinct if isinstance(each, Rest)]
    if not rests and not more and len(distinct) <= MOST_SHOWN:
        return tuple(distinct)
    told = [each for each in distinct if not isinstance(each, Rest)]
    more += sum(each.count for each in rests)
    if len(told) > MOST_SHOWN:
        more += len(told) - MOST_SHOWN
        chosen = set(sorted(range(len(told)), key=lambda at: not told[at].is_error)[:MOST_SHOWN])
        told = [each for at, each in enumerate(told) if at in chosen]
    file = told[0].file if told else "-"
    return (*told, Rest("more-problems", f"and {more:,} more", file, count=more)) if more else tuple(told)
