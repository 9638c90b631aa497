"""One module a command: `configure(parser)` says what it takes, `run(args)` returns the exit status."""
