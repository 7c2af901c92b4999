"""Rules of sites: read, kept by key, and the most specific of them found for an address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.configuration.following import SettingsFollower
from levada.core.configuration.layers import Source, file_given, flags_given, resolve
from levada.core.configuration.values import check_values, parse_value
from levada.core.errors import SettingsError
from levada.core.folder import DataFolder
from levada.core.settings import Settings, parse_settings
from levada.core.site_rules.credentials import reads_machine
from levada.core.site_rules.rules import SiteRules
from levada.core.site_rules.section import SiteSettings, tidy_match
from levada.core.site_rules.visit import VisitRule
from levada.testing.common import properties


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataFolder:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "levada.db").touch()
    return DataFolder(tmp_path)


def agent_for(rules: SiteRules, url: str) -> str | None:
    keys = rules.rule_for(url).keys
    return keys.agent if keys is not None else None


def test_the_most_specific_table_decides_key_by_key() -> None:
    rules = SiteRules(
        [
            SiteSettings(match="*", agent="any", accept_language="tr"),
            SiteSettings(match="*.example.org", agent="subdomain"),
            SiteSettings(match="www.example.org/docs/", agent="docs"),
            SiteSettings(match="www.example.org", agent="www"),
            SiteSettings(match="www.example.org/docs/old/", headers={"X-Old": "1"}),
        ]
    )
    assert agent_for(rules, "https://elsewhere.test/") == "any"
    assert agent_for(rules, "https://example.org/") == "any"
    assert agent_for(rules, "https://blog.example.org/docs/") == "subdomain"
    assert agent_for(rules, "https://www.example.org/blog/") == "www"
    assert agent_for(rules, "https://www.example.org/docs/") == "docs"
    found = rules.rule_for("https://www.example.org/docs/old/x")
    assert found.matches == (
        "www.example.org/docs/old/",
        "www.example.org/docs/",
        "www.example.org",
        "*.example.org",
        "*",
    )
    assert found.visit.request is not None
    assert found.visit.request.headers == (("X-Old", "1"), ("User-Agent", "docs"), ("Accept-Language", "tr"))


HOSTS = st.sampled_from(["*", "*.test", "*.b.test", "a.test", "b.test", "c.b.test", "a.test:81"])
PATHS = st.sampled_from(["", "/", "/x/", "/x/y", "/x/y/z/", "/w"])
SITES = st.sampled_from(["a.test", "b.test", "c.b.test", "d.c.b.test", "a.test:81", "test"])


@properties(200)
@given(st.lists(st.tuples(HOSTS, PATHS), unique=True, max_size=8), SITES, PATHS.map(lambda path: path or "/"))
def test_no_table_that_matches_is_more_specific_than_the_one_that_decides(
    matches: list[tuple[str, str]], site: str, path: str
) -> None:
    texts = {tidy_match(host + start) for host, start in matches}
    rules = SiteRules([SiteSettings(match=text, agent=text) for text in texts])

    def fits(text: str) -> bool:
        host, _, start = text.partition("/")
        of_host = host in ("*", site) or (host[0] == "*" and site.endswith(host[1:]))
        return of_host and path[1:].startswith(start)

    def specific(text: str) -> tuple[bool, int, int]:
        host, _, start = text.partition("/")
        return not host.startswith("*"), len(host), len(start)

    best = max((text for text in texts if fits(text)), key=specific, default=None)
    assert agent_for(rules, f"https://{site}{path}") == best


def test_without_rules_nothing_is_looked_up() -> None:
    rules = SiteRules()
    assert not rules
    assert rules.rule_for("https://example.org/") is rules.rule_for("https://other.test/")


def test_a_rule_is_kept_key_by_key_like_any_setting(folder: DataFolder, tmp_path: Path) -> None:
    file = tmp_path / "levada.toml"
    file.write_text('[[site]]\nmatch = "https://Example.org/docs/"\nagent = "file"\naccept_language = "tr"\n')
    given = flags_given(file_given(file), {"site.example.org/docs/.agent": ("--agent", "flag")})
    assert resolve({}, given, {}).settings.site == (
        SiteSettings(match="example.org/docs/", agent="flag", accept_language="tr"),
    )
    crawl = DataFolder(folder.path, given)
    crawl.save_settings(crawl.settings())
    folder.change_settings({"site.EXAMPLE.org/docs/.agent": "changed", "site.b.test.agent": "b"}, "a user")
    report = folder.configuration().report()
    assert report["site.example.org/docs/.agent"].value == "changed"
    assert report["site.example.org/docs/.accept_language"].source is Source.COLLECTION
    folder.change_settings({"site.Example.org/docs/.agent": None, "site.example.org/docs/.accept_language": None}, "me")
    assert [table.match for table in folder.settings().site] == ["b.test"]


def test_a_running_crawl_follows_rules_that_come_and_go(folder: DataFolder) -> None:
    follower = SettingsFollower(folder, folder.settings())
    folder.change_settings({"site.a.test.agent": "a"}, "a user")
    followed = follower.poll()
    assert followed is not None
    assert followed.site == (SiteSettings(match="a.test", agent="a"),)
    folder.change_settings({"site.a.test.agent": None}, "a user")
    followed = follower.poll()
    assert followed is not None
    assert followed.site == ()


def test_a_program_replaces_single_keys_of_rules() -> None:
    settings = Settings().replace({"site.a.test/x/.agent": "a", "politeness.delay": 2.0})
    settings = settings.replace({"site.a.test/x/.accept_language": "tr"})
    assert settings.site == (SiteSettings(match="a.test/x/", agent="a", accept_language="tr"),)
    assert settings.politeness.delay == 2.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[site]]\nagent = "a"', "match"),
        ('[[site]]\nmatch = "a.test"\nagnet = "a"', "did you mean 'agent'"),
        ('[site]\nmatch = "a.test"', "write [[site]], with two brackets"),
        ('[[site]]\nmatch = "a b"', "match takes a host and the beginning of a path"),
        ('[[site]]\nmatch = "a.test/*.zip"', "match takes a host and the beginning of a path"),
        ('[[site]]\nmatch = "a.test"\n[[site]]\nmatch = "A.test"', "put them together"),
        ('[[site]]\nmatch = "a.test"\nheaders = { User-Agent = "x" }', "write agent"),
        ('[[site]]\nmatch = "a.test"\nheaders = { Host = "x" }', "leave it out"),
        ('[[site]]\nmatch = "a.test"\nheaders = { X = "a\\nb" }', "one line of ASCII"),
    ],
)
def test_a_rule_that_is_wrong_is_told_by_its_key(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse_settings(text, "a test")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value"), [("site.a.test.dely", 1), ("site.a b.agent", "x"), ("site.agent", "x"), ("site.a.test.agent", 3)]
)
def test_a_single_key_that_is_wrong_is_refused(name: str, value: Any) -> None:
    with pytest.raises(SettingsError):
        check_values({name: value}, "")


def test_a_typed_value_of_a_rule_has_the_type_of_its_key() -> None:
    assert parse_value("site.a.test.agent", "me") == "me"
    assert parse_value("site.a.test.headers", '{ X = "1" }') == {"X": "1"}


def test_the_place_of_a_secret_is_shown(folder: DataFolder) -> None:
    told = {"X-Api-Key": "env:API_KEY", "X-Other": "shown"}
    folder.change_settings({"site.a.test.headers": told, "site.a.test.password": "file:/run/secrets/a"}, "a user")
    found = folder.configuration().report()
    assert found["site.a.test.headers"].value == told
    assert found["site.a.test.password"].value == "file:/run/secrets/a"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('password = "HUSH"', 'write "env:NAME", "file:/path" or "keyring:service/name"'),
        ('bearer = "HUSH"', "takes the place of a secret, not the secret itself"),
        ('bearer = "env:HUSH-HUSH"', 'takes the name of a variable, as in "env:BLOG_PASSWORD"'),
        ('password = "file:HUSH"', "takes a whole path"),
        ('password = "keyring:HUSH"', "takes a service and a name"),
        ('headers = { Authorization = "Bearer HUSH" }', "Authorization sounds like a secret"),
        ('headers = { Cookie = "session=HUSH" }', '"text:..." if it is none'),
        ('headers = { X-Api-Key = "HUSH" }', "X-Api-Key sounds like a secret"),
        ('bearer = "env:A"\npassword = "env:B"', "either a bearer token, or a user and a password"),
        ('user = "a:HUSH"', "a user name has no colon"),
        ('login = { url = "/in", fields = { password = "HUSH" } }', "login.fields: password sounds like a secret"),
        ('login = { url = "/in", fields = { secret = "env:HUSH-HUSH" } }', "takes the name of a variable"),
        ('login = { url = "/in", fields = { user = "me" } }', "no field is a secret"),
        ('login = { url = "/in", fields = {} }', "names the fields of the form"),
        ('login = { url = "https://b.test/HUSH", fields = { a = "env:A" } }', "or its address on a.test"),
        ('login = { url = "//b.test/HUSH", fields = { a = "env:A" } }', "or its address on a.test"),
        ('login = { url = "/in", fields = { a = "env:A" }, check = "a[" }', "it does not parse"),
        ('login = { url = "/in", fields = { a = "env:A" }, check = "text:" }', "nothing stands after text:"),
        ('login = { url = "/in", fields = { a = "env:A" }, check = "json:$.a" }', "takes a CSS selector"),
        ('login = { url = "/in", fields = { a = "env:A" }, chek = "a" }', "unknown field"),
        ('proxy = ["http://me:HUSH@a.test:80"]', 'write where the whole address lies, as in "env:PROXY"'),
        ('proxy = ["socks5://HUSH@a.test:80"]', "with a user or password is a secret"),
        ('proxy = ["http://HUSH"]', "is written with its scheme and port"),
        ('proxy = ["gopher://HUSH:70"]', "the schemes are http, https, socks5, httph and socks5h"),
        ('proxy = ["http://a.test:80/HUSH"]', "is written with its scheme and port"),
        ('proxy = ["HUSH"]', "is written with its scheme and port"),
        ('client_key_password = "HUSH"', "takes the place of a secret"),
        ('client_certificate = "HUSH.pem"', "takes the whole path of a PEM file"),
    ],
)
def test_a_secret_in_a_rule_is_refused_without_being_repeated(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse_settings(f'[[site]]\nmatch = "a.test"\n{text}', "a test")
    assert said in str(raised.value)
    assert "HUSH" not in str(raised.value)


@pytest.mark.parametrize("match", ["*", "*.a.test"])
@pytest.mark.parametrize(
    "text",
    [
        'password = "env:A"',
        'user = "me"',
        'headers = { X-A = "env:A" }',
        'login = { url = "/in", fields = { a = "env:A" } }',
        'client_certificate = "/a.pem"',
    ],
)
def test_credentials_are_of_one_site(match: str, text: str) -> None:
    with pytest.raises(SettingsError, match="goes to one site only"):
        parse_settings(f'[[site]]\nmatch = "{match}"\n{text}', "a test")


def test_of_a_token_and_a_password_the_more_specific_one_goes() -> None:
    rules = SiteRules(
        [
            SiteSettings(match="a.test", user="me", password="env:A"),
            SiteSettings(match="a.test/api/", bearer="env:B"),
            SiteSettings(match="a.test/api/old/", password="env:C"),
        ]
    )
    found = [rules.visit_rule(f"https://a.test/{path}").request for path in ("", "api/", "api/old/")]
    sent = [each.credentials for each in found if each is not None and each.credentials is not None]
    assert [(each.user, each.password, each.bearer) for each in sent] == [
        ("me", "env:A", ""),
        ("", "", "env:B"),
        ("me", "env:C", ""),
    ]


def test_proxies_and_cookies_may_be_of_many_sites() -> None:
    rules = SiteRules(parse_settings('[[site]]\nmatch = "*"\ncookies = true\nproxy = ["env:PROXY"]', "a test").site)
    found = rules.visit_rule("https://a.test/").request
    assert found is not None
    assert found.session is not None
    assert found.route is not None
    assert (found.session.site, found.route.site, found.route.proxies) == ("a.test", "a.test", ("env:PROXY",))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("login", {"url": "/in", "fields": {"password": "env:A"}}),
        ("proxy", ["http://127.0.0.1:3128"]),
        ("proxy", None),
        ("client_certificate", "/a.pem"),
        ("client_key", "/a.key"),
        ("client_key_password", "env:A"),
        ("plain_http", True),
    ],
)
def test_what_reads_the_machine_is_closed_to_the_api(key: str, value: Any) -> None:
    assert reads_machine(key, value)


def test_cookies_are_open_to_the_api() -> None:
    assert not reads_machine("cookies", True)


def test_a_login_is_typed_as_a_table_and_shown_with_references_only(folder: DataFolder) -> None:
    name = "site.a.test.login"
    typed = '{ url = "/in", fields = { user = "me", password = "env:A", pin = "text:1234" }, check = "a.out" }'
    folder.change_settings({name: parse_value(name, typed)}, "a user")
    (table,) = folder.settings().site
    assert table.login is not None
    assert table.login.fields["password"] == "env:A"
    shown = folder.configuration().report()[name].value
    assert shown == {
        "url": "/in",
        "fields": {"user": "me", "password": "env:A", "pin": "text:1234"},
        "check": "a.out",
    }
    folder.change_settings({"fetch.proxy": parse_value("fetch.proxy", "env:PROXY,socks5://127.0.0.1:1080")}, "a user")
    assert folder.configuration().report()["fetch.proxy"].value == ["env:PROXY", "socks5://127.0.0.1:1080"]
    with pytest.raises(SettingsError, match="must be a table such as"):
        parse_value(name, "/in")


def test_a_rule_reaches_a_worker_with_references_only() -> None:
    text = (
        'login = { url = "/in", fields = { password = "env:A_SECRET" } }\nproxy = ["env:A_PROXY"]\n'
        'client_certificate = "/a.pem"\nclient_key_password = "env:A_KEY"'
    )
    rules = SiteRules(parse_settings(f'[[site]]\nmatch = "a.test"\n{text}', "a test").site)
    rule = rules.visit_rule("https://a.test/")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(rule), type=VisitRule) == rule
