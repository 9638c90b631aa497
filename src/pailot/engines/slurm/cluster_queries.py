"""Questions to the cluster: what it could give, what a plan asks it for, whether it has the job already."""

from __future__ import annotations

import os
import time

from ...settings import Settings
from . import sbatch_request, slurm_cli

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...planning import Plan

SITE_SECONDS = 60.0
_site: tuple[float, list[sbatch_request.Partition]] = (-SITE_SECONDS, [])


def ask(plan: Plan, settings: Settings) -> sbatch_request.SlurmRequest:
    """What Slurm is asked for; refused here where its partitions can never give it."""
    names = ("slurm_partitions", "slurm_priorities", "slurm_options", "slurm_shape")
    where = sbatch_request.site({name: settings[name] for name in names})
    try:
        known = partitions()
    except (slurm_cli.Away, slurm_cli.SlurmRefused):
        known = []  # sbatch will tell
    return sbatch_request.make(plan, where, known)


def script(plan: Plan) -> str:
    """The batch script of a plan, exactly as Slurm gets it; away from the cluster, as far as it is known without."""
    settings = Settings()
    try:
        return ask(plan, settings).script
    except slurm_cli.NoSlurm:
        names = ("slurm_partitions", "slurm_priorities", "slurm_options", "slurm_shape")
        return sbatch_request.make(plan, sbatch_request.site({name: settings[name] for name in names})).script


def partitions() -> list[sbatch_request.Partition]:
    """The cluster's partitions, as of a minute ago at most."""
    global _site  # noqa: PLW0603  # one cluster a process
    asked, known = _site
    if time.monotonic() - asked > SITE_SECONDS:
        known = slurm_cli.partitions(os.environ)
        _site = time.monotonic(), known
    return known


def find(comment: str) -> str:
    """The job with this comment, of which we may not have learnt the number."""
    status, out, err = slurm_cli.run(
        ["squeue", "-h", "-t", "all", "--me", "-o", slurm_cli.FORMAT], slurm_cli.environment(os.environ)
    )
    if status:
        raise slurm_cli.complain("squeue", err)
    return next((each.id for each in slurm_cli.parse_jobs(out).values() if each.comment == comment), "")
