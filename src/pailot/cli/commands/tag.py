"""`pailot tag JOB [TAG…]`: give a job on a server tags, take them away, or list them."""

from __future__ import annotations

from ..main import OK
from ..server_option import add_server_option, job_name, need_client, print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="JOB", help="name, or USER~NAME")
    parser.add_argument("tags", nargs="*", metavar="TAG", help="tags to add; without any, its tags are listed")
    parser.add_argument("--remove", action="store_true", help="take these tags away")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print the tags as JSON")


def run(args: Namespace) -> int:
    client = need_client(args)
    job = job_name(client, args.run)
    for tag in args.tags:
        if args.remove:
            client.remove_tag(job, tag)
        else:
            client.add_tag(job, tag)
    tags = client.job(job).get("tags") or []
    if args.json:
        print_json(tags)
    elif tags:
        print("\n".join(tags))
    return OK
