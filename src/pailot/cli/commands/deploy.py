"""`pailot deploy kubernetes --print`: the objects of a server for a cluster, as the Helm chart makes them with its defaults."""

from __future__ import annotations

import re
from pathlib import Path

from ...errors import PailotError
from ..main import OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

IMAGE, NAMESPACE = "image-of-pailot", "namespace-of-pailot"
"""What stands in the committed rendering where the user's own go."""
RENDERING = Path(__file__).with_name("deploy_kubernetes.yaml")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("place", choices=("kubernetes",), help="where the server is to live")
    parser.add_argument("--print", action="store_true", dest="only_print", required=True, help="print the objects as YAML")
    parser.add_argument("--image", metavar="IMAGE", required=True, help="image of the server, as deploy/Containerfile makes it")
    parser.add_argument("--namespace", metavar="NAME", default="default", help="namespace of the server and its jobs")


def run(args: Namespace) -> int:
    if not _IMAGE.fullmatch(args.image):
        raise PailotError("--image: should be the name of an image, such as registry.example.org/pailot:1")
    if not _NAMESPACE.fullmatch(args.namespace):
        raise PailotError("--namespace: a namespace has small letters, digits and '-', at most 63")
    text = RENDERING.read_text(encoding="utf-8")
    print(text.replace(IMAGE, args.image).replace(NAMESPACE, args.namespace), end="")
    return OK
