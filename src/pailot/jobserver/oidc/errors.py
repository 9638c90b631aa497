"""Why a sign-in does not succeed."""

from __future__ import annotations

from ..errors import Forbidden, Unavailable


class SignInRefused(Forbidden):
    """What came back from the provider proves nothing; the message is for the log, `word` for the page."""

    word = "refused"


class NotAllowed(SignInRefused):
    """The provider knows the user; the rules of this server do not let the user in."""

    word = "not-allowed"


class NameInUse(SignInRefused):
    """Another account has the name already."""

    word = "name-in-use"


class ProviderUnavailable(Unavailable):
    """The identity provider cannot be reached, or replies with something that makes no sense."""

    word = "unavailable"
