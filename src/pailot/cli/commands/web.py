"""`pailot web [JOB]`: the server's web page in the browser, signed in by a link that works once."""

from __future__ import annotations

from urllib.parse import quote

from ..main import OK
from ..server_option import add_server_option, job_name, need_client, print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("job", nargs="?", metavar="JOB", help="open the page of this job")
    words = "print the link instead; it works once, within a minute"
    parser.add_argument("--print", action="store_true", dest="only_print", help=words)
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print the link as JSON")


def run(args: Namespace) -> int:
    client = need_client(args)
    place = f"{client.server}/jobs"
    if args.job:
        place += f"/{quote(job_name(client, args.job), safe='~')}"
    link = f"{place}#code={client.page_code()}"
    if args.json:
        print_json({"url": link})
    elif args.only_print:
        print(link)
    else:
        import webbrowser

        print(place if webbrowser.open(link) else link)
    return OK
