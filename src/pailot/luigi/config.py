"""The section `[OpenPai]` of luigi's configuration."""

from __future__ import annotations

import luigi


class OpenPai(luigi.Config):
    """Where jobs run, and as which user."""

    pai_url = luigi.Parameter(
        default="http://127.0.0.1:9186", description="address of the REST server, or 'local' for this machine without a server"
    )
    username = luigi.Parameter(default="admin", description="your username")
    password = luigi.OptionalParameter(default=None, description="your password")
    expiration = luigi.IntParameter(default=3600, description="expiration time in seconds")
    token = luigi.OptionalParameter(default=None, description="a token, instead of a password")
