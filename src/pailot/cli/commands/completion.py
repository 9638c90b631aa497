"""`pailot completion bash|zsh|fish`: made from the parsers of the commands, so that it never lags behind."""

from __future__ import annotations

import json

from ...engines.registry import names as engine_names
from ...values import Value
from ..completion_words import asks, words_after
from ..main import COMMANDS, FAILED, OK, parser_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Action, ArgumentParser, Namespace
    from collections.abc import Iterator, Mapping

SHELLS = ("bash", "zsh", "fish")
_ASK = "command pailot completion {name} --after {words} 2>/dev/null"
"""How a script asks for names of runs, roles and the like. It fails where these are not what may follow."""


class Known(Value):
    """What can be said of a command line without looking at runs."""

    words: Mapping[str, list[str]]
    """Options, choices and sub-commands by command."""
    values: Mapping[tuple[str, ...], list[str]]
    """The values of options that take one of a few: by command, then the names of the option."""
    asking: list[str]
    """Commands of which runs can tell more."""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help='bash: eval "$(pailot completion bash)"')
    parser.add_argument(
        "--after",
        metavar="WORDS",
        help="print the runs, roles or numbers of tasks that may follow these words",
    )
    parser.add_argument("--json", action="store_true", help="print the options of each command as JSON")


def run(args: Namespace) -> int:
    if args.after is not None:
        found = words_after(args.after.split())
        if args.json:
            print(json.dumps(found))
        elif found:
            print("\n".join(found))
        return FAILED if found is None else OK
    words = {command: _words(command) for command in COMMANDS}
    if args.json:
        print(json.dumps(words, indent=2))
        return OK
    values = {key: each for command in COMMANDS for key, each in _values(command)}
    known = Known(words, values, [command for command in COMMANDS if asks(command)])
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](known))
    return OK


def _actions(command: str) -> list[Action]:
    return parser_for(command)[0]._actions  # the only way argparse offers to look at a parser


def _words(command: str) -> list[str]:
    """Options, choices and sub-commands of a command."""
    found = []
    for action in _actions(command):
        found += [option for option in action.option_strings if option.startswith("--")]
        if action.choices and not action.option_strings:
            found += [str(choice) for choice in action.choices]
    return found


def _values(command: str) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    for action in _actions(command):
        if not action.option_strings:
            continue
        if action.choices:
            yield (command, *action.option_strings), [str(choice) for choice in action.choices]
        elif action.dest == "engine":
            yield (command, *action.option_strings), engine_names()


def _bash(known: Known) -> str:
    cases = "\n".join(f"    {command}) words='{' '.join(each)}' ;;" for command, each in known.words.items())
    values = "\n".join(
        f"    {_patterns(key)}) COMPREPLY=($(compgen -W '{' '.join(each)}' -- \"$current\")); return ;;"
        for key, each in known.values.items()
    )
    asked = _ASK.format(name="bash", words='"${COMP_WORDS[*]:1:COMP_CWORD-1}"')
    return f"""\
_pailot() {{
  local IFS=$' \\t\\n' current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words= asked
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{" ".join(known.words)} --help --version' -- "$current"))
    return
  fi
  # bash makes three words of --engine=local.
  if [ "$current" = = ]; then current=; fi
  if [ "$before" = = ]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  case "${{COMP_WORDS[1]}} $before" in
{values}
  esac
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  case ${{COMP_WORDS[1]}} in
    {"|".join(known.asking)})
      if [ "${{current#-}}" = "$current" ] && asked=$({asked}); then
        compopt +o filenames 2>/dev/null
        COMPREPLY=($(compgen -W "$asked" -- "$current"))
        return
      fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
}}
complete -o filenames -F _pailot pailot"""


def _patterns(key: tuple[str, ...]) -> str:
    """`'run -e'|'run --engine'`"""
    command, *options = key
    return "|".join(f"'{command} {option}'" for option in options)


def _zsh(known: Known) -> str:
    commands = "\n".join(f"    {_quoted(command + ':' + COMMANDS[command])}" for command in known.words)
    cases = "\n".join(f"    {command}) compadd -- {' '.join(each)} ;;" for command, each in known.words.items())
    values = "\n".join(f"    {_patterns(key)}) compadd -- {' '.join(each)}; return ;;" for key, each in known.values.items())
    asked = _ASK.format(name="zsh", words='"${words[2,CURRENT-1]}"')
    return f"""\
#compdef pailot
_pailot() {{
  local -a commands
  local asked
  commands=(
{commands}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case "$words[2] $words[CURRENT-1]" in
{values}
  esac
  case $words[2] in
    {"|".join(known.asking)})
      if [[ $words[CURRENT] != -* ]] && asked=$({asked}); then
        compadd -- ${{(f)asked}}
        return
      fi ;;
  esac
  case $words[2] in
{cases}
  esac
  _files
}}
# In a folder of $fpath this file is the function itself when it is first called; anywhere else it only announces it.
if [ "$funcstack[1]" = _pailot ]; then
  _pailot "$@"
else
  compdef _pailot pailot
fi"""


def _quoted(text: str) -> str:
    """A word for the shell, whatever is in it."""
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(known: Known) -> str:
    asked = _ASK.format(name="fish", words='"$words[2..-1]"')
    lines = ["function __pailot_asked", "  set -l words (commandline -opc)", f"  {asked}", "end"]
    first = "complete -c pailot -n __fish_use_subcommand -f"
    lines += [f"{first} -a {command} -d {_quoted(COMMANDS[command])}" for command in known.words]
    of_options = {(key[0], option): (key[1:], each) for key, each in known.values.items() for option in key[1:]}
    for command, each in known.words.items():
        seen = f"complete -c pailot -n '__fish_seen_subcommand_from {command}'"
        for word in each:
            options, values = of_options.get((command, word), ((), []))
            short = "".join(f" -s {option[1:]}" for option in options if len(option) == 2)
            taken = f"{short} -x -a {_quoted(' '.join(values))}" if values else ""
            lines.append(f"{seen} -l {word[2:]}{taken}" if word.startswith("--") else f"{seen} -a {word}")
        if command in known.asking:
            lines.append(f"{seen} -f -a '(__pailot_asked)'")
    return "\n".join(lines)
