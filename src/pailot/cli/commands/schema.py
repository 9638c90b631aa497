"""`pailot schema`: the JSON Schema of a job file, for editors."""

from __future__ import annotations

import json

from ...protocol.schema import json_schema
from ..main import OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the schema is JSON in any case")
    parser.epilog = "Save it as job.schema.json and begin a job with: # yaml-language-server: $schema=job.schema.json"


def run(args: Namespace) -> int:
    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return OK
