"""The HTTP framework of the server: requests, routes, bodies, events, limits, figures. It knows nothing of jobs."""
