"""Plans as `pailot plan --json` prints them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_KEPT_ONLY = ("commandPlaces",)
"""What a kept plan has beside that, for the messages about a failed command."""


def plan_json(plan: Mapping[str, Any]) -> dict[str, object]:
    """A kept plan without what is kept for messages only."""
    roles = {
        name: {key: value for key, value in role.items() if key not in _KEPT_ONLY}
        for name, role in plan.get("taskRoles", {}).items()
    }
    return {**plan, "taskRoles": roles} if roles else dict(plan)
