"""Who may use the server: users, groups, passwords, tokens; the rules, for front doors that translate.

What a user may do follows from the groups, as in OpenPAI: a group's `extension["acls"]` names virtual clusters and storages,
and makes administrators. A virtual cluster without a group of its name gets one when a user is given it.
Everything here waits for the disk, and a password costs 30 ms of one core: call it from a thread.
"""

from __future__ import annotations

import json
import re
import threading
from secrets import token_urlsafe
from time import time

from ..install_lines import install_line
from ..store.server import APPLICATION, BROWSER, SESSION, Group, NameTaken, Token, User
from ..store.server.tokens import BadToken, TokenKeys, digest, sign, verify
from ..values import Value
from .errors import BadRequest, Conflict, Forbidden, Missing, TeamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    from argon2 import PasswordHasher

    from ..store.server import ServerStore

ADMIN = "admin"
DEFAULT_GROUP = "default"
ADMIN_GROUP = "admingroup"
DEFAULT_CLUSTER = "default"

USERNAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
RESERVED = frozenset(("me",))
GROUPNAME = re.compile(r"[A-Za-z0-9_]{1,128}")
SHORTEST_PASSWORD = 6
LONGEST_PASSWORD = 1024  # bytes; a hash of megabytes would keep a core busy

LONGEST_TEXT = 1024

LIFE_SECONDS = 7 * 24 * 3600.0
SHORTEST_LIFE, LONGEST_LIFE = 60, 7 * 24 * 3600

# OWASP's first choice for argon2id: 19 MiB, two passes, one lane.
MEMORY_KIB, PASSES, LANES = 19 * 1024, 2, 1

FREE_FAILURES = {"who": 5, "name": 50, "address": 50}
"""Log-ins that may fail in a row without a wait: of a name from one address, of a name, from an address."""
LONGEST_WAIT = 60.0
FORGOTTEN_AFTER = 15 * 60.0
CACHED = 4096

LARGEST_EXTENSION = 262_144
NOT_ISOLATED = (
    "users are not isolated from each other: the tasks of {} run as {}, and can read and stop {}; "
    "a Unix user for each of them keeps them apart (setting unix_users)"
)


class NoSuchUser(Missing):
    """There is no user of that name."""


class NoSuchGroup(Missing):
    """There is no group of that name."""


class NoSuchCluster(Missing):
    """There is no virtual cluster of that name."""


class NoSuchToken(Missing):
    """The token was not given out, or was revoked."""


class AdminStays(Forbidden):
    """An administrator is not removed."""


class WrongPassword(TeamError):
    """The password is not the user's, or there is no such user: who asks is not told which."""


class PasswordLoginOff(Forbidden):
    """Users log in at an identity provider only."""


class TooManyFailures(TeamError):
    """Log-ins fail too often; `seconds` until the next one is looked at."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"too many log-ins failed; try again in {max(1, round(seconds))} s")


class Account(Value):
    """A user with everything that follows from the groups."""

    username: str
    email: str
    grouplist: tuple[str, ...]
    extension: Mapping[str, Any]
    admin: bool
    virtual_clusters: tuple[str, ...]
    storages: tuple[str, ...]
    unix_user: str | None = None


class Bearer(Value):
    """Who holds a token: the account, what the token says, and whether it was made for a program."""

    account: Account
    claims: Mapping[str, Any]
    application: bool


class Accounts:
    """The accounts of one server.

    `clusters` returns the names of all virtual clusters, `unix_user` the Unix user as which the tasks of a user
    run (an empty name for the server's own, None where they may not run at all); without it, what the account says.
    """

    def __init__(
        self,
        store: ServerStore,
        home: str,
        clusters: Callable[[], Collection[str]] = lambda: (DEFAULT_CLUSTER,),
        clock: Callable[[], float] = time,
        unix_user: Callable[[str], str | None] | None = None,
        *,
        password_login: bool = True,
    ) -> None:
        self.password_login = password_login
        """Whether a password lets a user in; else an identity provider does."""
        self._store = store
        self._rows = store.accounts
        self._keys = TokenKeys(home).keys()
        self._clusters = clusters
        self._clock = clock
        self._unix_user = unix_user
        self._known: dict[str, Bearer] = {}
        self._generation = 0
        self._lock = threading.Lock()

    # The first start

    def prepare(self, password: str | None = None) -> str | None:
        """Make the groups and the user `admin` where there is no user yet; the password, if it had to be made up."""
        for group in (
            Group(DEFAULT_GROUP, "group for default vc", "", _acls(clusters=[DEFAULT_CLUSTER])),
            Group(ADMIN_GROUP, "admin group", "", _acls(admin=True)),
        ):
            if self._rows.group(group.groupname) is None:
                self._rows.add_group(group)
        if self._rows.count_users():
            return None

        if not self.password_login:
            self.create_user(ADMIN, password, admin=True)
            return None
        made = None if password else token_urlsafe(12)
        self.create_user(ADMIN, password or made or "", admin=True)
        return made

    # Logging in

    def login(self, username: str, password: str, *, address: str = "", expires_in: float = LIFE_SECONDS) -> tuple[str, Account]:
        """A browser token for who knows the password. WrongPassword, whether or not there is such a user; TooManyFailures."""
        self.check_password(username, password, address)
        return self.login_proved(username, expires_in), self.account(username)

    def login_proved(self, username: str, expires_in: float = LIFE_SECONDS) -> str:
        """Return a browser token for a user who has proved otherwise who they are. Raises NoSuchUser."""
        self._user(username)
        with self._store.batch():
            self._rows.remove_expired(self._clock())
            return self._grant(username, BROWSER, expires_in)

    def identify(self, token: str, username: str | None = None) -> Bearer:
        """Who this token belongs to; BadToken. With `username` (basic authentication) only that user's application token."""
        known = self._known.get(token)
        if known is None:
            generation = self._generation
            claims = verify(token, self._keys, self._clock())
            row = self._rows.token(digest(token))
            if row is None or claims.get("username") != row.username:
                raise BadToken("the token was revoked")
            try:
                account = self.account(row.username)
            except NoSuchUser:
                raise BadToken("the user of the token is gone") from None
            known = Bearer(account, claims, row.kind == APPLICATION)
            with self._lock:
                if generation == self._generation:
                    if len(self._known) >= CACHED:
                        self._known.clear()
                    self._known[token] = known
        elif known.claims.get("exp", float("inf")) <= self._clock():
            raise BadToken("the token has expired")
        if username is not None and (known.account.username != username or not known.application):
            raise BadToken("this is no application token of that user")
        return known

    @property
    def generation(self) -> int:
        """Grows whenever something changes that a token or session depends on."""
        return self._generation

    def forget(self) -> None:
        """What is remembered of tokens and sessions is looked up again."""
        self._changed()

    def remembers(self, token: str) -> bool:
        """Whether `identify` would answer without asking the database."""
        return token in self._known

    def grant_application(self, username: str, note: str = "") -> str:
        """A token for a program of this user; it lasts until it is revoked. The note says what it is for."""
        self._user(username)
        return self._grant(username, APPLICATION, None, note)

    def tokens(self, username: str) -> list[str]:
        """The user's tokens that are good, written anew from what is kept of them."""
        now = self._clock()
        found = []
        for row in self._rows.tokens(username):
            if row.expires is None or row.expires > now:
                found += [token for key in self._keys if digest(token := sign(row.claims, key)) == row.digest][:1]
        return found

    def revoke(self, token: str, by: Account) -> None:
        """Make a token worthless: one's own; an administrator anybody's. NoSuchToken, Forbidden."""
        row = self._rows.token(digest(token)) if token.isascii() else None
        if row is None:
            raise NoSuchToken("the token was not given out here, or was revoked")
        if row.username != by.username and not by.admin:
            raise Forbidden("this is another user's token")
        self._rows.remove_token(row.digest)
        self._changed()

    # Users

    def account(self, username: str) -> Account:
        """NoSuchUser."""
        return self._view(self._user(username), {group.groupname: group for group in self._rows.groups()})

    def accounts(self) -> list[Account]:
        """All of them, by name."""
        groups = {group.groupname: group for group in self._rows.groups()}
        return [self._view(user, groups) for user in self._rows.users()]

    def create_user(
        self,
        username: str,
        password: str | None,
        *,
        email: str = "",
        virtual_clusters: Sequence[str] = (),
        admin: bool = False,
        extension: Mapping[str, Any] | None = None,
        unix_user: str | None = None,
    ) -> tuple[str, ...]:
        """A new user; what the caller should be warned of. Without a password none opens the account.

        Conflict, BadRequest, NoSuchCluster.
        """
        if not USERNAME.fullmatch(username) or not username.strip("."):
            raise BadRequest("a user name has letters, digits, '_', '.' and '-' only, at most 128")
        if username.lower() in RESERVED:
            raise BadRequest(f"no user is named {username}: /users/{username.lower()} means whoever asks; choose another name")
        _check_texts(email, unix_user)
        hashed = self._hash(password) if password is not None else ""
        with self._store.batch():
            groups = [DEFAULT_GROUP, *([ADMIN_GROUP] if admin else ()), *self._groups_for(virtual_clusters)]
            names = tuple(dict.fromkeys(groups))
            self._check_case(username)
            try:
                self._rows.add_user(
                    User(username, email, hashed, names, _checked_extension(dict(extension or {})), unix_user, self._clock())
                )
            except NameTaken:
                raise Conflict(f"User name {username} already exists.") from None
        self._changed()
        return self.warnings()

    def _check_case(self, username: str) -> None:
        """Nobody is taken for another: names differ by more than capital letters. Those that are there stay."""
        for user in self._rows.users():
            if user.username != username and user.username.lower() == username.lower():
                raise Conflict(f"User name {username} is too near to {user.username}, which exists; choose another name.")

    def warnings(self) -> tuple[str, ...]:
        """What the administrator of the server should know about its users."""
        sharing: dict[str, list[str]] = {}
        for user in self._rows.users():
            unix = self._unix_user(user.username) if self._unix_user else user.unix_user or ""
            if unix is not None:
                sharing.setdefault(unix, []).append(user.username)
        others = len(sharing) > 1
        return tuple(
            NOT_ISOLATED.format(
                _some(names), *((f"Unix user {unix}", "each other") if unix else ("the server's own", "all others"))
            )
            for unix, names in sharing.items()
            if len(names) > 1 or (not unix and others)
        )

    def update_user(
        self,
        username: str,
        *,
        email: str | None = None,
        virtual_clusters: Sequence[str] | None = None,
        admin: bool | None = None,
        password: str | None = None,
        extension: Mapping[str, Any] | None = None,
        unix_user: str | None = None,
        keep: str = "",
    ) -> None:
        """Change what is given; the keys of `extension` are merged. NoSuchUser, NoSuchCluster, BadRequest.

        A new password ends the user's browser tokens, but for the token `keep`; the password that the user has is no new one.
        """
        _check_texts(email, unix_user)
        hashed = self._hash(password) if password is not None and not self._has_password(username, password) else None
        with self._store.batch():
            user = self._user(username)
            changes: dict[str, object] = {}
            if email is not None:
                changes["email"] = email
            if unix_user is not None:
                changes["unix_user"] = unix_user or None
            if extension is not None:
                changes["extension"] = _checked_extension({**user.extension, **extension})
            names = list(user.grouplist)
            if virtual_clusters is not None:
                own = {group.groupname for group in self._rows.groups() if _granted(group, "virtualClusters")}
                others = [name for name in names if name not in own or name == DEFAULT_GROUP]
                names = [*others, *self._groups_for(virtual_clusters)]
            if admin is not None:
                making = {group.groupname for group in self._rows.groups() if _acl(group).get("admin")}
                names = [name for name in names if name not in making] + ([ADMIN_GROUP] if admin else [])
                if not admin:
                    self._check_an_admin_is_left(username)
            changes["grouplist"] = tuple(dict.fromkeys(names))
            if hashed is not None:
                changes["password_hash"] = hashed
                for kind in (BROWSER, SESSION):
                    self._rows.remove_tokens(username, kind, but=digest(keep) if keep else "")
            self._rows.update_user(username, **changes)
        self._changed()

    def change_password(
        self, username: str, new: str, old: str | None, by: Account, address: str = "", *, keep: str = ""
    ) -> None:
        """Whoever knows the old one may; an administrator any user's. The user's browser tokens end, but for `keep`.

        Forbidden; TooManyFailures, since guessing the old one is guessing as any.
        """
        if not by.admin:
            if by.username != username:
                raise Forbidden("only an administrator changes another user's password")
            try:
                self.check_password(username, old or "", address)
            except WrongPassword:
                raise Forbidden("Pre-password is incorrect.") from None
        self.update_user(username, password=new, keep=keep)

    def delete_user(self, username: str) -> None:
        """The user and its tokens; its jobs stay. NoSuchUser, AdminStays."""
        with self._store.batch():
            if self.account(username).admin:
                raise AdminStays(f"Admin {username} is not allowed to remove.")
            self._rows.remove_user(username)
        self._changed()

    def set_groups(self, username: str, groups: Sequence[str]) -> None:
        """NoSuchUser, NoSuchGroup; Forbidden if no administrator would be left."""
        with self._store.batch():
            self._user(username)
            known = {group.groupname: group for group in self._rows.groups()}
            for name in groups:
                if name not in known:
                    raise NoSuchGroup(f"Group {name} is not found.")
            if not any(_acl(known[name]).get("admin") for name in groups):
                self._check_an_admin_is_left(username)
            self._rows.update_user(username, grouplist=tuple(dict.fromkeys(groups)))
        self._changed()

    def join_group(self, username: str, group: str) -> None:
        self.set_groups(username, (*self._user(username).grouplist, group))

    def leave_group(self, username: str, group: str) -> None:
        self.group(group)
        self.set_groups(username, [name for name in self._user(username).grouplist if name != group])

    def set_clusters(self, username: str, clusters: Sequence[str]) -> None:
        """Which virtual clusters a user may use. NoSuchUser, NoSuchCluster; Forbidden: administrators have all."""
        if self.account(username).admin:
            raise Forbidden("Admin's virtual clusters cannot be updated.")
        self.update_user(username, virtual_clusters=clusters)

    # Groups

    def group(self, groupname: str) -> Group:
        """NoSuchGroup."""
        found = self._rows.group(groupname) if GROUPNAME.fullmatch(groupname) else None
        if found is None:
            raise NoSuchGroup(f"Group {groupname[:128]} is not found.")
        return found

    def groups(self) -> list[Group]:
        return self._rows.groups()

    def create_group(
        self, groupname: str, *, description: str = "", external_name: str = "", extension: Mapping[str, Any] | None = None
    ) -> None:
        """Conflict, BadRequest."""
        if not GROUPNAME.fullmatch(groupname):
            raise BadRequest("a group name has letters, digits and '_' only, at most 128")
        _check_texts(description, external_name, lines=True)
        try:
            self._rows.add_group(Group(groupname, description, external_name, _with_acls(extension or {})))
        except NameTaken:
            raise Conflict(f"Group name {groupname} already exists.") from None
        self._changed()

    def update_group(
        self,
        groupname: str,
        *,
        description: str | None = None,
        external_name: str | None = None,
        extension: Mapping[str, Any] | None = None,
    ) -> None:
        """Change what is given; the keys of `extension` are merged. NoSuchGroup, BadRequest."""
        _check_texts(description, external_name, lines=True)
        with self._store.batch():
            group = self.group(groupname)
            changes: dict[str, object] = {}
            if description is not None:
                changes["description"] = description
            if external_name is not None:
                changes["external_name"] = external_name
            if extension is not None:
                changes["extension"] = _with_acls({**group.extension, **extension})
            self._rows.update_group(groupname, **changes)
            self._check_an_admin_is_left(None)
        self._changed()

    def delete_group(self, groupname: str) -> None:
        """The group, also from the lists of its members. NoSuchGroup; Forbidden for what the server itself needs."""
        self.group(groupname)
        if groupname in (DEFAULT_GROUP, ADMIN_GROUP):
            raise Forbidden(f"group {groupname} is not removed: the server needs it")
        with self._store.batch():
            self._rows.remove_group(groupname)
            self._check_an_admin_is_left(None)
        self._changed()

    def members(self, groupname: str) -> list[Account]:
        """Who is in a group; one that is not there has no members, as with OpenPAI."""
        return [account for account in self.accounts() if groupname in account.grouplist]

    def refresh(self) -> None:
        """Virtual clusters have come or gone."""
        self._changed()

    # Parts

    def _changed(self) -> None:
        """What was known of tokens may be wrong now."""
        with self._lock:
            self._generation += 1
            self._known.clear()

    def _user(self, username: str) -> User:
        user = self._rows.user(username) if USERNAME.fullmatch(username) else None
        if user is None:
            raise NoSuchUser(f"User {username[:128]} is not found.")
        return user

    def _view(self, user: User, groups: Mapping[str, Group]) -> Account:
        own = [groups[name] for name in user.grouplist if name in groups]
        admin = any(_acl(group).get("admin") is True for group in own)
        there = tuple(self._clusters())
        granted = [name for group in own for name in _granted(group, "virtualClusters") if name in there]
        storages = [name for group in own for name in _granted(group, "storageConfigs")]
        clusters = there if admin else tuple(dict.fromkeys(granted))
        return Account(
            user.username,
            user.email,
            user.grouplist,
            user.extension,
            admin,
            clusters,
            tuple(dict.fromkeys(storages)),
            user.unix_user,
        )

    def _groups_for(self, clusters: Iterable[str]) -> list[str]:
        """For each virtual cluster the group that gives it; made where there is none."""
        there = self._clusters()
        names = []
        for cluster in clusters:
            if cluster not in there:
                raise NoSuchCluster(f"Virtual cluster {cluster} is not found.")
            group = self._rows.group(cluster)
            if group is None:
                self._rows.add_group(Group(cluster, f"group for vc {cluster}", "", _acls(clusters=[cluster])))
            elif cluster not in _granted(group, "virtualClusters"):
                acls = {**_acl(group), "virtualClusters": [*_granted(group, "virtualClusters"), cluster]}
                self._rows.update_group(cluster, extension={**group.extension, "acls": acls})
            names.append(cluster)
        return names

    def _check_an_admin_is_left(self, without: str | None) -> None:
        """Nobody locks everybody out. Called inside the transaction that would."""
        accounts = self.accounts()
        if accounts and not any(account.admin for account in accounts if account.username != without):
            raise Forbidden("this is the last administrator")

    def _grant(self, username: str, kind: str, life: float | None, note: str = "") -> str:
        now = int(self._clock())
        claims: dict[str, object] = {
            "username": username,
            "application": kind == APPLICATION,
            "jobSpecific": False,
            "encodedFrameworkName": "",
            "jti": token_urlsafe(12),
            "iat": now,
        }
        if note:
            claims["note"] = note
        expires = None
        if life is not None:
            expires = now + int(min(max(life, SHORTEST_LIFE), LONGEST_LIFE))
            claims["exp"] = expires
        token = sign(claims, self._keys[0])
        self._rows.add_token(Token(digest(token), username, kind, now, expires, claims))
        return token

    def check_password(self, username: str, password: str, address: str) -> None:
        """WrongPassword, TooManyFailures. A name that is not there is looked at, counted and refused just as one that is.

        Whoever fails waits: with that name from that address, with that name from anywhere, and from that address with
        whatever name. Where the user has logged in before only the first counts: strangers cannot delay a user there.
        """
        if not self.password_login:
            raise PasswordLoginOff("passwords are not used on this server: sign in at the identity provider (pailot login)")
        now = self._clock()
        there = USERNAME.fullmatch(username) is not None
        place = f"{username}@{address}"
        counted = {"address": f"address:{address}"} if address else {}
        if there:
            counted |= {"name": f"name:{username}", "who": f"who:{place}"}
        known = there and self._rows.knows_place(f"place:{place}")
        held = {"who": counted["who"]} if known else counted
        wait = max((self._wait(kind, who, now) for kind, who in held.items()), default=0.0)
        if wait > 0:
            raise TooManyFailures(wait)
        user = self._rows.user(username) if there else None
        if not self._is_password(user, password):
            with self._store.batch():
                for who in counted.values():
                    self._rows.note_failure(who, now)
            raise WrongPassword("Password is incorrect.")
        with self._store.batch():
            self._rows.clear_failures(counted["who"])
            self._rows.clear_failures(counted["name"])
            self._rows.note_place(f"place:{place}", now)

    def _wait(self, kind: str, who: str, now: float) -> float:
        """Seconds until a log-in is looked at again: none at first, then 1, 2, 4, … since the last failure."""
        failed = self._rows.failures(who)
        too_many = failed.count - FREE_FAILURES[kind]
        if too_many < 0 or now - failed.last > FORGOTTEN_AFTER:
            if failed.count and now - failed.last > FORGOTTEN_AFTER:
                self._rows.clear_failures(who)
            return 0
        return max(0.0, failed.last + min(LONGEST_WAIT, 2.0 ** min(too_many, 16)) - now)

    def _hash(self, password: str) -> str:
        if len(password) < SHORTEST_PASSWORD:
            raise BadRequest(f"a password has at least {SHORTEST_PASSWORD} characters")
        if len(password.encode(errors="surrogatepass")) > LONGEST_PASSWORD:
            raise BadRequest(f"a password has at most {LONGEST_PASSWORD} bytes")
        return _hasher().hash(password.encode(errors="surrogatepass"))

    def _has_password(self, username: str, password: str) -> bool:
        """Whether this is the user's password already. Only for who may set it: nothing is counted."""
        user = self._user(username)
        return bool(user.password_hash) and self._is_password(user, password)

    def _is_password(self, user: User | None, password: str) -> bool:
        """Takes the same time where there is no such user, or one without a password."""
        data = password.encode(errors="surrogatepass")
        if len(data) > LONGEST_PASSWORD:
            return False
        hasher = _hasher()
        from argon2.exceptions import InvalidHashError, VerificationError

        kept = user.password_hash if user is not None and user.password_hash.startswith("$argon2") else _hash_of_nothing()
        try:
            hasher.verify(kept, data)
        except (VerificationError, InvalidHashError):
            return False
        if user is None:
            return False
        if hasher.check_needs_rehash(kept):
            self._rows.update_user(user.username, password_hash=hasher.hash(data))
        return True


def _hash_of_nothing() -> str:
    """A hash that no password has, and that costs as much to compare with as any."""
    return f"$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}${'A' * 22}${'A' * 43}"


def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher
    except ImportError:
        raise TeamError(f"to keep passwords install argon2-cffi: {install_line('server')}") from None
    return PasswordHasher(time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=LANES)


def _some(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _checked_extension(extension: dict[str, object]) -> dict[str, object]:
    """Not more than a user needs: a list of users shows all of them at once."""
    if len(json.dumps(extension)) > LARGEST_EXTENSION:
        raise BadRequest(f"the extension of a user may have {LARGEST_EXTENSION} bytes, no more")
    return extension


def _check_texts(*texts: str | None, lines: bool = False) -> None:
    """What goes into a mail or a command has no line ends; a description may."""
    for text in texts:
        plain = "".join(text.split("\n")) if text and lines else text
        if plain and (not plain.isprintable() or len(plain) > LONGEST_TEXT):
            raise BadRequest(f"an address, a description or a name has at most {LONGEST_TEXT} printable characters")


def _acls(*, admin: bool = False, clusters: Sequence[str] = ()) -> dict[str, Any]:
    return {"acls": {"admin": admin, "virtualClusters": list(clusters), "storageConfigs": []}}


def _with_acls(extension: Mapping[str, Any]) -> dict[str, object]:
    """Completed with what OpenPAI's groups always have. BadRequest where it is not of that shape."""
    acls = extension.get("acls", {})
    if not isinstance(acls, dict) or not isinstance(acls.get("admin", False), bool):
        raise BadRequest("extension.acls is a mapping, and its admin true or false")
    for key in ("virtualClusters", "storageConfigs"):
        names = acls.get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise BadRequest(f"extension.acls.{key} is a list of names")
    return {**extension, "acls": {**_acls()["acls"], **acls}}


def _acl(group: Group) -> Mapping[str, Any]:
    acls = group.extension.get("acls")
    return acls if isinstance(acls, dict) else {}


def _granted(group: Group, key: str) -> list[str]:
    names = _acl(group).get(key)
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
