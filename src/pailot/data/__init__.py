"""Data on its way: from wherever a URI points to the machine of a task, and back when the job has succeeded."""
