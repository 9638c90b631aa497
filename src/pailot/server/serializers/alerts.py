"""Alerts as Alertmanager tells them, which is what OpenPAI's web portal and alert handler read."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import md5

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...jobserver.alerts import Alert

_AGAIN_SECONDS = 300.0
"""An alert that is not told anew within that time is over, Alertmanager would say."""


def alert_json(alert: Alert, node: str, now: float) -> dict[str, object]:
    """One alert that is firing."""
    labels = {"alertname": alert.name, "severity": alert.severity, "service": "pailot", "node_name": node}
    if alert.job:
        labels |= {"job_name": f"{alert.user}~{alert.job}", "username": alert.user}
    if alert.cluster:
        labels["vc_name"] = alert.cluster
    annotations = {"summary": alert.summary, **({"description": alert.detail} if alert.detail else {})}
    sign = "\n".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return {
        "labels": labels,
        "annotations": annotations,
        "state": "firing",
        "status": {"state": "active", "silencedBy": [], "inhibitedBy": []},
        "startsAt": iso(alert.since),
        "updatedAt": iso(now),
        "endsAt": iso(now + _AGAIN_SECONDS),
        "generatorURL": "",
        "receivers": [],
        "fingerprint": md5(sign.encode(), usedforsecurity=False).hexdigest()[:16],
    }


def iso(seconds: float) -> str:
    """A moment as Kubernetes and Prometheus write it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
