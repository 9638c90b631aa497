"""One view of a run: its record, its events, its logs, and what can be asked of it; here, on a server, on an OpenPAI cluster."""
