"""JSON as short as it gets, on one line. The encoder is made once: a server writes several texts of JSON for every job."""

from __future__ import annotations

import json

to_line = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
"""What it is given is made anew from values, and so holds no circle."""
