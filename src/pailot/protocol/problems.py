"""What can be wrong with a job file, how it is said, and where it stands.

PailotError
└── InvalidJob        the file cannot be run; `.problems` holds everything found in it
"""

from __future__ import annotations

from ..errors import PailotError, did_you_mean, nearest
from ..values import Value
from .lazy_regex import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

    from .reader import Partial
    from .yaml.document import Step

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


_WORD = pattern(r"""<%.*?%>|"[^"]*"?|'[^']*'?|[^\s,\[\]{}:]*""")


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
        found = _WORD.match(self.source, self.column - 1)
        return self.column + (len(found[0]) if found else 0)

    @property
    def severity(self) -> str:
        return CODES[self.code]

    @property
    def is_error(self) -> bool:
        return CODES[self.code] == ERROR

    def to_json(self) -> dict[str, Any]:
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

    def to_marks(self) -> dict[str, Any]:
        """The same for an editor: with the end of what is wrong, and the word that was probably meant."""
        return {**self.to_json(), "endLine": self.line, "endColumn": self.end_column, "hint": self.hint or None}

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.severity}[{self.code}]: {self.message}"


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


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Problems that several have found, as they are told: in the order of the file, errors before warnings at the same place."""
    return together(
        sorted(problems, key=lambda each: (isinstance(each, Rest), each.file, each.line, each.column, not each.is_error))
    )


class InvalidJob(PailotError):
    """The job file has errors; `problems` lists them, and the warnings: the first `MOST_SHOWN`, and how many more there are."""

    def __init__(self, problems: Iterable[Problem], partial: Partial | None = None) -> None:
        self.problems = together(problems)
        self.partial = partial
        """What could be read all the same, for a caller that looks for more that is wrong."""
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


class Near(Value):
    """What a message ends with: the known word that is nearest. It is looked for when the problem is told, since it costs."""

    word: str
    known: Collection[str]
    tail: str = ""
    otherwise: str = ""
    """Instead of the hint, where no known word is near."""


class Finding(Value):
    """A problem before its place in a text is known: a path into the document, or an offset."""

    code: str
    message: str
    path: tuple[Step, ...] = ()
    at_key: bool = False
    offset: int | None = None
    fragment: str = ""
    near: Near | None = None

    def hint(self) -> str:
        """The known word that is nearest to the one in the file, or nothing."""
        return nearest(self.near.word, self.near.known) if self.near else ""

    def text(self, hint: str | None = None) -> str:
        """The whole message; `hint` is what `hint()` returned, where that is known."""
        near = self.near
        if near is None:
            return self.message
        return self.message + (did_you_mean(self.hint() if hint is None else hint) or near.otherwise) + near.tail

    def same(self) -> tuple[object, ...]:
        """What two findings have in common that are one."""
        return self.code, self.message, self.path, self.offset, self.fragment

    def below(self, *steps: Step) -> Finding:
        """The same finding seen from further up in the document."""
        made = Finding.__new__(Finding)  # for each level of each finding: quicker than `replace`
        made.__dict__.update(self.__dict__, path=steps + self.path)
        return made


def path_text(path: Sequence[Step]) -> str:
    """('taskRoles', 'worker', 'commands', 0) as 'taskRoles.worker.commands[0]'."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def describe(value: Any) -> str:
    """How a value of the file is named in a message."""
    from .js_semantics import to_string
    from .yaml import Timestamp

    if value is None:
        return "empty"
    if isinstance(value, bool):
        return f"the boolean {to_string(value)}"
    if isinstance(value, int | float):
        return f"the number {to_string(value)}"
    if isinstance(value, str):
        shown = value if len(value) <= 40 else value[:37] + "..."
        return f"the text {shown!r}"
    if isinstance(value, Timestamp):
        return f"the date {value.source} (quote it to make it text)"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a mapping" + (" (a ': ' in a text makes it one; put the text in quotes)" if len(value) == 1 else "")
    return "binary data"
