"""argparse, with a word for an option that is misspelt."""

from __future__ import annotations

from argparse import ArgumentParser, _SubParsersAction

from ..errors import suggestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn


class OptionParser(ArgumentParser):
    """Names the option that does not exist, where argparse lists it among the words that are left over."""

    _given: tuple[str, ...] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = tuple(args or ())
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        known = set(_options(self))
        for word in self._given:
            if word == "--":
                break
            name = word.partition("=")[0]
            if name.startswith("--") and " " not in word and name not in known:
                message = f"there is no option '{name}'{suggestion(name, sorted(known))}"
                break
        super().error(message)


def _options(parser: ArgumentParser) -> Iterator[str]:
    """The options of a command and of its subcommands."""
    yield from parser._option_string_actions
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for each in action.choices.values():
                yield from _options(each)
