"""Closed by default: who is let in, and who is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.accounts.records import Role
from levada.core.errors import UsageError
from levada.serve.access import Access, AccessRefusal, Tokens
from levada.serve.server import listen

ADMIN, READER = "the-admin-token", "the-reader-token"
BOTH = Tokens(ADMIN, READER)
HERE = {"host": "127.0.0.1:8400"}


class Hands:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def access(tokens: Tokens = BOTH, names: frozenset[str] = frozenset()) -> tuple[Access, Hands]:
    hands = Hands()
    return Access(tokens, names, hands), hands


def bearer(token: str) -> dict[str, str]:
    return {**HERE, "authorization": f"Bearer {token}"}


def status(refused: AccessRefusal | None) -> int:
    return refused.status if refused else 200


@pytest.mark.parametrize("host", ["127.0.0.1:8400", "127.0.0.1", "localhost:1", "[::1]:8400", "LOCALHOST", "10.1.2.3"])
def test_addresses_and_localhost_are_this_server(host: str) -> None:
    door, _ = access(Tokens())
    assert door.refusal("GET", "/", {"host": host}, "c") is None


@pytest.mark.parametrize("host", ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[", "::1"])
def test_another_host_name_is_refused_even_for_health(host: str) -> None:
    door, _ = access(Tokens())
    assert status(door.refusal("GET", "/", {"host": host}, "c")) == 403
    assert status(door.refusal("GET", "/api/v1/health", {"host": host}, "c")) == 403


def test_a_name_that_was_given_is_this_server() -> None:
    door, _ = access(Tokens(), frozenset({"levada.example"}))
    assert door.refusal("GET", "/", {"host": "Levada.Example:8400"}, "c") is None


@given(st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"]), st.text(max_size=20))
def test_without_a_token_only_health_is_open(method: str, path: str) -> None:
    door, _ = access()
    asked = door.refusal(method, f"/{path}", HERE, "c")
    assert status(asked) == 401 or (method, path) == ("POST", "login")
    assert door.refusal("GET", "/api/v1/health", HERE, "c") is None


def test_a_reader_reads_and_an_admin_changes() -> None:
    door, _ = access()
    assert door.refusal("GET", "/api/v1/sites", bearer(READER), "c") is None
    assert status(door.refusal("POST", "/api/v1/pause", bearer(READER), "c")) == 403
    assert door.refusal("POST", "/api/v1/pause", bearer(ADMIN), "c") is None


@given(st.text(max_size=40))
def test_no_other_token_is_let_in(token: str) -> None:
    assert (BOTH.role(token) is Role.NOBODY) == (token not in (ADMIN, READER))
    assert Tokens().role(token) is Role.NOBODY


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://127.0.0.1:9999"},
    ],
)
def test_a_page_of_another_site_changes_nothing(headers: dict[str, str]) -> None:
    door, _ = access(Tokens())
    assert status(door.refusal("POST", "/api/v1/pause", HERE | headers, "c")) == 403
    assert door.refusal("GET", "/api/v1/sites", HERE | headers, "c") is None  # a browser keeps the answer from it


def test_our_own_page_and_programs_may_change_things_on_the_loopback() -> None:
    door, _ = access(Tokens())
    page = {"origin": "http://127.0.0.1:8400", "sec-fetch-site": "same-origin"}
    assert door.refusal("POST", "/api/v1/pause", HERE | page, "c") is None
    assert door.refusal("POST", "/api/v1/pause", HERE, "c") is None


def test_whoever_guesses_is_slowed_down_and_others_are_not() -> None:
    door, hands = access()
    answers = [status(door.refusal("GET", "/", bearer(f"guess {n}"), "guesser")) for n in range(8)]
    assert answers[:5] == [401] * 5
    assert answers[5:] == [429] * 3
    assert door.refusal("GET", "/", bearer(READER), "someone else") is None
    assert status(door.refusal("GET", "/", bearer(READER), "guesser")) == 429  # the right one too, or it is told
    hands.at += 60.0
    assert door.refusal("GET", "/", bearer(READER), "guesser") is None
    assert status(door.refusal("GET", "/", bearer("guess again"), "guesser")) == 401


def test_asking_without_a_token_is_no_guess() -> None:
    door, _ = access()
    assert {status(door.refusal("GET", "/", HERE, "c")) for _ in range(50)} == {401}


def test_a_session_carries_its_role_until_it_ends() -> None:
    door, hands = access()
    session = door.log_in(READER, "c")
    assert isinstance(session, str)
    cookie = {**HERE, "cookie": f"levada_session={session}"}
    assert door.refusal("GET", "/", cookie, "c") is None
    assert status(door.refusal("POST", "/api/v1/pause", cookie, "c")) == 403
    hands.at += 13 * 3600.0
    assert status(door.refusal("GET", "/", cookie, "c")) == 401


@pytest.mark.parametrize("token", [ADMIN, READER])
def test_logging_out_ends_the_session(token: str) -> None:
    door, _ = access()
    session = door.log_in(token, "c")
    cookie = {**HERE, "cookie": f"levada_session={session}"}
    assert status(door.refusal("POST", "/logout", cookie | {"origin": "http://evil.example"}, "c")) == 403
    assert door.refusal("POST", "/logout", cookie, "c") is None
    door.log_out(cookie)
    assert status(door.refusal("GET", "/", cookie, "c")) == 401


def test_logging_in_is_slowed_down_too() -> None:
    door, _ = access()
    tries = [door.log_in("wrong", "c") for _ in range(7)]
    assert [each.status for each in tries if isinstance(each, AccessRefusal)] == [401] * 5 + [429] * 2
    assert isinstance(door.log_in(ADMIN, "c"), AccessRefusal)  # even the right one, for now


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_beyond_the_loopback_it_does_not_start_without_a_token(host: str) -> None:
    with pytest.raises(UsageError, match="a token is needed"):
        listen(host, 0, Tokens())


@pytest.mark.parametrize("token", ["x", "fifteen-letters"])
def test_beyond_the_loopback_a_token_must_be_long(token: str) -> None:
    with pytest.raises(UsageError, match="at least 16 characters"):
        listen("0.0.0.0", 0, Tokens(token))
    with pytest.raises(UsageError, match="at least 16 characters"):
        listen("0.0.0.0", 0, Tokens("a token that is long enough", token))
    listen("127.0.0.1", 0, Tokens(token)).close()


@pytest.mark.parametrize("host", ["[::1].evil.example", "[::1]evil.example:8400", "[::1"])
def test_a_name_that_begins_like_an_address_is_none(host: str) -> None:
    door, _ = access()
    assert status(door.refusal("GET", "/", {"host": host}, "c")) == 403
