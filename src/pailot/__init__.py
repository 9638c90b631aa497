"""Pailot: one job file, run anywhere."""

__version__ = "0.1.0"
