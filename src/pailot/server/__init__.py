"""The front door over HTTP: OpenPAI's REST API, and what we add to it. It translates and never decides."""
