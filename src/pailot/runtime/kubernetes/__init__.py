"""What speaks to a cluster's API, from a user's machine and from a pod."""
