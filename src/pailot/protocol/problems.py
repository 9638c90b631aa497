"""What can be wrong with a job file, how it is said, and where it stands.

PailotError
└── InvalidJob        the file cannot be run; `.problems` holds everything found in it
"""

from __future__ import annotations

from ..errors import PailotError, did_you_mean, nearest
from ..problem import Problem, Rest, together
from ..values import Value
from .js_semantics import to_string
from .yaml import Timestamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

    from .reader import Partial
    from .yaml.document import Step


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
