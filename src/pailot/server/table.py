"""The whole route table."""

from __future__ import annotations

from .routes import attempts, clusters, code, groups, info, jobs, live, logs, machine, ours, storages, tokens, users, v1, v1_users

ROUTES = tuple(
    route
    for module in (info, tokens, users, groups, clusters, machine, storages, jobs, attempts, logs, ours, live, code, v1, v1_users)
    for route in module.routes.list
)
