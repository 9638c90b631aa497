"""The handlers, by subject. Each module has a list of routes; `table` puts them together."""
