"""What travels into a Slurm allocation: the driver that is its batch script, and the step of each task."""
