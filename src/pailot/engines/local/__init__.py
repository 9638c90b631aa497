"""The local engine: real processes on this machine, without a daemon, a configuration or root."""
