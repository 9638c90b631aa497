"""The whole route table."""

from __future__ import annotations

from .routes import (
    attempts,
    audit,
    checking,
    clusters,
    code,
    groups,
    info,
    job_tasks,
    jobs,
    kubernetes_view,
    library,
    live,
    logs,
    overview,
    pailot_extensions,
    sessions,
    storages,
    task_access,
    tokens,
    usage,
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
        library,
        jobs,
        checking,
        overview,
        audit,
        attempts,
        job_tasks,
        logs,
        usage,
        pailot_extensions,
        live,
        task_access,
        code,
        v1,
        v1_users,
    )
    for route in module.routes.list
)
