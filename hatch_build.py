"""What the packages hold beside the source: completions for shells, and the addresses of the project.

Completions are made from the parsers while the wheel is built, so that they never lag behind. The address of the repository is
that of the workflow that builds the release, or `PAILOT_REPOSITORY_URL`; without one the packages name none.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

COMPLETIONS = {
    "bash": "share/bash-completion/completions/pailot",
    "zsh": "share/zsh/site-functions/_pailot",
    "fish": "share/fish/vendor_completions.d/pailot.fish",
}
"""Where shells look for completions, below the prefix of an installation."""


class Completions(BuildHookInterface[Any]):
    """Adds what `pailot completion SHELL` prints to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling; an installation in place has its files where the source is, and none elsewhere."""
        if version == "editable":
            return
        root = Path(self.root)
        folder = root / "build" / "completions"
        folder.mkdir(parents=True, exist_ok=True)
        for shell, place in COMPLETIONS.items():
            (folder / shell).write_text(completion(root / "src", shell), encoding="utf-8")
            build_data["shared_data"][str(folder / shell)] = place


class Addresses(MetadataHookInterface):
    """Fills `project.urls`."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling."""
        metadata["urls"] = addresses(os.environ)


def completion(source: Path, shell: str) -> str:
    """Return the script of a shell, from the parsers below `source`. They need the standard library alone."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); from pailot.cli.main import main; sys.exit(main(sys.argv[2:]))"
    command = [sys.executable, "-c", program, str(source), "completion", shell]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8").stdout


def addresses(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the addresses that the packages name."""
    server, name = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_REPOSITORY", "")
    home = environment.get("PAILOT_REPOSITORY_URL") or (f"{server}/{name}" if server and name else "")
    found = {"Job protocol": "https://github.com/microsoft/openpai-protocol"}
    if home:
        found |= {
            "Repository": home,
            "Documentation": f"{home}/blob/main/docs/index.md",
            "Changelog": f"{home}/blob/main/CHANGELOG.md",
            "Issues": f"{home}/issues",
        }
    return found
