"""Whose account a sign-in opens: the rules for names, groups and first sign-ins.

A person is known by issuer and subject, which a provider never gives to another. A name or mail address alone proves nothing.
"""

from __future__ import annotations

from ...store.server import NameTaken
from ...values import Value
from ..accounts import ADMIN, NoSuchUser
from ..errors import BadRequest, Conflict, Forbidden
from .configuration import EXISTING, LINK
from .errors import NameInUse, NotAllowed, SignInRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ...store.server import ServerStore
    from ..accounts import Account, Accounts
    from ..sessions import Sessions
    from .configuration import SignOnSettings

MAX_GROUPS = 10_000
MAX_MAIL = 320


class Person(Value):
    """Who the provider says has signed in."""

    subject: str
    name: str
    email: str
    groups: frozenset[str]


def person_of(claims: Mapping[str, Any], settings: SignOnSettings) -> Person:
    """Return who the claims name. Of a mail address the part before the @ is the name. Raises SignInRefused."""
    said = claims.get(settings.username_claim)
    if not isinstance(said, str) or not said:
        raise SignInRefused(f"the provider does not tell the claim '{settings.username_claim}' (oidc_username_claim)")
    groups = claims.get(settings.groups_claim, ())
    groups = [groups] if isinstance(groups, str) else groups
    named = frozenset(each for each in groups[:MAX_GROUPS] if isinstance(each, str)) if isinstance(groups, list) else frozenset()
    email = claims.get("email", "")
    usable = isinstance(email, str) and email.isprintable() and len(email) <= MAX_MAIL
    return Person(str(claims["sub"]), said.partition("@")[0], email if usable else "", named)


class Directory:
    """Finds and makes the accounts of persons."""

    def __init__(
        self,
        settings: SignOnSettings,
        store: ServerStore,
        accounts: Accounts,
        sessions: Sessions,
        clusters: Callable[[], tuple[str, ...]],
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._store = store
        self._accounts = accounts
        self._sessions = sessions
        self._clusters = clusters
        self._clock = clock

    def admit(self, person: Person) -> Account:
        """Return the account of a person, with the groups of this moment. Raises NotAllowed, NameInUse, SignInRefused."""
        rows, issuer = self._store.accounts, self._settings.issuer
        known = rows.identity(issuer, person.subject)
        allowed = self._settings.allowed_groups
        if allowed and not person.groups.intersection(allowed):
            if known is not None:
                self._sessions.revoke_logins(known)
            raise NotAllowed(f"'{known or person.name}' is in none of the groups that may sign in (oidc_allowed_groups)")
        username = known if known is not None else self._first(person)
        if self._settings.manages_groups:
            self._set_groups(username, person)
        return self._accounts.account(username)

    def _first(self, person: Person) -> str:
        """The account of a person who was never here: a new one, or that of the same name, as the rule says."""
        rule = self._settings.accounts
        try:
            there: Account | None = self._accounts.account(person.name)
        except NoSuchUser:
            there = None
        with self._store.batch():
            if there is None:
                if rule == EXISTING:
                    raise NotAllowed(f"there is no account '{person.name}', and none is made at a sign-in (oidc_accounts)")
                try:
                    self._accounts.create_user(person.name, None, email=person.email)
                except BadRequest as error:
                    raise SignInRefused(f"'{person.name}' cannot be an account: {error}") from None
                except Conflict as error:
                    raise NameInUse(str(error)) from None
            elif rule not in (LINK, EXISTING):
                raise NameInUse(f"the account '{person.name}' is not of the identity provider; oidc_accounts can link them")
            elif there.admin or there.username == ADMIN:
                raise NameInUse(f"'{person.name}' is an administrator, and is not linked by name alone")
            try:
                self._store.accounts.add_identity(self._settings.issuer, person.subject, person.name, self._clock())
            except NameTaken:
                raise NameInUse(f"the account '{person.name}' belongs to another person at the provider") from None
        return person.name

    def _set_groups(self, username: str, person: Person) -> None:
        there = self._clusters()
        table = self._settings.clusters
        wanted = [each for group in sorted(person.groups) for each in table.get(group, ()) if each in there]
        admin = not person.groups.isdisjoint(self._settings.admin_groups)
        try:
            self._accounts.update_user(username, virtual_clusters=tuple(dict.fromkeys(wanted)), admin=admin)
        except Forbidden as error:
            raise NotAllowed(f"'{username}' would no longer be an administrator: {error}") from None
