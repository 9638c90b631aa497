"""What Prometheus is told of the jobs. Names follow its conventions: base units, the unit last, `_total` for what only grows."""

from __future__ import annotations

from .. import __version__
from ..lifecycle.states import FINAL_JOB_STATES, RUNNING, STOPPING, WAITING
from .toolkit.metrics import Family, Sample, counter, gauge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..jobserver.models import Shares, TeamFigures

MEGABYTE = 1 << 20
_AMOUNTS: tuple[tuple[str, str, str, Callable[[Shares], float]], ...] = (
    ("cpu_cores", "cpu_cores_used", "CPU cores", lambda shares: shares.cpus),
    ("memory_bytes", "memory_used_bytes", "Bytes of memory", lambda shares: shares.memory_mb * MEGABYTE),
    ("gpus", "gpus_used", "GPUs", lambda shares: shares.gpus),
)


def families(figures: TeamFigures, alerts: Mapping[str, int], *, clusters: bool) -> list[Family]:
    """Return all figures about jobs; those of each virtual cluster only where `clusters` says so, for their names tell."""
    told = [
        Family("build_info", "gauge", "Always 1; the label has the version.", (Sample(1, (("version", __version__),)),)),
        _by("jobs", "gauge", "Jobs that are not over, by state.", "state", figures.states, (WAITING, RUNNING, STOPPING)),
        gauge("queue_length", "Jobs that wait for their turn.", figures.queued),
        counter("jobs_submitted_total", "Jobs taken since the server started.", figures.submitted),
        counter("jobs_started_total", "Starts of jobs, starts after a retry included.", figures.started),
        _by("jobs_ended_total", "counter", "Jobs that ended, by state.", "state", figures.ended, sorted(FINAL_JOB_STATES)),
        counter("jobs_preempted_total", "Jobs that made room for others.", figures.preempted),
        counter("job_platform_retries_total", "Jobs tried again after a failure that was not theirs.", figures.platform_retries),
        counter("keepers_replaced_total", "Keeper processes that had to be replaced.", figures.keepers_replaced),
        _by("alerts", "gauge", "Alerts of the server that are firing, by name.", "alert", alerts, ()),
    ]
    for whole, used, what, amount in _AMOUNTS:
        told.append(gauge(whole, f"{what} that there are for jobs.", amount(figures.total)))
        told.append(gauge(used, f"{what} that jobs hold.", amount(figures.used)))
        if clusters:
            held = {name: amount(shares) for name, shares in figures.clusters.items()}
            words = f"{what} that the jobs of a virtual cluster hold."
            told.append(_by(f"virtual_cluster_{used}", "gauge", words, "virtual_cluster", held, ()))
    return told


def _by(name: str, kind: str, help: str, label: str, values: Mapping[str, float], always: tuple[str, ...] | list[str]) -> Family:
    """A figure with one label; the values of `always` are there even where they are 0, so that no rule misses them."""
    both = {**dict.fromkeys(always, 0), **values}
    return Family(name, kind, help, tuple(Sample(value, ((label, key),)) for key, value in both.items()))
