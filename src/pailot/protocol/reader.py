"""From the text of a job file to a `Job`, or to everything that is wrong with it."""

from __future__ import annotations

from ..problem import CODES, ERROR, MOST_SHOWN
from ..values import Value
from . import checks, lint, overrides, schema, v1
from .job_builder import build_job
from .limits import TooMuch
from .model import Origin
from .problems import Finding, InvalidJob
from .yaml import Document, YamlError, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    from ..problem import Problem
    from .error_recovery import StandIn
    from .model import Job
    from .overrides import Override

    Library: TypeAlias = Callable[[str], tuple[str, str] | None]
    """Finds a prerequisite by name: (text of its file, where it was found)."""


def read(
    text: str,
    *,
    file: str = "-",
    changes: Sequence[Override] = (),
    lenient: bool = False,
    library: Library | None = None,
    is_plugin: Callable[[str], bool] | None = None,
) -> Job:
    """Read a job file (v2, or v1 JSON); raises InvalidJob with all problems.

    >>> read(open("job.yaml").read(), file="job.yaml").name
    'hello'
    """
    document = parse_text(text, file)
    if v1.looks_like_v1(document.root):
        before = v1.V1Document(document.text, document.root, document.ambiguous)
        changes = [each.replace(path=before.path(each.path)) for each in changes]
        legacy = v1.V1Document(document.text, document.root, document.ambiguous)
        overridden, findings = overrides.apply(legacy, changes)
        return _finish(*v1.read(legacy), legacy, file, overridden, findings, lenient, library, is_plugin)
    overridden, findings = overrides.apply(document, changes)
    root, structure = document.root, schema.JOB.check(document.root)
    if overridden and structure:
        structure = overrides.with_what_was_meant(structure, root, overridden)
    return _finish(root, structure, document, file, overridden, findings, lenient, library, is_plugin)


def parse_text(text: str, file: str) -> Document:
    """The document in a text; a YAML error becomes an InvalidJob with its place."""
    try:
        return parse(text)
    except YamlError as error:
        plain = Document(text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff"), None, ())
        raise InvalidJob([Origin(file, plain).locate(Finding(error.code, error.message, offset=error.offset))]) from None


def _finish(
    root: object,
    structure: Sequence[Finding],
    document: Document,
    file: str,
    overridden: dict[str, str],
    findings: list[Finding],
    lenient: bool,
    library: Library | None,
    is_plugin: Callable[[str], bool] | None,
) -> Job:
    masked = checks.check_masked(root)
    if masked:
        structure = [finding for finding in structure if finding.path != ("secrets",)] + masked
    findings += structure
    findings += lint.ambiguous_scalars(document)
    job, used = None, None
    legacy = isinstance(document, v1.V1Document)
    try:
        if not any(CODES[finding.code] == ERROR for finding in structure):
            job = build_job(root, findings, lenient=lenient, library=library, legacy=legacy)
            findings += checks.check(job, root, is_plugin)
            findings += lint.lint(job, root, document.text)
        elif not legacy and len(structure) <= MOST_SHOWN:
            from .error_recovery import stand_in, still_true

            used = stand_in(root, structure)
            if used is not None:
                found: list[Finding] = []
                job = build_job(used.root, found, lenient=lenient, library=library, legacy=False)
                found += checks.check(job, used.root, is_plugin)
                findings += still_true(found, used)
    except TooMuch as error:
        findings.append(error.finding)
        job = None
    origin = Origin(file, document, findings, overridden)
    if job is None or any(CODES[finding.code] == ERROR for finding in findings):
        raise InvalidJob(
            origin.warnings(), Partial(job.replace(origin=Origin(file, document, (), overridden)), used) if job else None
        )
    return job.replace(origin=origin)


class Partial(Value):
    """What could be read of a job with errors, for those who look for more of them."""

    job: Job
    used: StandIn | None

    def still_true(self, findings: Iterable[Finding]) -> tuple[Problem, ...]:
        """Those of the findings that are not about what was replaced, with their places."""
        from .error_recovery import still_true

        return self.job.problems(findings if self.used is None else still_true(findings, self.used))
