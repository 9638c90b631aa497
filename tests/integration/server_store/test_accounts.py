"""Users, groups, tokens and log-ins, by the rules of the service, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pailot.jobserver import accounts as rules
from pailot.jobserver.accounts import Account, Accounts, NoSuchGroup, NoSuchUser, TooManyFailures, WrongPassword
from pailot.jobserver.errors import BadRequest, Conflict, Forbidden
from pailot.store.server import ServerStore, User
from pailot.store.server.tokens import BadToken, TokenKeys, digest, sign


class Clock:
    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def people(store: ServerStore, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Accounts:
    monkeypatch.setattr(rules, "MEMORY_KIB", 64)  # hashing as such is not tested here
    made = Accounts(store, str(tmp_path), lambda: ("default", "research", "vision"), clock)
    made.prepare("admin-password")
    return made


def test_the_first_start(store: ServerStore, tmp_path: Path) -> None:
    people = Accounts(store, str(tmp_path))
    password = people.prepare()
    assert password
    assert len(password) >= 16
    assert people.prepare() is None
    account = people.account("admin")
    assert account.admin
    assert account.virtual_clusters == ("default",)
    assert account.grouplist == ("default", "admingroup")
    token, _ = people.login("admin", password)
    assert people.identify(token).account == account
    kept = store.accounts.user("admin")
    assert kept
    assert kept.password_hash.startswith("$argon2id$v=19$m=19456,t=2,p=1$")


def test_nothing_usable_is_kept(store: ServerStore, people: Accounts) -> None:
    browser, _ = people.login("admin", "admin-password")
    application = people.grant_application("admin")
    rows = str(store.database.read("SELECT * FROM tokens")) + str(store.database.read("SELECT * FROM users"))
    for secret in (browser, application, browser.rpartition(".")[2], application.rpartition(".")[2], "admin-password"):
        assert secret not in rows
    assert sorted(people.tokens("admin")) == sorted([browser, application])
    assert "exp" not in people.identify(application).claims
    assert people.identify(application).claims["application"] is True


def test_tokens_end(people: Accounts, clock: Clock) -> None:
    token, admin = people.login("admin", "admin-password", expires_in=100)
    assert people.identify(token).account == admin
    clock.now += 99
    people.identify(token)
    clock.now += 1
    with pytest.raises(BadToken, match="expired"):
        people.identify(token)
    assert people.tokens("admin") == []
    other, _ = people.login("admin", "admin-password")
    people.identify(other)
    people.revoke(other, admin)
    with pytest.raises(BadToken, match="revoked"):
        people.identify(other)
    with pytest.raises(rules.NoSuchToken):
        people.revoke(other, admin)
    with pytest.raises(rules.NoSuchToken):
        people.revoke("garbage", admin)


def test_a_token_that_was_never_given_out(people: Accounts, tmp_path: Path) -> None:
    forged = sign({"username": "admin", "application": True}, TokenKeys(str(tmp_path)).keys()[0])
    with pytest.raises(BadToken, match="revoked"):
        people.identify(forged)


def test_keys_of_tokens_can_be_changed(store: ServerStore, people: Accounts, tmp_path: Path) -> None:
    old = people.grant_application("admin")
    TokenKeys(str(tmp_path)).add_key()
    after = Accounts(store, str(tmp_path))
    after.identify(old)
    assert after.tokens("admin") == [old]
    TokenKeys(str(tmp_path)).drop_old_keys()
    last = Accounts(store, str(tmp_path))
    with pytest.raises(BadToken, match="not signed here"):
        last.identify(old)
    assert last.tokens("admin") == []


def test_basic_authentication_is_for_applications(people: Accounts) -> None:
    people.create_user("ann", "password")
    application = people.grant_application("ann")
    browser, _ = people.login("ann", "password")
    assert people.identify(application, "ann").application
    for token, name in ((application, "bob"), (browser, "ann")):
        with pytest.raises(BadToken):
            people.identify(token, name)


def test_users(people: Accounts) -> None:
    [warning] = people.create_user("ann", "password", email="a@b.c", virtual_clusters=["research"])
    assert "users are not isolated from each other: the tasks of admin, ann run as" in warning
    ann = people.account("ann")
    assert ann == Account("ann", "a@b.c", ("default", "research"), {}, False, ("default", "research"), ())
    with pytest.raises(Conflict):
        people.create_user("ann", "password")
    for name in ("", "a b", "a/b", "ä", "..", "x" * 129, "a~b", "a\n"):
        with pytest.raises(BadRequest):
            people.create_user(name, "password")
    for password in ("12345", "x" * 2000):
        with pytest.raises(BadRequest):
            people.create_user("eve", password)
    with pytest.raises(rules.NoSuchCluster):
        people.create_user("eve", "password", virtual_clusters=["none"])
    with pytest.raises(NoSuchUser):
        people.account("eve")
    assert [account.username for account in people.accounts()] == ["admin", "ann"]
    people.update_user("ann", email="new", extension={"a": 1})
    people.update_user("ann", extension={"b": 2}, virtual_clusters=["vision"])
    ann = people.account("ann")
    assert (ann.email, ann.extension) == ("new", {"a": 1, "b": 2})
    assert ann.virtual_clusters == ("default", "vision")
    people.update_user("ann", admin=True)
    assert people.account("ann").virtual_clusters == ("default", "research", "vision")
    with pytest.raises(rules.AdminStays):
        people.delete_user("ann")
    with pytest.raises(rules.AdminStays):
        people.set_clusters("ann", ["research"])
    people.update_user("ann", admin=False)
    people.set_clusters("ann", ["research"])
    assert people.account("ann").virtual_clusters == ("default", "research")
    people.delete_user("ann")
    with pytest.raises(NoSuchUser):
        people.delete_user("ann")


def test_users_of_their_own_are_no_warning(people: Accounts) -> None:
    assert people.warnings() == ()
    people.update_user("admin", unix_user="root")
    assert people.create_user("ann", "password", unix_user="ann") == ()
    (warning,) = people.create_user("bob", "password", unix_user="ann")
    assert "users are not isolated from each other: the tasks of ann, bob run as Unix user ann" in warning


def test_whoever_says_as_whom_tasks_run(store: ServerStore, tmp_path: Path, people: Accounts) -> None:
    people.create_user("ann", "password", unix_user="ann")
    people.create_user("eve", "password")
    ways: list[tuple[Callable[[str], str | None], bool]] = [
        (lambda name: "", True),
        (lambda name: name, False),
        (lambda name: "nobody", True),
        (lambda name: name if name == "ann" else None, False),  # others have no tasks
        (lambda name: name if name == "ann" else "" if name == "eve" else None, True),  # eve is the server itself
    ]
    for unix, warned in ways:
        assert bool(Accounts(store, str(tmp_path), unix_user=unix).warnings()) == warned


def test_a_user_who_is_gone_has_no_tokens(people: Accounts) -> None:
    people.create_user("ann", "password")
    token = people.grant_application("ann")
    people.identify(token)
    people.delete_user("ann")
    with pytest.raises(BadToken):
        people.identify(token)
    people.create_user("ann", "password")
    with pytest.raises(BadToken):
        people.identify(token)


def test_passwords(people: Accounts) -> None:
    people.create_user("ann", "password")
    people.create_user("bob", "password")
    browser, ann = people.login("ann", "password")
    application = people.grant_application("ann")
    with pytest.raises(Forbidden):
        people.change_password("ann", "new-password", "wrong", ann)
    with pytest.raises(Forbidden):
        people.change_password("bob", "new-password", "password", ann)
    people.change_password("ann", "new-pässword", "password", ann)
    with pytest.raises(BadToken):
        people.identify(browser)
    people.identify(application)
    with pytest.raises(WrongPassword):
        people.login("ann", "password")
    people.login("ann", "new-pässword")
    people.change_password("ann", "by-admin", None, people.account("admin"))
    people.login("ann", "by-admin")


def test_an_old_hash_is_made_anew(store: ServerStore, people: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    before = store.accounts.user("admin")
    monkeypatch.setattr(rules, "MEMORY_KIB", 128)
    people.login("admin", "admin-password")
    after = store.accounts.user("admin")
    assert before
    assert after
    assert "m=64," in before.password_hash
    assert "m=128," in after.password_hash
    store.accounts.add_user(User("broken", password_hash="nonsense"))
    store.accounts.add_user(User("none"))
    for name in ("broken", "none"):
        with pytest.raises(WrongPassword):
            people.login(name, "")


def test_guessing_is_slowed_down(people: Accounts, clock: Clock) -> None:
    for _ in range(5):
        with pytest.raises(WrongPassword):
            people.login("admin", "wrong-one", address="10.0.0.1")
    with pytest.raises(TooManyFailures) as refused:
        people.login("admin", "admin-password", address="10.0.0.1")
    assert 0 < refused.value.seconds <= 1
    people.login("admin", "admin-password", address="10.0.0.2")
    clock.now += 1
    with pytest.raises(WrongPassword):
        people.login("admin", "wrong-one", address="10.0.0.1")
    with pytest.raises(TooManyFailures) as refused:
        people.login("admin", "admin-password", address="10.0.0.1")
    assert 1 < refused.value.seconds <= 2
    clock.now += 2
    people.login("admin", "admin-password", address="10.0.0.1")
    with pytest.raises(WrongPassword):
        people.login("admin", "wrong-one", address="10.0.0.1")
    people.login("admin", "admin-password", address="10.0.0.1")


def test_guessing_names_is_slowed_down(store: ServerStore, people: Accounts, clock: Clock) -> None:
    for number in range(50):
        with pytest.raises(NoSuchUser):
            people.login(f"nobody{number}", "password", address="10.0.0.1")
    with pytest.raises(TooManyFailures):
        people.login("nobody", "password", address="10.0.0.1")
    assert store.database.read("SELECT count(*) FROM login_failures") == [(1,)], "names that are not there take no room"
    clock.now += 3600
    with pytest.raises(NoSuchUser):
        people.login("nobody", "password", address="10.0.0.1")
    assert store.accounts.failures("address:10.0.0.1").count == 1


def test_groups(people: Accounts) -> None:
    people.create_user("ann", "password")
    people.create_group(
        "lab", description="d", extension={"acls": {"virtualClusters": ["vision"], "storageConfigs": ["nfs"]}, "x": 1}
    )
    assert people.group("lab").extension == {
        "acls": {"admin": False, "virtualClusters": ["vision"], "storageConfigs": ["nfs"]},
        "x": 1,
    }
    people.join_group("ann", "lab")
    assert people.account("ann").virtual_clusters == ("default", "vision")
    assert people.account("ann").storages == ("nfs",)
    assert [account.username for account in people.members("lab")] == ["ann"]
    people.update_group("lab", description="two\nlines", external_name="e", extension={"y": 2})
    with pytest.raises(BadRequest):
        people.update_user("ann", email="a@b\nBcc: c@d")
    assert people.group("lab").extension["x"] == 1
    people.leave_group("ann", "lab")
    assert people.account("ann").virtual_clusters == ("default",)
    people.set_groups("ann", ["lab"])
    people.delete_group("lab")
    assert people.account("ann").grouplist == ()
    with pytest.raises(NoSuchGroup):
        people.set_groups("ann", ["lab"])
    with pytest.raises(NoSuchGroup):
        people.group("lab")
    with pytest.raises(Conflict):
        people.create_group("default")
    for name in ("a-b", "", "ä"):
        with pytest.raises(BadRequest):
            people.create_group(name)
    for acls in (7, {"admin": "yes"}, {"virtualClusters": "vision"}, {"storageConfigs": [1]}):
        with pytest.raises(BadRequest):
            people.create_group("other", extension={"acls": acls})
    for needed in ("default", "admingroup"):
        with pytest.raises(Forbidden):
            people.delete_group(needed)


def test_somebody_stays_administrator(people: Accounts) -> None:
    people.create_user("ann", "password")
    with pytest.raises(Forbidden, match="last administrator"):
        people.update_user("admin", admin=False)
    with pytest.raises(Forbidden, match="last administrator"):
        people.set_groups("admin", ["default"])
    with pytest.raises(Forbidden, match="last administrator"):
        people.update_group("admingroup", extension={"acls": {"admin": False}})
    assert people.account("admin").admin
    people.update_user("ann", admin=True)
    people.update_user("admin", admin=False)
    assert not people.account("admin").admin


def test_a_change_of_groups_is_seen_at_once(people: Accounts) -> None:
    people.create_user("ann", "password")
    token, _ = people.login("ann", "password")
    assert not people.identify(token).account.admin
    people.update_user("ann", admin=True)
    assert people.identify(token).account.admin
    assert digest(token) != token


@pytest.mark.parametrize("text", ["\0", "\ud800", "a" * 2000, "line\rbreak"])
def test_texts_that_cannot_be_kept(people: Accounts, text: str) -> None:
    people.create_user("ann", "password")
    admin = people.account("admin")
    with pytest.raises(NoSuchUser):
        people.login(text, text, address="10.0.0.1")
    with pytest.raises(NoSuchUser):
        people.account(text)
    with pytest.raises(NoSuchGroup):
        people.group(text)
    with pytest.raises(NoSuchGroup):
        people.set_groups("ann", [text])
    with pytest.raises(rules.NoSuchCluster):
        people.set_clusters("ann", [text])
    with pytest.raises(rules.NoSuchToken):
        people.revoke(text, admin)
    with pytest.raises(BadToken):
        people.identify(text)
    with pytest.raises(BadRequest):
        people.update_user("ann", email=text)
    with pytest.raises(BadRequest):
        people.create_user("bob", "password", email=text)
    with pytest.raises(BadRequest):
        people.create_group("lab", description=text)
    with pytest.raises(BadRequest):
        people.update_group("default", external_name=text)
    people.update_user("ann", extension={"note": text})
    assert people.account("ann").extension == {"note": text}
