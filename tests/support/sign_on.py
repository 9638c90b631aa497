"""A server whose users come from an OpenID provider: its settings, and the address that `pailot login` shows."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.parts.oidc import CLIENT_ID, CLIENT_SECRET

RETURN = "/api/v2/authn/oidc/return"
GROUPS = {"researchers": ["research"], "everyone": "default"}


def settings(issuer: str, folder: Path, **more: str) -> dict[str, str]:
    (folder / "client-secret").write_text(CLIENT_SECRET + "\n")
    return {
        "PAILOT_OIDC_ISSUER": issuer,
        "PAILOT_OIDC_NAME": "Example",
        "PAILOT_OIDC_CLIENT_ID": CLIENT_ID,
        "PAILOT_OIDC_CLIENT_SECRET_FILE": str(folder / "client-secret"),
        "PAILOT_OIDC_GROUPS": json.dumps(GROUPS),
        "PAILOT_OIDC_ADMIN_GROUPS": "operators",
        "PAILOT_VIRTUAL_CLUSTERS": "research,vision",
        **more,
    }


def address_in(process: subprocess.Popen[str]) -> str:
    assert process.stderr
    while line := process.stderr.readline():
        found = re.search(r"http://\S+oidc/login\S+", line)
        if found:
            return found[0]
    raise AssertionError("no address was shown")
