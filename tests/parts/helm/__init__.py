"""Helm's own library renders the chart: a small program, built from the Go module proxy into a cache that all checkouts share."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

HELM = "v3.18.6"
ENABLE = "the chart is not rendered; enable that with Go 1.25 or newer: apt-get install golang, or https://go.dev/dl"
ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOWORK": "off"}
HERE = Path(__file__).parent
CHART = HERE.parents[2] / "deploy" / "chart"


class Refused(Exception):
    """The values do not fit the schema, or a template fails."""


def program() -> Path:
    """The renderer; built where it is not there yet, in about a minute of CPU time. Skips without Go."""
    given = os.environ.get("PAILOT_HELM_CACHE")
    cache = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pailot/helm"
    made = cache / f"render-{HELM}"
    if os.access(made, os.X_OK):
        return made
    go = shutil.which("go")
    if go is None:
        pytest.skip(ENABLE)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pailot-helm-") as folder:
        shutil.copy(HERE / "render.go", Path(folder) / "main.go")
        (Path(folder) / "go.mod").write_text("module render\n\ngo 1.25\n")
        fresh = cache / f".render.{os.getpid()}"
        for words in (["get", f"helm.sh/helm/v3@{HELM}"], ["build", "-o", str(fresh), "."]):
            done = subprocess.run(
                [go, *words], cwd=folder, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False
            )
            if done.returncode:
                pytest.skip(f"the chart is not rendered: go {words[0]} failed: {done.stderr.strip().splitlines()[-1]}")
        fresh.rename(made)
    return made


def rendered(values: dict[str, Any], name: str = "pailot", namespace: str = "team") -> str:
    """The chart's objects as YAML. Raises Refused."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(values, file)
        file.flush()
        words = [str(program()), str(CHART), name, namespace, file.name]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(done.stderr)
    return done.stdout
