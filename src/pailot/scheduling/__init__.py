"""Who starts next, and why does this one wait? Pure functions over plain values."""
