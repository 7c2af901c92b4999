"""`levada sites` and `levada add`: rules of sites, made, shown and changed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import levada
from levada.core.settings import load_settings
from levada.core.site_rules.section import RULE_TYPES
from tests.cli.collection import FRONT, build, command
from tests.house.test_docs import DOCS, chapter

sites, add = command("sites"), command("add")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    build(tmp_path / "levada-data")
    return tmp_path


def test_an_address_is_added_with_a_rule_of_its_site(here: Path) -> None:
    told = add("https://docs.example/intro", "--include", "/docs/*", "--exclude", "*.pdf", "--depth", "2")
    assert told.out.splitlines() == [
        'docs.example: include = ["/docs/*"], exclude = ["*.pdf"], depth = 2',
        "1 address added; 'levada crawl' begins there",
    ]
    assert "https://docs.example/intro is outside include of the rule of docs.example" in told.said
    add("docs.example/blog/x", "--include", "/blog/*", "--scope", "folder", "--rule", "accept_language=tr")
    with levada.open("levada-data") as news:
        (rule,) = news.rules()
    assert rule.keys == {
        "include": ["/docs/*", "/blog/*"],
        "exclude": ["*.pdf"],
        "folders": ["/blog/"],
        "depth": 2,
        "accept_language": "tr",
    }
    add("docs.example/blog/x", "--scope", "site")
    with levada.open("levada-data") as news:
        assert "folders" not in news.rules()[0].keys


def test_a_new_collection_begins_with_its_first_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    answer = add("https://example.org/p", "--depth", "0", "--data", tmp_path / "new", "--json")
    told = json.loads(answer.out)
    assert (told["added"], told["crawling"], told["notes"]) == (1, False, [])
    (rule,) = told["rules"]
    assert (rule["match"], rule["keys"], rule["sites"], rule["note"]) == ("example.org", {"depth": 0}, 1, "")


def test_every_site_is_shown_with_its_rule_and_what_that_keeps_out(here: Path) -> None:
    sites("set", "example.org", "exclude=/x/*,*.pdf", "headers={Cookie = 'text:secret'}")
    sites("set", "nowhere.test/a/", "accept_language=tr")
    shown = sites().out
    assert re.search(r"example.org +7 pages", shown)
    assert 'rule of example.org: exclude = ["/x/*", "*.pdf"], headers = {"Cookie" = "****"}' in shown
    assert 'the rule of nowhere.test/a/ matches no site that is known: accept_language = "tr"' in shown
    told = json.loads(sites("example.org", "--json").out)
    assert [(each["site"], each["pages"], each["matches"]) for each in told["sites"]] == [
        ("example.org", 7, ["example.org"])
    ]
    assert "secret" not in json.dumps(told)
    assert json.loads(sites("--limit", "1", "--json").out)["more"] == 2


def test_a_rule_of_a_path_is_shown_with_its_own_keys(here: Path) -> None:
    sites("set", "example.org/app/", "render=auto")
    sites("set", "example.org", "depth=5")
    shown = sites("example.org").out
    assert '  rule of example.org/app/: render = "auto"\n  rule of example.org: depth = 5\n' in shown


def test_pages_that_a_change_puts_out_of_scope_are_said_at_once(here: Path) -> None:
    told = sites("set", "example.org", "exclude=*")
    assert "7 known pages out of scope now, such as https://example.org" in told.out
    assert "'levada sites example.org --out-of-scope' lists them" in told.out
    assert "out of scope" not in sites("set", "example.org", "exclude=*", "depth=9").out  # said already
    assert "out of scope" not in sites("unset", "example.org").out
    told = add("example.org/new/page", "--scope", "folder", "--json")
    assert json.loads(told.out)["out_of_scope"] == 6  # all but a start address
    sites("unset", "example.org")
    assert "6 known pages out of scope now" in add("example.org/new/page", "--include", "/new/*").out


def test_a_login_is_set_like_any_key(here: Path) -> None:
    recipe = '{ url = "/in", fields = { user = "me", password = "env:A" } }'
    assert sites("set", "example.org", f"login={recipe}", "cookies=true", "proxy=socks5://127.0.0.1:1080").out == (
        "example.org: cookies = true\n"
        'example.org: login = {"url" = "/in", "fields" = {"user" = "me", "password" = "env:A"}}\n'
        'example.org: proxy = ["socks5://127.0.0.1:1080"]\n'
    )
    with levada.open("levada-data") as news:
        news.set_rule("example.org", login={"url": "/log-in", "fields": {"user": "me", "password": "env:B"}}, proxy=[])
        (rule,) = news.rules()
    assert rule.keys["login"] == {"url": "/log-in", "fields": {"user": "me", "password": "env:B"}}
    assert rule.keys["proxy"] == []
    assert 'login = {"url" = "/log-in"' in sites().out


def test_a_rule_is_changed_key_by_key_and_ended(here: Path) -> None:
    assert sites("set", "example.org", "exclude=re:a{7,8}", "depth=30").out.splitlines() == [
        "example.org: depth = 30",
        'example.org: exclude = ["re:a{7,8}"]',
    ]
    assert sites("set", "example.org", "depth=30").out == "nothing changed: the rule says so already\n"
    assert sites("unset", "example.org", "depth").out == "example.org: depth = 30 -> none\n"
    told = json.loads(sites("unset", "Example.org", "--json").out)
    assert (told["rules"], len(told["changes"])) == ([], 1)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("set", "example.org", "include=re:("), 2, '[[site]] "example.org": include: '),
        (("set", "example.org", "delya=1"), 2, "a rule has no key 'delya'"),
        (("set", "example.org", "depth"), 2, "levada sites set example.org depth=VALUE"),
        (("set", "example.org"), 2, "levada sites set example.org depth=2"),
        (("set", "exa mple.org", "depth=1"), 2, "match takes a host and the beginning of a path"),
        (("unset", "example.net"), 2, "no rule has match = 'example.net'"),
        (("example.net",), 3, "no site example.net is known"),
        (("--data", "nowhere"), 3, "there is no collection in nowhere"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(here: Path, words: tuple[str, ...], code: int, says: str) -> None:
    told = sites(*words)
    assert told.code == code
    assert says in told.said


def test_a_rule_that_excludes_its_own_start_is_refused_before_anything_is_kept(here: Path) -> None:
    told = add(FRONT, "--exclude", "/*")
    assert told.code == 2
    assert f"the rule of example.org excludes {FRONT} itself" in told.said
    with levada.open("levada-data") as news:
        assert news.rules() == []


def test_pages_that_a_rule_keeps_out_are_counted_listed_and_forgotten(here: Path) -> None:
    told = sites("set", "example.org", "exclude=*", "hours=sun 0-0:01", "max_pages=3")
    assert told.code == 0
    shown = sites("example.org").out
    assert re.search(r"7 pages out of scope: visited no more", shown.replace("\n", " "))
    assert "outside its hours: it is asked again from" in shown
    assert "more than its max_pages, 3: no page is added" in shown
    listed = sites("example.org", "--out-of-scope").out.splitlines()
    assert f"{FRONT}  (exclude of example.org)" in listed
    assert listed[-1].endswith("'levada forget --out-of-scope --site example.org' deletes them")
    told = command("forget")("--out-of-scope", "--site", "example.org", "--yes")
    assert told.out.startswith("forgot 7 pages")
    assert sites("example.org", "--out-of-scope").out == "0 pages out of scope, 0 with a stored version\n"
    assert command("forget")("--out-of-scope", "--yes").said.endswith("no page is out of scope: nothing to forget\n")


def test_outside_its_hours_a_site_is_not_checked_and_why_says_so(here: Path) -> None:
    sites("set", "example.org", "hours=sun 0-0:01 Europe/Istanbul")
    for words in ((FRONT,), ("--site", "example.org")):
        told = command("check")(*words)
        assert told.code == 3
        assert re.search(
            r"example.org is outside its hours, by the rule of example.org: it is asked again in \d", told.said
        )
    assert "example.org is outside its hours, by the rule of example.org" in command("why")(FRONT).out
    sites("set", "example.org", "hours=daily 0-24", "exclude=*")
    assert f"{FRONT} is out of scope: exclude of the rule of example.org keeps it out" in command("check")(FRONT).said
    assert "it is out of scope: exclude of the rule" in command("why")(FRONT).out
    sites("unset", "example.org")
    assert "outside its hours" not in command("why")(FRONT).out


EXAMPLES = re.findall(r"^\| `(\w+)` \| `(.+?)` \|", chapter(DOCS / "settings.md", "[[site]]"), re.MULTILINE)


@pytest.mark.parametrize(("key", "example"), EXAMPLES[1:], ids=[key for key, _ in EXAMPLES[1:]])
def test_the_example_of_every_key_is_set_shown_and_ended(here: Path, key: str, example: str) -> None:
    (here / "rule.toml").write_text(f'[[site]]\nmatch = "example.org"\n{key} = {example}\n')
    wanted = load_settings(here / "rule.toml").site[0]
    told = sites("set", "example.org", f"{key}={example}")
    assert told.code == 0, told.said
    with levada.open("levada-data") as news:
        assert getattr(news.settings.site[0], key) == getattr(wanted, key)
    assert f"{key} = " in sites("example.org").out
    assert sites("unset", "example.org", key).code == 0
    with levada.open("levada-data") as news:
        assert news.rules() == []


def test_every_key_has_such_an_example() -> None:
    assert [key for key, _ in EXAMPLES[1:]] == list(RULE_TYPES)
