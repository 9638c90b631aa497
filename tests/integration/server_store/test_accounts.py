"""Users, groups, tokens and log-ins, by the rules of the service, on both databases."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
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
    with pytest.raises(Forbidden, match="Admin's virtual clusters cannot be updated"):
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


def guess(people: Accounts, names: Iterable[str], address: str, clock: Clock) -> None:
    """Log-ins that fail, each as soon as it is looked at."""
    for name in names:
        try:
            people.login(name, "wrong-one", address=address)
        except TooManyFailures as error:
            clock.now += error.seconds
            with pytest.raises(WrongPassword):
                people.login(name, "wrong-one", address=address)
        except WrongPassword:
            pass


def test_guessing_names_is_slowed_down(store: ServerStore, people: Accounts, clock: Clock) -> None:
    for number in range(50):
        with pytest.raises(WrongPassword):
            people.login(f"nobody{number}", "password", address="10.0.0.1")
    with pytest.raises(TooManyFailures):
        people.login("nobody", "password", address="10.0.0.1")
    clock.now += 3600
    with pytest.raises(WrongPassword):
        people.login("nobody", "password", address="10.0.0.1")
    assert store.accounts.failures("address:10.0.0.1").count == 1


def test_who_has_been_here_before_is_not_held_up_by_others(store: ServerStore, people: Accounts, clock: Clock) -> None:
    """Behind a proxy that is not trusted all have its address."""
    people.create_user("ann", "password")
    people.login("admin", "admin-password", address="10.0.0.1")
    guess(people, [f"nobody{number}" for number in range(55)], "10.0.0.1", clock)
    with pytest.raises(TooManyFailures):
        people.login("ann", "password", address="10.0.0.1")
    people.login("admin", "admin-password", address="10.0.0.1")
    people.login("ann", "password", address="10.0.0.2")
    for number in range(60):  # the name is guessed from everywhere
        guess(people, ["ann"], f"10.1.0.{number}", clock)
    with pytest.raises(TooManyFailures):
        people.login("ann", "password", address="10.0.0.3")
    people.login("ann", "password", address="10.0.0.2")
    # Guessing there is slow all the same.
    guess(people, ["admin"] * 5, "10.0.0.1", clock)
    with pytest.raises(TooManyFailures):
        people.login("admin", "admin-password", address="10.0.0.1")
    # And a place is not remembered for ever.
    store.accounts.forget_failures(clock.now, clock.now - 1e6)
    assert store.accounts.knows_place("place:ann@10.0.0.2")
    assert not store.accounts.failures("name:ann").count
    store.accounts.forget_failures(clock.now + 1, clock.now + 1)
    assert not store.accounts.knows_place("place:ann@10.0.0.2")


def test_names_that_are_there_and_names_that_are_not_look_alike(people: Accounts, clock: Clock) -> None:
    people.create_user("ann", "password")

    def seen(name: str) -> list[str]:
        found = []
        for number in range(60):
            try:
                people.login(name, "wrong-one", address=f"10.0.{name == 'ann'}.{number // 7}")
            except (WrongPassword, TooManyFailures) as error:
                found.append(f"{type(error).__name__}: {error}")
            clock.now += 0.1
        return found

    assert seen("ann") == seen("nobody")


def test_a_name_that_is_not_there_costs_as_much(people: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MEMORY_KIB", 19 * 1024)
    people.create_user("ann", "password")

    def cost(name: str) -> float:
        least = math.inf
        for number in range(5):
            began = time.process_time()
            with pytest.raises(WrongPassword):
                people.login(name, "wrong-one", address=f"10.0.0.{number}")
            least = min(least, time.process_time() - began)
        return least

    known = cost("ann")
    assert cost("nobody") > known / 2
    assert cost("no body") > known / 2, "nor does one that cannot be"


def test_guessing_the_old_password_is_slowed_down(people: Accounts) -> None:
    people.create_user("ann", "password")
    ann = people.account("ann")
    for _ in range(5):
        with pytest.raises(Forbidden):
            people.change_password("ann", "new-password", "wrong-one", ann, "10.0.0.1")
    with pytest.raises(TooManyFailures):
        people.change_password("ann", "new-password", "password", ann, "10.0.0.1")
    for name in ("admin", "nobody"):
        with pytest.raises(Forbidden, match="only an administrator"):
            people.change_password(name, "new-password", "password", ann)


def test_nobody_is_taken_for_another(store: ServerStore, people: Accounts) -> None:
    for name in ("Admin", "ADMIN"):
        with pytest.raises(Conflict, match="too near to admin"):
            people.create_user(name, "password")
    for name in ("me", "Me"):
        with pytest.raises(BadRequest, match="choose another name"):
            people.create_user(name, "password")
    store.accounts.add_user(User("Ann", password_hash=people._hash("password")))  # as they could be made before
    store.accounts.add_user(User("ann", password_hash=people._hash("password")))
    for name in ("ann", "Ann"):
        assert people.login(name, "password")[1].username == name
    people.create_user("anna", "password")


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
    with pytest.raises(WrongPassword):
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
