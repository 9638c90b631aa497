"""A copy of an attempt's folder on another file system, kept up to date over two streams: of srun, `kubectl exec` or ssh."""
