"""The whole route table."""

from __future__ import annotations

from .routes import attempts, clusters, code, groups, info, jobs, live, logs, ours, storages, tokens, users, v1

ROUTES = tuple(
    route
    for module in (info, tokens, users, groups, clusters, storages, jobs, attempts, logs, ours, live, code, v1)
    for route in module.routes.list
)
