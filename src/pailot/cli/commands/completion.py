"""`pailot completion bash|zsh|fish`: made from the parsers of the commands, so that it never lags behind."""

from __future__ import annotations

import json

from ..main import COMMANDS, OK, parser_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SHELLS = ("bash", "zsh", "fish")


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help='bash: eval "$(pailot completion bash)"')
    parser.add_argument("--json", action="store_true", help="print the options of each command as JSON")


def run(args: Namespace) -> int:
    words = {command: _words(command) for command in COMMANDS}
    if args.json:
        print(json.dumps(words, indent=2))
    else:
        print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](words))
    return OK


def _words(command: str) -> list[str]:
    """Options, choices and sub-commands of a command."""
    parser, _ = parser_for(command)
    found = []
    for action in parser._actions:  # the only way argparse offers to look at a parser
        found += [option for option in action.option_strings if option.startswith("--")]
        if action.choices and not action.option_strings:
            found += [str(choice) for choice in action.choices]
    return found


def _bash(words: dict[str, list[str]]) -> str:
    cases = "\n".join(f"    {command}) words='{' '.join(each)}' ;;" for command, each in words.items())
    return f"""\
_pailot() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{" ".join(words)} --help --version' -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
}}
complete -o filenames -F _pailot pailot"""


def _zsh(words: dict[str, list[str]]) -> str:
    commands = "\n".join(f"    {_quoted(command + ':' + COMMANDS[command])}" for command in words)
    cases = "\n".join(f"    {command}) compadd -- {' '.join(each)} ;;" for command, each in words.items())
    return f"""\
#compdef pailot
_pailot() {{
  local -a commands
  commands=(
{commands}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
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


def _fish(words: dict[str, list[str]]) -> str:
    lines = [f"complete -c pailot -n __fish_use_subcommand -f -a {command} -d {_quoted(COMMANDS[command])}" for command in words]
    for command, each in words.items():
        for word in each:
            kind = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c pailot -n '__fish_seen_subcommand_from {command}' {kind}")
    return "\n".join(lines)
