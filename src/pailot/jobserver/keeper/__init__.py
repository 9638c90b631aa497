"""The keeper: one small process that drives all jobs of a server, and outlives it.

It holds no key and no database: what a job needs comes over a socket in the home, secrets included, and stays in memory.
What it tells the server only says 'look again'; the truth is in the job folders.
"""
