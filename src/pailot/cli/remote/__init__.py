"""The commands against a server: the same words and the same JSON as for local runs."""
