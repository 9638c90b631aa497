"""The whole route table."""

from __future__ import annotations

from .routes import (
    attempts,
    checking,
    clusters,
    code,
    groups,
    info,
    jobs,
    kubernetes_view,
    live,
    logs,
    overview,
    pailot_extensions,
    sessions,
    storages,
    task_access,
    tokens,
    users,
    v1,
    v1_users,
)

ROUTES = tuple(
    route
    for module in (
        info,
        tokens,
        sessions,
        users,
        groups,
        clusters,
        kubernetes_view,
        storages,
        jobs,
        checking,
        overview,
        attempts,
        logs,
        pailot_extensions,
        live,
        task_access,
        code,
        v1,
        v1_users,
    )
    for route in module.routes.list
)
