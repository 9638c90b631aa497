"""The engine for Slurm: one allocation per attempt, our driver its batch script, a step for each task."""
