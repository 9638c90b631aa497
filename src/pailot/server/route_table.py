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
    log_downloads,
    log_times,
    logs,
    overview,
    pailot_extensions,
    search,
    sessions,
    sign_in,
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
        sign_in,
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
        log_times,
        log_downloads,
        search,
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
