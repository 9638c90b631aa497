"""Slurm where the nodes do not see the home of the login node: what runs on either side of the gap."""
