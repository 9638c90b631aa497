"""YAML as OpenPAI reads it: js-yaml 3's dialect, with positions, bounds and one clear error.

Why a reader of our own: a general library crashes on hostile input, or loses positions, or
resolves scalars by other rules, and each costs more time than everything else we do with a job.
`docs/explanation/yaml.md` has the figures.
"""

from .document import LIMITS, Document, List, Map, YamlError, new_list, new_map
from .load import parse
from .scalars import Timestamp

__all__ = ["LIMITS", "Document", "List", "Map", "Timestamp", "YamlError", "new_list", "new_map", "parse"]
