"""What `pailot plan` shows of an attempt in a cluster: its objects, as text for `kubectl apply`."""

from __future__ import annotations

import re

from ...protocol.yaml.writer import dump
from ...runtime.kubernetes import pod_layout
from ...runtime.shim import REFERENCE
from ..contract import Attempt, LaunchContext
from . import code_zip, objects, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...planning import Plan
    from .choices import Choices

RUN = "preview"


def preview(plan: Plan, choices: Choices, hidden: Sequence[str] = ()) -> str:
    """All objects; a Secret is empty, with a line above that says what belongs into it."""
    objects.check(plan, choices)
    names = objects.Names(RUN, 0)
    attempt = Attempt(plan=plan, number=0, folder="", checkpoints="", context=LaunchContext(hidden=tuple(hidden)))
    payload = told.payload_of(attempt, choices, token=f"pailot-{RUN}-")
    packed = payload.packed()
    texts = [text for role in plan.roles.values() for text in (role.scripts.main, role.scripts.start, role.scripts.exit)]
    private = told.is_private(payload) or any(re.search(REFERENCE, text) for text in texts)
    pulls = any(role.image.auth for role in plan.roles.values())
    public = {pod_layout.CODE: code_zip.code()}
    if not private:
        public[pod_layout.PAYLOAD] = packed
    parts = []
    if private:
        parts.append(
            f"# pailot run fills this in: the payload, which holds the job's secrets.\n{dump(objects.secret(names, {}))}"
        )
    if pulls:
        parts.append(f"# pailot run fills this in: the credentials of registries.\n{dump(objects.pull_secret(names, []))}")
    parts.append(dump(objects.config_map(names, public)))
    if plan.options.code:
        parts[-1] = f"# pailot run adds the job's code ({pod_layout.FILES}).\n{parts[-1]}"
    parts += [
        dump(objects.job(names, plan, number, choices, private=private, pulls=pulls, suspended=False))
        for number in range(len(plan.roles))
    ]
    return "---\n".join(parts)
