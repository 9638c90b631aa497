"""`pailot gc`: remove old runs."""

from __future__ import annotations

import json
import time

from ...data.data_sets import DataSets
from ...jobserver.maintenance import collect_server
from ...settings import Settings
from ...userruns.retention import old_runs, rebuild_index, remove
from ..main import OK
from ..quick_argparse import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--keep-days", type=amount, default=30, metavar="N", help="keep runs that ended less than N days ago (30)"
    )
    parser.add_argument("--keep-last", type=int, default=20, metavar="N", help="always keep the latest N runs (20)")
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    parser.add_argument("--rebuild-index", action="store_true", help="make the index anew from the folders of the runs")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    if args.rebuild_index:
        count = rebuild_index()
        if args.json:
            print(json.dumps({"runs": count}))
        else:
            print(f"the index holds {count} runs")
        return OK

    now = time.time()
    server = collect_server(Settings(), now, keep_days=args.keep_days, keep_last=args.keep_last, dry_run=args.dry_run)
    rows = old_runs(before=now - args.keep_days * 86400, keep_last=args.keep_last)
    freed = 0 if args.dry_run else remove(rows)
    if not args.dry_run:
        settings = Settings()
        freed += sum(each.bytes for each in DataSets(settings.own_data_folder).evict(settings.data_bytes))
    if args.json:
        told = {"removed": [row.id for row in rows], "serverJobs": server, "bytes": freed, "dryRun": args.dry_run}
        print(json.dumps(told))
    else:
        verb = "would go" if args.dry_run else f"removed, {freed / 1e6:.1f} MB freed"
        print(f"{len(rows)} runs {verb}")
        if server is not None:
            print(f"{server} jobs of the server {'would go' if args.dry_run else 'removed'}")
    return OK
