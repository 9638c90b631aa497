"""One module a command: `configure(parser)` says what it takes, `run(args)` answers the exit status."""
