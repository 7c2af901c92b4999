"""Users, sessions and keys in an access file: what is kept, what ends, and what is refused."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.accounts.accounts import SESSION_SECONDS, Accounts, Actor, ExpiredKey, KeyOptions, checked_origin
from levada.accounts.records import NOBODY, Right
from levada.core.errors import LevadaError, NotFound, StoreDamaged, UsageError

BY = Actor("tester", "command line", "here")
PASSWORD = "correct horse battery"


class Now:
    at = 1_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def accounts(tmp_path: Path, now: Now) -> Iterator[Accounts]:
    made = Accounts(tmp_path / "access.db", now)
    yield made
    made.close()


def test_nothing_is_written_before_the_first_is_added(accounts: Accounts) -> None:
    assert (accounts.exist, accounts.users(), accounts.keys(), accounts.log()) == (False, [], [], [])
    assert accounts.key("lv_x") is NOBODY
    assert accounts.user_of_session("x") is NOBODY
    accounts.record(BY, "looked", "")
    assert not accounts.path.exists()


def test_a_password_opens_a_session_and_only_the_right_one(accounts: Accounts) -> None:
    accounts.add_user("Ada", "editor", BY, password=PASSWORD)
    session = accounts.log_in("ada", PASSWORD, "client")
    assert session is not None
    asker = accounts.user_of_session(session)
    assert (asker.kind, asker.name, asker.role) == ("user", "Ada", "editor")
    assert Right.CONTROL in asker.rights
    assert Right.ADMIN not in asker.rights
    for name, password in (("ada", "wrong"), ("ada", ""), ("bob", PASSWORD), ("", "")):
        assert accounts.log_in(name, password, "client") is None
    assert accounts.user_of_session(f"{session}x") is NOBODY
    assert [line.outcome for line in accounts.log(2)] == ["wrong name or password"] * 2


def test_who_has_no_password_cannot_log_in_with_one(accounts: Accounts) -> None:
    accounts.add_user("eve", "reader", BY, openid="Eve@example.org")
    assert accounts.log_in("eve", "", "client") is None
    assert accounts.log_in_identity(["eve@example.org"], "client") is not None
    assert accounts.log_in_identity([""], "client") is None
    assert accounts.log_in_identity(["other"], "client") is None


def test_sessions_end_with_time_with_the_password_and_with_the_user(accounts: Accounts, now: Now) -> None:
    accounts.add_user("ada", "admin", BY, password=PASSWORD)

    def opened() -> str:
        return accounts.log_in("ada", PASSWORD, "client") or ""

    timed, changed = opened(), opened()
    assert accounts.user("ada").sessions == 2
    now.at += SESSION_SECONDS
    assert accounts.user_of_session(timed) is NOBODY
    changed = opened()
    accounts.set_password("ada", f"{PASSWORD}!", BY)
    assert accounts.user_of_session(changed) is NOBODY
    left = accounts.log_in("ada", f"{PASSWORD}!", "client") or ""
    accounts.end_session(left, "client")
    assert accounts.user_of_session(left) is NOBODY
    removed = accounts.log_in("ada", f"{PASSWORD}!", "client") or ""
    accounts.remove_user("ada", BY)
    assert accounts.user_of_session(removed) is NOBODY
    accounts.add_user("ada", "reader", BY, password=PASSWORD)
    assert accounts.user_of_session(removed) is NOBODY  # of another ada


def test_only_hashes_are_kept_and_only_the_owner_may_read(accounts: Accounts) -> None:
    accounts.add_user("ada", "admin", BY, password=PASSWORD)
    session = accounts.log_in("ada", PASSWORD, "client") or ""
    _, secret = accounts.add_key("deploy", KeyOptions(scopes=["control"]), BY)
    files = sorted(accounts.path.parent.iterdir())
    kept = b"".join(each.read_bytes() for each in files)
    for hidden in (PASSWORD, session, secret):
        assert hidden.encode() not in kept
    assert b"$argon2id$" in kept
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}


def test_a_key_works_until_it_expires_or_is_revoked(accounts: Accounts, now: Now) -> None:
    info, secret = accounts.add_key("reports", KeyOptions(scopes=["search", "metrics"], seconds=60.0), BY)
    assert (info.rate, info.results, info.expired) == (0, 0, False)
    assert accounts.key(secret).rights == {Right.SEARCH, Right.METRICS}
    now.at += 60.0
    with pytest.raises(ExpiredKey, match=r"the key 'reports' expired at 1970-01-01T00:17:40\.000Z"):
        accounts.key(secret)
    assert accounts.keys()[0].expired
    accounts.revoke_key("Reports", BY)
    assert accounts.key(secret) is NOBODY
    with pytest.raises(NotFound, match="there is no key reports: none was added yet"):
        accounts.revoke_key("reports", BY)


def test_a_key_that_only_searches_has_limits_unless_others_are_named(accounts: Accounts) -> None:
    usual, _ = accounts.add_key("usual", KeyOptions(), BY)
    named, _ = accounts.add_key("named", KeyOptions(rate=0, results=7), BY)
    assert (usual.rate, usual.results) == (120, 50)
    assert (named.rate, named.results) == (0, 7)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda a: a.add_user("a b", "reader", BY, password=PASSWORD), "'a b' cannot name a user"),
        (lambda a: a.add_user("ada", "king", BY, password=PASSWORD), 'no role "king": choose reader, editor, admin'),
        (lambda a: a.add_user("ada", "reader", BY), "ada needs a password"),
        (lambda a: a.add_user("ada", "reader", BY, password="short"), "10 to 1,000 characters, not 5"),
        (lambda a: a.add_user("Bob", "reader", BY, password=PASSWORD), "there is a user Bob already"),
        (lambda a: a.add_user("eve", "reader", BY, openid="BOB@x"), "another user has the identity BOB@x"),
        (lambda a: a.set_role("ada", "reader", BY), "there is no user ada: there is bob"),
        (lambda a: a.set_role("bob", "", BY), "there is no role"),
        (lambda a: a.add_key("k", KeyOptions(scopes=[]), BY), "a key needs a scope"),
        (lambda a: a.add_key("k", KeyOptions(scopes=["all"]), BY), 'there is no scope "all"'),
        (lambda a: a.add_key("k", KeyOptions(origins=["blog"]), BY), "'blog' is no origin"),
        (lambda a: a.add_key("k", KeyOptions(seconds=0), BY), "expires in the future"),
        (lambda a: a.add_key("taken", KeyOptions(), BY), "there is a key taken already"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(accounts: Accounts, call: object, words: str) -> None:
    accounts.add_user("bob", "reader", BY, openid="bob@x")
    accounts.add_key("taken", KeyOptions(), BY)
    before = accounts.log()
    with pytest.raises(LevadaError, match=words.replace("(", r"\(")):
        call(accounts)  # type: ignore[operator]
    assert accounts.log() == before


def test_a_damaged_file_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "access.db"
    path.write_bytes(b"this is no database" * 500)
    with pytest.raises(StoreDamaged, match="nobody can log in: restore a copy, or move it away"):
        _ = Accounts(path).has_users


def test_two_processes_see_each_others_changes(accounts: Accounts, tmp_path: Path, now: Now) -> None:
    other = Accounts(tmp_path / "access.db", now)
    _, secret = accounts.add_key("deploy", KeyOptions(), BY)
    assert other.key(secret).name == "deploy"
    other.revoke_key("deploy", BY)
    assert accounts.key(secret) is NOBODY
    other.close()


@pytest.mark.parametrize(
    ("typed", "origin"),
    [
        ("https://Blog.Example", "https://blog.example"),
        ("https://blog.example/", "https://blog.example"),
        ("https://blog.example:443", "https://blog.example"),
        ("http://blog.example:443", "http://blog.example:443"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
    ],
)
def test_an_origin_is_kept_as_browsers_send_it(typed: str, origin: str) -> None:
    assert checked_origin(typed) == origin


@given(st.text(max_size=30))
def test_what_is_no_origin_is_refused_in_a_sentence(text: str) -> None:
    try:
        origin = checked_origin(f"https://{text}")
    except UsageError:
        return
    assert origin.isascii()
    assert checked_origin(origin) == origin
