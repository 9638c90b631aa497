"""What the settings say about pods, checked."""

from __future__ import annotations

import re

from ...settings import BadSetting, Settings
from ...values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PULL = ("IfNotPresent", "Always", "Never")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Toleration(Value):
    """A taint that pods accept; an empty cluster means those of every virtual cluster."""

    cluster: str
    key: str
    value: str = ""
    effect: str = ""


class Choices(Value):
    """How pods are to be made."""

    gpu_resource: str = "nvidia.com/gpu"
    gpu_label: str = "nvidia.com/gpu.product"
    infiniband: str = ""
    node_selector: tuple[tuple[str, str, str], ...] = ()
    """Virtual cluster (empty: all), label, value."""
    tolerations: tuple[Toleration, ...] = ()
    annotations: Mapping[str, str] = {}
    queues: Mapping[str, str] = {}
    priorities: Mapping[str, str] = {}
    pull: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    service_account: str = ""
    restricted: bool = False
    user: int | None = None
    group: int | None = None
    storages: Mapping[str, str] = {}
    checkpoints: str = ""
    fetch_seconds: float = 300
    start_seconds: float = 60


def read(settings: Settings) -> Choices:
    """The settings in force."""
    pull = str(settings["kubernetes_image_pull"])
    if pull not in PULL:
        raise BadSetting(f"kubernetes_image_pull: should be {', '.join(PULL)}, is '{pull}'")
    user, group = _user(str(settings["kubernetes_user"]))
    return Choices(
        gpu_resource=settings["kubernetes_gpu_resource"],
        gpu_label=settings["kubernetes_gpu_label"],
        infiniband=settings["kubernetes_infiniband"],
        node_selector=tuple(_selector(str(each)) for each in settings["kubernetes_node_selector"]),
        tolerations=tuple(_toleration(str(each)) for each in settings["kubernetes_tolerations"]),
        annotations=_pairs("kubernetes_annotations", settings["kubernetes_annotations"]),
        queues=_pairs("kubernetes_queues", settings["kubernetes_queues"]),
        priorities=_pairs("kubernetes_priorities", settings["kubernetes_priorities"]),
        pull=pull,
        pull_secrets=tuple(map(str, settings["kubernetes_pull_secrets"])),
        service_account=settings["kubernetes_service_account"],
        restricted=bool(settings["kubernetes_restricted"]),
        user=user,
        group=group,
        storages=_pairs("kubernetes_storages", settings["kubernetes_storages"]),
        checkpoints=settings["kubernetes_checkpoints"],
        fetch_seconds=float(settings["kubernetes_fetch_seconds"]),
        start_seconds=float(settings["kubernetes_start_seconds"]),
    )


def _pairs(setting: str, listed: Iterable[object]) -> dict[str, str]:
    found = {}
    for each in listed:
        name, equals, meaning = str(each).partition("=")
        if not equals or not name.strip() or not meaning.strip():
            raise BadSetting(f"{setting}: '{each}' should be NAME=VALUE")
        found[name.strip()] = meaning.strip()
    return found


def _selector(text: str) -> tuple[str, str, str]:
    """`LABEL=VALUE`, or `VC:LABEL=VALUE`."""
    found = re.fullmatch(r"(?:([^:=/]+):)?([^=:]+)=(.*)", text.strip())
    if found is None:
        raise BadSetting(f"kubernetes_node_selector: '{text}' should be LABEL=VALUE or VC:LABEL=VALUE")
    return found[1] or "", found[2], found[3]


def _toleration(text: str) -> Toleration:
    """`KEY`, `KEY=VALUE`, `KEY=VALUE:EFFECT` or `KEY:EFFECT`, perhaps behind `VC:`."""
    rest, colon, last = text.strip().rpartition(":")
    effect = last if colon and last in EFFECTS else ""
    if not effect:
        rest = text.strip()
    cluster, colon, named = rest.partition(":")
    if not colon:
        cluster, named = "", rest
    key, _, value = named.partition("=")
    if not key or ":" in key or ":" in value:
        raise BadSetting(
            f"kubernetes_tolerations: '{text}' should be KEY, KEY=VALUE or KEY=VALUE:EFFECT, after VC: if not for all"
        )
    return Toleration(cluster, key, value, effect)


def _user(text: str) -> tuple[int | None, int | None]:
    found = re.fullmatch(r"([0-9]{1,9})(?::([0-9]{1,9}))?", text.strip())
    if text.strip() and found is None:
        raise BadSetting(f"kubernetes_user: '{text}' should be numbers, as 1000 or 1000:1000")
    return (int(found[1]), int(found[2]) if found[2] else None) if found else (None, None)
