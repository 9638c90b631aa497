"""The command line: it translates, it never decides."""
