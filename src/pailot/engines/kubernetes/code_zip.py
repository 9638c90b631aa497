"""Our code as one file that a pod's Python can run, without anything installed in the image."""

from __future__ import annotations

import io
import os
from functools import cache

from ..preparation.travelling_code import PACKAGE, sources

START = """import sys

from pailot.runtime.kubernetes.program import main

sys.exit(main())
"""
LEFT_OUT = ("runtime/slurm/", "runtime/docker_api.py", "runtime/container_")
"""What no pod needs."""
_LONG_AGO = (2020, 1, 1, 0, 0, 0)


@cache
def code() -> bytes:
    """The same code gives the same bytes."""
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    stream = io.BytesIO()
    with ZipFile(stream, "w", ZIP_DEFLATED) as archive:
        texts = {"__main__.py": START.encode(), "pailot/__init__.py": b""}
        for path in sorted(sources()):
            if not path.startswith(LEFT_OUT):
                with open(os.path.join(PACKAGE, path), "rb") as source:
                    texts[f"pailot/{path}"] = source.read()
        for path, text in texts.items():
            entry = ZipInfo(path, _LONG_AGO)
            entry.compress_type = ZIP_DEFLATED
            archive.writestr(entry, text)
    return stream.getvalue()
