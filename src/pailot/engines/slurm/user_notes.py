"""What a user is told about a job on Slurm, once, when it is submitted."""

from __future__ import annotations

from . import private_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...settings import Settings
    from ..contract import Attempt


def notes_on(attempt: Attempt, settings: Settings, *, away: bool) -> list[str]:
    """What differs from what a user may expect."""
    plan = attempt.plan
    if attempt.number:  # the rest was said already
        return _away_notes(attempt, settings) if away and settings["slurm_shared_home"] == "auto" else []
    found = _away_notes(attempt, settings) if away else []
    if not settings["slurm_container"]:
        images = ", ".join(sorted({role.image.uri for role in plan.roles.values()}))
        found.append(f"commands run on the nodes as they are; the image {images} is not used (slurm_container)")
    elif any(role.image.auth for role in plan.roles.values()):
        found.append("credentials of a registry are not brought to the nodes; log in there")
    without_effect = [
        name
        for name, used in (
            ("--sandbox", attempt.context.sandbox),
            (plan.storages_key, plan.storages or plan.default_storages),
            ("extraContainerOptions.shmMB", any(role.resources.shm_mb for role in plan.roles.values())),
            ("extraContainerOptions.infiniband", any(role.resources.infiniband for role in plan.roles.values())),
            ("extras.pailot.authFile", plan.options.auth_file),
            ("extras.gangAllocation", not plan.gang),
        )
        if used
    ]
    if without_effect:
        found.append(f"without effect on the slurm engine: {', '.join(without_effect)}")
    return found


def _away_notes(attempt: Attempt, settings: Settings) -> list[str]:
    along = (
        "the job's code travels with it"
        if attempt.context.code or attempt.plan.options.code
        else "tasks begin in an empty directory"
    )
    found = [f"the nodes do not see this home: {along}, and only logs and records come back (slurm_shared_home)"]
    left_out = () if settings["slurm_secrets_in_spool"] else private_part.inherited_credentials(attempt)
    if left_out:
        names = ", ".join(left_out)
        found.append(f"not sent to the nodes, since it would lie in Slurm's spool: {names} (slurm_secrets_in_spool)")
    return found
