"""Slurm where the nodes do not see the home of the login node, behind one seam: `home.UnsharedHome`."""
