"""The HTTP client of the API: for the command line, for Python and for the engine that uses another server.

`client` has a method for every route, `http` carries the requests, `stream` reads server-sent events and resumes them,
`pack` makes an archive of a code folder, `credentials` remembers logins. Import the module you need; this one loads nothing.
"""
