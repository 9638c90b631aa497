"""Submit, drive, observe, stop, recover: the only writer of a job's state."""
