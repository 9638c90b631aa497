"""The options of a command, read without argparse where they are as they should be.

Loading argparse takes as long as reading and planning a job. Whatever is unusual (help, a wrong or missing option, a value
that begins with a dash) gives None here, and is then read by argparse, which explains it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import Any

_KNOWN = {"action", "choices", "default", "help", "metavar", "nargs", "type"}


def amount(text: str) -> float:
    """A number of seconds or days, as an option takes it: finite, and not below nothing."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def quick_parse(command: ModuleType, arguments: Sequence[str]) -> Namespace | None:
    """What argparse would answer for the arguments of a command, or None where that is not plain."""
    options = _Options()
    try:
        command.configure(options)
        return options.parse(arguments)
    except _Unusual:
        return None


class _Unusual(Exception):
    """Something for argparse."""


class _Values:
    """The values by name; argparse calls this a namespace."""


class _Options:
    """Takes what a command says to argparse, as far as it is simple."""

    def __init__(self) -> None:
        self.named: dict[str, tuple[str, dict[str, object]]] = {}
        self.positional: list[tuple[str, dict[str, object]]] = []
        self.defaults: dict[str, object] = {}

    def __getattr__(self, name: str) -> Any:
        raise _Unusual(name)

    def add_argument_group(self, *_titles: str) -> _Options:
        return self

    def add_argument(self, *names: str, **details: Any) -> None:
        action = details.get("action", "store")
        if not _KNOWN.issuperset(details) or action not in ("store", "store_true", "append"):
            raise _Unusual(str(details))
        long = next((name for name in names if name.startswith("--")), names[0])
        destination = long.lstrip("-").replace("-", "_")
        if names[0][:1] == "-":
            if "nargs" in details:
                raise _Unusual("nargs")
            for name in names:
                self.named[name] = (destination, details)
        else:
            self.positional.append((destination, details))
        default = details.get("default", False if action == "store_true" else None)
        self.defaults[destination] = _converted(default, details) if isinstance(default, str) else default

    def parse(self, arguments: Sequence[str]) -> Namespace:
        given: dict[str, Any] = {}
        words: list[str] = []
        waiting = iter(arguments)
        for word in waiting:
            if word[:1] != "-" or word == "-":
                words.append(word)
                continue
            name, equals, value = word.partition("=")
            if name not in self.named or (equals and name[:2] != "--"):
                raise _Unusual(word)
            destination, details = self.named[name]
            action = details.get("action", "store")
            if action == "store_true":
                if equals:
                    raise _Unusual(word)
                given[destination] = True
                continue
            if not equals:
                value = next(waiting, "-")
                if value[:1] == "-":
                    raise _Unusual(word)
            converted = _converted(value, details)
            if action == "append":
                before = given.get(destination, self.defaults[destination]) or []
                given[destination] = [*before, converted]
            else:
                given[destination] = converted
        self._give_positional(words, given)
        values = _Values()
        values.__dict__.update(self.defaults, **given)
        return values  # type: ignore[return-value]  # the same but for its class

    def _give_positional(self, words: list[str], given: dict[str, Any]) -> None:
        for destination, details in self.positional:
            amount = details.get("nargs")
            if amount is None or (amount == "?" and words):
                if not words:
                    raise _Unusual("too few")
                given[destination] = _converted(words.pop(0), details)
            elif amount in ("+", "*") and (destination, details) == self.positional[-1]:
                if not words and amount == "+":
                    raise _Unusual("too few")
                given[destination] = [_converted(word, details) for word in words]
                words.clear()
            elif amount != "?":
                raise _Unusual(str(amount))
        if words:
            raise _Unusual("too many")


def _converted(text: str, details: Mapping[str, Any]) -> Any:
    convert: Callable[[str], Any] = details.get("type", str)
    try:
        value = convert(text)
    except ValueError:
        raise _Unusual(text) from None
    if "choices" in details and value not in details["choices"]:
        raise _Unusual(text)
    return value
