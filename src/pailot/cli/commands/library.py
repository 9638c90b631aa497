"""`pailot library list|search|show|add|remove|index`: prerequisites, data sets and job templates that jobs share."""

from __future__ import annotations

import sys
import time
from argparse import SUPPRESS

from ...client.errors import NotFound
from ...errors import suggestion
from ...library import Library, LibraryError
from ...library.content import HERE, NOT_FETCHED, content_of
from ...library.entries import TYPES, Entry, describe, read_entry
from ...library.places import is_url, write_entry, write_index
from ...loading import read_text
from ...planning.plugins import exists as is_plugin
from ...printable import printable
from ...progress import size as in_words
from ...protocol.problems import InvalidJob
from ...protocol.reader import parse_text
from ...protocol.references import LATEST, split
from ...settings import Settings
from ..main import OK
from ..server_option import add_server_option, client_of, print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from typing import Any

    from ...client.api import Client


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--library", action="append", default=[], metavar="DIR|URL", help="look here, too")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|search|show|add|remove|index")
    listing = actions.add_parser("list", help="what the library holds: your folders, URLs with an index, the server")
    search = actions.add_parser("search", help="what of it has all these words")
    search.add_argument("words", nargs="+", metavar="WORD", help="stands in the name, description, owner or addresses")
    for each in (listing, search):
        each.add_argument("--type", choices=TYPES, default="", metavar="TYPE", help=f"only this type: {', '.join(TYPES)}")
    show = actions.add_parser("show", help="print an entry; of a data set also where it lies")
    show.add_argument("name", metavar="NAME[@VERSION]")
    add = actions.add_parser("add", help="keep a file in your library, or in that of the server")
    add.add_argument("file", metavar="FILE", help="a file with one prerequisite or job template, '-' for standard input")
    add.add_argument("--replace", action="store_true", help="replace one of the same name and version")
    add.add_argument("--owner", metavar="USER", default="", help="on a server: the user who may change it")
    remove = actions.add_parser("remove", help="take an entry out of your library, or out of that of the server")
    remove.add_argument("name", metavar="NAME[@VERSION]")
    for each in (add, remove):
        each.add_argument("--folder", metavar="DIR", default="", help="in this folder, not in your library or the server's")
    index = actions.add_parser("index", help="write the index of a folder that a web server shows")
    index.add_argument("folder", metavar="DIR")
    for action in (listing, search, show, add, remove, index):  # after the action, too; SUPPRESS keeps what was said before it
        action.add_argument("--server", metavar="URL", default=SUPPRESS, help="ask this server; 'none': this machine only")
        action.add_argument("--json", action="store_true", default=SUPPRESS, help="print JSON")


def run(args: Namespace) -> int:
    library = Library.from_settings(args.library)
    actions = {"list": _list, "search": _list, "show": _show, "add": _add, "remove": _remove, "index": _index}
    done = actions[args.action](library, args)
    if args.json:
        print_json(done)
    return OK


def _list(library: Library, args: Namespace) -> object:
    words = " ".join(args.words) if args.action == "search" else ""
    found: list[dict[str, Any]] = [
        {**entry.to_json(), "file": place} for entry, place in _here(library, args) if entry.matches(words, args.type)
    ]
    client = client_of(args)
    if client is not None:
        found += [{**each, "server": client.server} for each in _of_server(client, words, args.type)]
    if not args.json:
        for each in found:
            print(_line(each))
    return found


def _here(library: Library, args: Namespace) -> Iterator[tuple[Entry, str]]:
    """What the folders hold, and the URLs say that they hold."""
    for file in library.files():
        try:
            entry = describe(parse_text(read_text(file.file), file.file).root, file.name)
        except InvalidJob as error:
            print(f"pailot: {error.problems[0]}", file=sys.stderr)
            continue
        yield entry.replace(version=file.version or entry.version), file.file
    for place in library.places:
        if not is_url(place):
            continue
        entries = library.index(place)
        if entries is None:
            print(f"{place}: it has no index.yaml and cannot be listed; its entries are found by name", file=sys.stderr)
        for entry in entries or ():
            yield entry, place


def _of_server(client: Client, words: str, kind: str) -> Iterator[dict[str, Any]]:
    try:
        yield from client.library(words, kind)
    except NotFound:
        print(f"pailot: {client.server} has no library", file=sys.stderr)


def _line(entry: dict[str, Any]) -> str:
    reference = entry["name"] if entry["version"] == LATEST else f"{entry['name']}@{entry['version']}"
    more = [in_words(entry["size"])] if entry["size"] is not None else []
    more += [entry["owner"]] if entry["owner"] else []
    about = entry["description"] or entry.get("file") or entry.get("server") or ""
    text = f"{reference:<24} {entry['type']:<12} {about}" + (f" ({', '.join(more)})" if more else "")
    return printable(text).rstrip()


def _show(library: Library, args: Namespace) -> object:
    name, version = split(args.name)
    client = client_of(args)
    found = library.find(args.name) if client is None or args.library else None
    if found is None and client is not None:
        try:
            told = client.library_entry(name, version)
        except NotFound:
            found = library.find(args.name)
        else:
            return _shown(args, told, f"{client.server}: {told['name']}@{told['version']}", {"server": client.server})
    if found is None:
        known = [file.name for file in library.files()]
        places = ", ".join((*library.places, *((client.server,) if client is not None else ())))
        raise LibraryError(f"there is no '{args.name}' in {places}{suggestion(name, known)}")
    text, where = found
    entry = describe(parse_text(text, where).root, name)
    content = content_of(entry, Settings().own_data_folder)
    return _shown(args, {**entry.to_json(), "text": text, "content": content}, where, {"file": where})


def _shown(args: Namespace, told: dict[str, Any], where: str, more: dict[str, Any]) -> object:
    if not args.json:
        print(f"# {printable(where)}", file=sys.stderr)
        for each in told["content"]:
            print(f"# {printable(_place(each))}", file=sys.stderr)
        sys.stdout.write(told["text"])
    return {**told, **more}


def _place(content: dict[str, Any]) -> str:
    """Where one address of a data set lies, in a line."""
    uri, host = content["uri"], content["host"]
    if content["state"] == HERE:
        ago = time.strftime("%F %T", time.localtime(content["used"] / 1000))
        users = f"used by {content['jobs']} jobs now" if content["jobs"] else f"last used {ago}"
        return f"{uri} lies on {host}: {content['path']} ({in_words(content['bytes'])}, {users})"
    if content["state"] == NOT_FETCHED:
        return f"{uri} is not on {host} yet; the first job that uses it fetches it"
    return f"{uri} is not shared between users: each has a copy"


def _add(library: Library, args: Namespace) -> object:
    text = read_text(args.file)
    client = None if args.folder else client_of(args)
    entry = read_entry(text, args.file, library=library.find if client is None else None, is_plugin=is_plugin)
    if client is not None:
        made = client.put_library_entry(entry.name, text, replace=args.replace, owner=args.owner)
        if not args.json:
            print(f"added {entry.name} {entry.version} ({client.server})")
        return {**made, "server": client.server}
    if args.folder:
        target = write_entry(args.folder, entry.name, text, version=entry.version, replace=args.replace)
    else:
        target = library.add(entry.name, text, version=entry.version, replace=args.replace)
    if not args.json:
        print(f"added {entry.name} ({target})")
    return {**entry.to_json(), "file": target}


def _remove(library: Library, args: Namespace) -> object:
    client = None if args.folder else client_of(args)
    if client is not None:
        client.remove_library_entry(*split(args.name))
        if not args.json:
            print(f"removed {args.name} ({client.server})")
        return {"name": args.name, "server": client.server}
    target = library.remove(args.name, args.folder)
    if not args.json:
        print(f"removed {args.name} ({target})")
    return {"name": args.name, "file": target}


def _index(library: Library, args: Namespace) -> object:
    target, count = write_index(args.folder)
    if not args.json:
        print(f"{target}: {count} entries")
    return {"file": target, "entries": count}
