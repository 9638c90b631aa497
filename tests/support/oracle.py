"""OpenPAI's own libraries, for comparing ours with them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class Oracle:
    """OpenPAI's YAML reader and template library in a Node.js process; one question at a time."""

    def __init__(self, node: str) -> None:
        self.process = subprocess.Popen(
            [node, ROOT / "bench/upstream/oracle.js"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """`{"op": "yaml", "text": …}` or `{"op": "render", "template": …, "context": …}`; see bench/upstream/oracle.js."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert answer.get("error") != "BadRequest", answer
        return answer

    def close(self) -> None:
        self.process.communicate()
