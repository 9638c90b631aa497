"""`python -m pailot.service.keeper HOME ENGINE`: started by the server, never by hand."""

from __future__ import annotations

import sys

from .keeper import Keeper

Keeper(sys.argv[1], sys.argv[2]).run()
