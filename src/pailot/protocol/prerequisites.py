"""Which prerequisites a role uses, in which order, and what their templates can name."""

from __future__ import annotations

from ..printable import cut
from . import limits
from .problems import Finding, Near
from .references import split, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from .model import Prerequisite, TaskRole

    Path = tuple[str | int, ...]

SINGLE_TYPES = ("script", "data", "output")
_SHOWN_OF_A_CIRCLE = 8


class Shelf:
    """All prerequisites at hand: the job's own, and those of the library by name when asked for."""

    def __init__(self, own: Sequence[Prerequisite], library: Callable[[str], Prerequisite | None]) -> None:
        self.by_type: dict[tuple[str, str], Prerequisite] = {(each.type, each.name): each for each in own}
        self.by_name: dict[str, list[Prerequisite]] = {}
        for each in own:
            self.by_name.setdefault(each.name, []).append(each)
        self._library = library
        self._names: dict[str, list[str]] = {}
        self._borrowed: dict[str, Prerequisite | None] = {}
        self.uses = limits.uses()

    def of_type(self, kind: str, name: str) -> Prerequisite | None:
        """The prerequisite of one type with this name."""
        found = self.by_type.get((kind, name))
        if found is None and name not in self.by_name:
            found = next((each for each in self.named(name) if each.type == kind), None)
        return found

    def named(self, name: str) -> list[Prerequisite]:
        """All prerequisites with this name."""
        found = self.by_name.get(name)
        if found is None:
            found = self._own_version(name)
        if not found:
            borrowed = self._borrow(name)
            found = [borrowed] if borrowed is not None else []
        return found

    def _own_version(self, reference: str) -> list[Prerequisite]:
        """The job's own prerequisites that a reference with a version means."""
        name, version = split(reference)
        return [each for each in self.by_name.get(name, ()) if version_of(each.fields) == version] if version else []

    def borrowed(self) -> list[Prerequisite]:
        """What was taken from the library."""
        return [each for each in self._borrowed.values() if each is not None]

    def missing(self, name: str, place: Path, kind: str = "") -> Finding:
        """In words: there is no such prerequisite."""
        near = Near(name, self._known(kind))
        if kind and name in self.by_name:
            message = f"'{cut(name)}' is a {self.by_name[name][0].type} prerequisite; a {kind} is needed here"
        else:
            what = f"{kind} prerequisite" if kind else "prerequisite"
            message = f"there is no {what} '{cut(name)}' in the job or the library"
        return Finding("unknown-prerequisite", message, place, near=near)

    def _known(self, kind: str) -> list[str]:
        """The names of one kind, or all."""
        if kind not in self._names:
            self._names[kind] = [name for type_, name in self.by_type if not kind or type_ == kind]
        return self._names[kind]

    def _borrow(self, name: str) -> Prerequisite | None:
        if name not in self._borrowed:
            self._borrowed[name] = self._library(name)
        return self._borrowed[name]


def used_by(role: TaskRole, shelf: Shelf, at: Path, findings: list[Finding]) -> tuple[Prerequisite, ...]:
    """What the role uses in start order: image, listed ones, then single references; required ones first."""
    order = _Order(shelf, findings)
    image = shelf.of_type("dockerimage", role.docker_image)
    if image is None:
        findings.append(shelf.missing(role.docker_image, (*at, "dockerImage"), "dockerimage"))
    else:
        order.add(image, (*at, "dockerImage"))
    for position, name in enumerate(role.listed):
        place = (*at, "prerequisites", position)
        listed = order.one_named(name, place)
        if listed is not None:
            order.add(listed, place)
    for kind, single_name in (("script", role.script), ("data", role.data), ("output", role.output)):
        if single_name is None:
            continue
        single = shelf.of_type(kind, single_name)
        if single is None:
            findings.append(shelf.missing(single_name, (*at, kind), kind))
        else:
            order.add(single, (*at, kind))
    return tuple(order.found.values())


class _Order:
    """Prerequisites in start order, each once, after those it requires."""

    __slots__ = ("findings", "found", "shelf")

    def __init__(self, shelf: Shelf, findings: list[Finding]) -> None:
        self.shelf, self.findings = shelf, findings
        self.found: dict[tuple[str, str], Prerequisite] = {}

    def add(self, first: Prerequisite, place: Path) -> None:
        """What one requires, then itself; with a stack of its own, since a chain may be of any length."""
        allowance = self.shelf.uses
        allowance.take(1)
        known = self.found.get((first.type, first.name))
        if known is not None:
            self._same_version(known, first, place)
            return
        chain = [(first, iter(enumerate(first.require)))]
        depths = {(first.type, first.name): 0}
        while chain:
            each, names = chain[-1]
            for position, name in names:
                allowance.take(1)
                required = self.one_named(name, (*each.path, "require", position) if each.path else place)
                identity = (required.type, required.name) if required else None
                if required is None or identity is None:
                    continue
                if identity in self.found:
                    self._same_version(self.found[identity], required, place)
                    continue
                if identity in depths:
                    begin = depths[identity]
                    self._circle([p.name for p, _ in chain[begin : begin + _SHOWN_OF_A_CIRCLE]], each.name, place)
                    continue
                depths[identity] = len(chain)
                chain.append((required, iter(enumerate(required.require))))
                break
            else:
                identity = (each.type, each.name)
                self.found[identity] = each
                del depths[identity]
                chain.pop()

    def _same_version(self, known: Prerequisite, wanted: Prerequisite, place: Path) -> None:
        one, other = version_of(known.fields), version_of(wanted.fields)
        if one != other:
            message = f"'{cut(known.name)}' is used in the versions {cut(one)} and {cut(other)}; a role can have one of them"
            self.findings.append(Finding("ambiguous-prerequisite", message, place))

    def _circle(self, names: list[str], last: str, place: Path) -> None:
        rest = [] if names[-1] == last else ["…", last]
        shown = " -> ".join([cut(name) for name in (*names, *rest, names[0])])
        self.findings.append(Finding("require-cycle", f"these require each other: {shown}; break the circle", place))

    def one_named(self, name: str, place: Path) -> Prerequisite | None:
        found = self.shelf.named(name)
        if len(found) == 1:
            return found[0]
        if not found:
            self.findings.append(self.shelf.missing(name, place))
        else:
            kinds = " and ".join(f"a {each.type}" for each in found)
            self.findings.append(Finding("ambiguous-prerequisite", f"'{cut(name)}' is {kinds}; give them different names", place))
        return None


def unknown_requirements(own: Iterable[Prerequisite], shelf: Shelf) -> Iterable[Finding]:
    """What prerequisites require that is not there, also those that no role uses."""
    for each in own:
        for position, name in enumerate(each.require):
            if not shelf.named(name):
                yield shelf.missing(name, (*each.path, "require", position))


def scope_of(role: TaskRole, needed: Sequence[Prerequisite], shelf: Shelf, parameters: Mapping[str, Any]) -> dict[str, object]:
    """What the templates of a role can name."""
    scope: dict[str, object] = {"$parameters": parameters}
    listed = [each for name in role.listed for each in shelf.named(name)]
    by_name = {each.name: each.fields for each in needed if each.type != "dockerimage"}
    if by_name:
        scope.update({f"${name}": fields for name, fields in by_name.items() if f"${name}" not in scope})
        scope["$prerequisites"] = by_name
    for kind in SINGLE_TYPES:
        name = getattr(role, kind)
        chosen = shelf.of_type(kind, name) if name is not None else _only(each for each in listed if each.type == kind)
        if chosen is not None:
            scope[f"${kind}"] = chosen.fields
        else:
            scope.pop(f"${kind}", None)
    return scope


def own_parameters(each: Prerequisite, by_name: Mapping[str, Prerequisite], allowance: limits.Allowance) -> dict[str, object]:
    """What `this.parameters` is in a prerequisite: its own keys, then those of what it requires."""
    merged: dict[str, object] = {}
    waiting, seen = [each], {each.name}
    for current in waiting:  # it grows meanwhile
        # Credentials are for the registry alone.
        merged.update({key: value for key, value in current.fields.items() if key not in merged and key != "auth"})
        for name in current.require:
            if name in by_name and name not in seen:
                seen.add(name)
                waiting.append(by_name[name])
    allowance.take(sum(len(current.fields) + len(current.require) for current in waiting))
    return merged


def _only(candidates: Iterable[Prerequisite]) -> Prerequisite | None:
    found = list(candidates)
    return found[0] if len(found) == 1 else None
