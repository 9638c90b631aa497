"""The base of the server's image for tests: Debian packages, brought together by debootstrap. No image registry is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SUITES = {(3, 11): "bookworm", (3, 13): "trixie"}
"""The Debian whose Python is that of this checkout, since the wheels are made for it."""
PACKAGES = "ca-certificates,python3,python3-venv"
ENABLE = "the image of the server is not tested; enable that with: sudo apt-get install debootstrap podman runc"


def base_archive() -> Path:
    """The archive of the base; made where it is not there yet, in a minute or more, and kept for all checkouts."""
    suite = SUITES.get(sys.version_info[:2])
    if suite is None:
        pytest.skip("the image of the server is tested with Python 3.11 or 3.13, which Debian has")
    given = os.environ.get("PAILOT_IMAGE_CACHE")
    cache = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pailot/image"
    made = cache / f"{suite}.tar"
    if made.exists():
        return made
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip(ENABLE)
    cache.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="pailot-base-", dir="/var/tmp"))
    try:
        words = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(root)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"the image of the server is not tested: {(done.stdout or done.stderr).strip().splitlines()[-1]}")
        for each in (*root.glob("var/cache/apt/archives/*.deb"), *root.glob("var/lib/apt/lists/*_*")):
            each.unlink()
        fresh = cache / f".{suite}.{os.getpid()}"
        subprocess.run(["tar", "-C", str(root), "-cf", str(fresh), "."], check=True)
        fresh.rename(made)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return made
