"""`pailot library list|show|add|remove`: prerequisites shared between jobs."""

from __future__ import annotations

import json
import os
import sys
from argparse import SUPPRESS

from ...errors import suggestion
from ...library import Library, LibraryError
from ...loading import read_text
from ...protocol.model import Origin
from ...protocol.problems import InvalidJob
from ...protocol.reader import parse_text
from ...protocol.schema import PREREQUISITE
from ..main import OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--library", action="append", default=[], metavar="DIR|URL", help="look here, too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|add|remove")
    listing = actions.add_parser("list", help="what is in the folders of the library")
    show = actions.add_parser("show", help="print a prerequisite")
    show.add_argument("name", metavar="NAME")
    add = actions.add_parser("add", help="keep a prerequisite file in your own library")
    add.add_argument("file", metavar="FILE", help="a file with one prerequisite, '-' for standard input")
    add.add_argument("--replace", action="store_true", help="replace one of the same name")
    remove = actions.add_parser("remove", help="take a prerequisite out of your own library")
    remove.add_argument("name", metavar="NAME")
    for action in (listing, show, add, remove):  # after the action, too; SUPPRESS keeps what was said before it
        action.add_argument("--json", action="store_true", default=SUPPRESS, help="print JSON")


def run(args: Namespace) -> int:
    library = Library.from_settings(args.library)
    done = {"list": _list, "show": _show, "add": _add, "remove": _remove}[args.action](library, args)
    if args.json:
        print(json.dumps(done, indent=2, ensure_ascii=False))
    return OK


def _list(library: Library, args: Namespace) -> object:
    entries = []
    for name, file in library.entries():
        node = parse_text(read_text(file), file).root
        kind = node.get("type", "?") if isinstance(node, dict) else "?"
        about = node.get("description", "") if isinstance(node, dict) else ""
        entries.append({"name": name, "type": kind, "description": about, "file": file})
    if not args.json:
        for entry in entries:
            print(f"{entry['name']:<24} {entry['type']:<12} {entry['description'] or entry['file']}")
        for place in library.places:
            if "://" in place:
                print(f"{place}: a URL cannot be listed; its prerequisites are found by name", file=sys.stderr)
    return entries


def _show(library: Library, args: Namespace) -> object:
    found = library.find(args.name)
    if found is None:
        known = [name for name, _ in library.entries()]
        places = ", ".join(library.places)
        raise LibraryError(f"there is no '{args.name}' in {places}{suggestion(args.name, known)}")
    text, where = found
    if not args.json:
        print(f"# {where}", file=sys.stderr)
        sys.stdout.write(text)
    return {"name": args.name, "file": where, "text": text}


def _add(library: Library, args: Namespace) -> object:
    text = read_text(args.file)
    document = parse_text(text, args.file)
    findings = PREREQUISITE.check(document.root)
    if findings:
        raise InvalidJob(Origin(args.file, document, findings).warnings())
    name = document.root["name"]
    target = library.add(name, text, replace=args.replace)
    if not args.json:
        print(f"added {name} ({target})")
    return {"name": name, "file": target}


def _remove(library: Library, args: Namespace) -> object:
    target = library.remove(os.path.basename(args.name))
    if not args.json:
        print(f"removed {args.name} ({target})")
    return {"name": args.name, "file": target}
