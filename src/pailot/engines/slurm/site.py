"""Questions to the cluster: what it could give, what a plan asks it for, whether it has the job already."""

from __future__ import annotations

import os
import time

from ...settings import Settings
from . import commands, request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...planning import Plan

SITE_SECONDS = 60.0
_site: tuple[float, list[request.Partition]] = (-SITE_SECONDS, [])


def ask(plan: Plan, settings: Settings) -> request.Request:
    """What Slurm is asked for; refused here where its partitions can never give it."""
    names = ("slurm_partitions", "slurm_priorities", "slurm_options", "slurm_shape")
    where = request.site({name: settings[name] for name in names})
    try:
        known = partitions()
    except (commands.Away, commands.Refused):
        known = []  # sbatch will tell
    return request.make(plan, where, known)


def script(plan: Plan) -> str:
    """The batch script of a plan, exactly as Slurm gets it; away from the cluster, as far as it is known without."""
    settings = Settings()
    try:
        return ask(plan, settings).script
    except commands.NoSlurm:
        names = ("slurm_partitions", "slurm_priorities", "slurm_options", "slurm_shape")
        return request.make(plan, request.site({name: settings[name] for name in names})).script


def partitions() -> list[request.Partition]:
    """The cluster's partitions, as of a minute ago at most."""
    global _site  # noqa: PLW0603  # one cluster a process
    asked, known = _site
    if time.monotonic() - asked > SITE_SECONDS:
        known = commands.partitions(os.environ)
        _site = time.monotonic(), known
    return known


def find(comment: str) -> str:
    """The job with this comment, of which we may not have learnt the number."""
    status, out, err = commands.run(
        ["squeue", "-h", "-t", "all", "--me", "-o", commands.FORMAT], commands.environment(os.environ)
    )
    if status:
        raise commands.complain("squeue", err)
    return next((each.id for each in commands.parse_jobs(out).values() if each.comment == comment), "")
