"""Cookies of a site: what goes back, and where."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.fetch.cookies import KeptSession, SiteCookies, read_session, session_file, session_files, write_session
from levada.testing.common import properties

OWN = "https://www.a.test/shop/cart"


def after(*lines: str, url: str = OWN, plain_http: bool = False) -> SiteCookies:
    cookies = SiteCookies(plain_http=plain_http)
    cookies.take(url, [("set-cookie", line) for line in lines])
    return cookies


@pytest.mark.parametrize(
    ("line", "url", "sent"),
    [
        ("a=1", "https://www.a.test/shop/other", "a=1"),
        ("a=1", "https://www.a.test/elsewhere", ""),  # the folder of the page is its path
        ("a=1; Path=/", "https://www.a.test/elsewhere", "a=1"),
        ("a=1; Path=/shop", "https://www.a.test/shopping", ""),
        ("a=1; Path=/", "https://a.test/", ""),  # host-only
        ("a=1; Path=/", "https://b.www.a.test/", ""),
        ("a=1; Path=/; Domain=a.test", "https://www.a.test/", "a=1"),
        ("a=1; Path=/; Domain=b.test", "https://www.a.test/", ""),
        ("a=1; Path=/; Domain=test", "https://www.a.test/", ""),
        ("a=1; Path=/; Secure", "http://www.a.test/", ""),
        ("a=1; Path=/; Max-Age=1000", "https://www.a.test/", "a=1"),
        ("a=1; Path=/; Max-Age=0", "https://www.a.test/", ""),
        ("a=1; Path=/; Expires=Thu, 01 Jan 1970 00:00:01 GMT", "https://www.a.test/", ""),
        ("a=1; Path=/; Expires=Fri, 31 Dec 2999 00:00:00 GMT; HttpOnly; SameSite=Strict", "https://www.a.test/", "a=1"),
        ('a="x y"; Path=/', "https://www.a.test/", 'a="x y"'),
        ("a=; Path=/", "https://www.a.test/", "a="),
        (f"a={'x' * 9_000}; Path=/", "https://www.a.test/", ""),
    ],
)
def test_a_cookie_goes_back_where_its_site_wants_it(line: str, url: str, sent: str) -> None:
    assert after(line).header(url) == sent


def test_a_newer_cookie_takes_the_place_of_an_older_one() -> None:
    cookies = after("a=1; Path=/", "b=2; Path=/")
    cookies.take(OWN, [("set-cookie", "a=3; Path=/"), ("set-cookie", "b=; Path=/; Max-Age=0")])
    assert cookies.header(OWN) == "a=3"


def test_what_came_over_https_stays_there_unless_the_rule_says_otherwise() -> None:
    assert after("a=1; Path=/").header("http://www.a.test/") == ""
    assert after("a=1; Path=/", plain_http=True).header("http://www.a.test/") == "a=1"
    assert after("a=1; Path=/", url="http://www.a.test/").header("http://www.a.test/") == "a=1"


def test_a_site_cannot_fill_the_memory() -> None:
    cookies = after(*[f"c{number}=1; Path=/" for number in range(1_000)])
    assert len(cookies) == 200
    cookies.take(OWN, [("set-cookie", "c7=new; Path=/")])
    assert "c7=new" in cookies.header(OWN)


LINES = st.lists(
    st.one_of(
        st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=60),
        st.builds(
            "{}={}; Path={}; Domain={}; Expires={}; Max-Age={}; Port={}; Version={}".format,
            *[st.text(st.sampled_from('abc1/.;=", -%:\xe9'), max_size=12) for _ in range(8)],
        ),
    ),
    max_size=5,
)


@properties(300)
@given(LINES, st.sampled_from([OWN, "http://127.0.0.1:8080/x", "https://[::1]/", "https://localhost/"]))
def test_whatever_a_site_sets_makes_one_line_for_that_site(lines: Sequence[str], url: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        header = after(*lines, url=url).header(url)
    assert not set("\r\n\0") & set(header)
    header.encode("latin-1")
    assert after(*lines, url=url).header("https://b.test/") == ""


@properties(50)
@given(LINES)
def test_a_session_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, lines: Sequence[str]) -> None:
    folder = tmp_path_factory.mktemp("data")
    cookies = after(*lines)
    path = session_file(folder, "[::1]:8443", "mark")
    write_session(path, KeptSession(cookies.kept(), ["https://[::1]:8443/in"]))
    again = SiteCookies()
    kept = read_session(path)
    again.put(kept.cookies)
    assert again.header(OWN) == cookies.header(OWN)
    assert kept.login_found == ["https://[::1]:8443/in"]
    assert list(session_files(folder)) == [("[::1]:8443", path)]


def test_a_folder_that_cannot_be_written_costs_nothing_but_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_session(session_file(tmp_path / "nowhere", "a.test", "mark"), KeptSession())
    assert "cannot be kept" in caplog.text
