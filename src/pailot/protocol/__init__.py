"""What does the file say? Text becomes a typed, immutable `Job`, or a list of `Problem`s."""

from .model import Job
from .problems import CODES, InvalidJob, PailotError, Problem
from .reader import read

__all__ = ["CODES", "InvalidJob", "Job", "PailotError", "Problem", "read"]
