"""The rules of a site in a real browser, and over HTTP: shown, tried, changed and ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from starlette.testclient import TestClient

import levada
from levada.serve.access import Access, Tokens
from levada.serve.app import make_app
from levada.serve.lab_runs import Laboratory
from levada.serve.view import View
from tests.cli.collection import FRONT, build
from tests.serve.browser_session import Walk, open_page
from tests.serve.served import served

SITE = "example.org"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return build(tmp_path / "data")


@pytest.fixture
def api(folder: Path) -> Iterator[TestClient]:
    view = View(folder, Laboratory(folder / "lab", ("false",)))
    with TestClient(make_app(view, Access(Tokens(), frozenset({"testserver"}), lambda: 0.0))) as client:
        yield client
    view.close()


def test_a_rule_is_tried_set_shown_and_ended(api: TestClient, folder: Path) -> None:
    keys = {"exclude": ["*"], "hours": ["sun 0-0:01"], "per_hour": 60}
    tried = api.post("/api/v1/rules/try", json={"match": SITE, "keys": keys}).json()
    assert (tried["match"], tried["sites"], tried["pages"], tried["looked_at"]) == (SITE, 1, 7, 7)
    assert api.get("/api/v1/rules").json()["rules"] == []
    done = api.put("/api/v1/rules", json={"match": f"https://{SITE}", "keys": keys}).json()
    assert (done["rule"]["match"], done["changed"], done["crawling"]) == (SITE, 3, False)
    told = api.get(f"/api/v1/site/rules?site={SITE}").json()
    assert (told["keys"], told["out_of_scope"]) == (keys, 7)
    assert {"url": FRONT, "key": "exclude", "match": SITE, "stored": True} in told["pages"]
    assert told["opens_at"] is not None
    assert api.get(f"/api/v1/site?site={SITE}").json()["site"]["rules"] == [SITE]
    assert api.put("/api/v1/rules", json={"match": SITE, "keys": {"exclude": None}}).json()["rule"]["keys"] == {
        "hours": ["sun 0-0:01"],
        "per_hour": 60,
    }
    assert api.delete(f"/api/v1/rules?match={SITE}").json() == {"rule": None, "changed": 2, "crawling": False}
    with levada.open(folder) as news:
        assert news.rules() == []


def test_a_key_that_takes_one_of_a_few_words_names_them(api: TestClient) -> None:
    keys = {each["key"]: each for each in api.get("/api/v1/rules").json()["keys"]}
    assert (keys["render"]["kind"], keys["render"]["choices"]) == ("choice", ["never", "auto", "always"])
    assert (keys["screenshot"]["kind"], keys["screenshot"]["choices"]) == ("flag", [])


def test_an_address_is_added_with_a_rule_of_its_site(api: TestClient, folder: Path) -> None:
    keys = {"folders": ["folder"], "exclude": ["*.pdf"]}
    added = api.post("/api/v1/seeds", json={"urls": ["new.example/docs/intro"], "keys": keys})
    assert added.status_code == 202
    (rule,) = api.get("/api/v1/rules").json()["rules"]
    assert (rule["match"], rule["keys"]) == ("new.example", {"folders": ["/docs/"], "exclude": ["*.pdf"]})
    for wrong, said in (
        ({"login": {"url": "/in", "fields": {"password": "env:A"}}}, "login does not change over the API"),
        ({"exclude": ["/docs/*"]}, "excludes https://new.example/docs/intro itself"),
        ({"dept": 1}, "a rule has no key 'dept'"),
    ):
        refused = api.post("/api/v1/seeds", json={"urls": ["new.example/docs/intro"], "keys": wrong})
        assert refused.status_code == 400
        assert said in refused.json()["error"]["message"]
    with levada.open(folder) as news:
        assert [rule.keys for rule in news.rules()] == [{"folders": ["/docs/"], "exclude": ["*.pdf"]}]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"hours": "mondays 8-9"}, "'mondays' is no day"),
        ({"delay": "slow"}, "delay"),
        ({"delya": 1}, "a rule has no key 'delya': did you mean delay"),
        ({"exclude": ["re:("]}, "no regular expression"),
        ({"render": "often"}, 'render must be "never", "auto" or "always", not "often"'),
        ({"password": "env:PASSWORD"}, "password does not change over the API: use 'levada sites set' on the machine"),
        ({"headers": {"X-Key": "env:KEY"}}, "headers does not change over the API"),
        ({"login": {"url": "/in", "fields": {"password": "env:A"}}}, "login does not change over the API"),
        ({"proxy": ["http://127.0.0.1:3128"]}, "proxy does not change over the API"),
        ({"client_certificate": "/etc/passwd"}, "client_certificate does not change over the API"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_one_sentence(
    api: TestClient, keys: dict[str, object], said: str
) -> None:
    for method, path in (("POST", "/api/v1/rules/try"), ("PUT", "/api/v1/rules")):
        answer = api.request(method, path, json={"match": SITE, "keys": keys})
        assert answer.status_code == 400
        assert said in answer.json()["error"]["message"]
    assert api.get("/api/v1/rules").json()["rules"] == []


def test_a_rule_with_credentials_is_not_ended_over_the_api(api: TestClient, folder: Path) -> None:
    with levada.open(folder) as news:
        news.set_rule(SITE, bearer="env:TOKEN", delay=3.0)
    answer = api.delete(f"/api/v1/rules?match={SITE}")
    assert answer.status_code == 400
    assert "bearer does not change over the API" in answer.json()["error"]["message"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("size", "scheme"), [("wide", "light"), ("narrow", "dark"), ("wide", "dark"), ("narrow", "light")]
)
def test_an_editor_changes_the_rule_of_a_site(
    opened: Browser, folder: Path, tmp_path: Path, size: str, scheme: str
) -> None:
    pictures = Path(os.environ.get("LEVADA_PICTURES") or tmp_path)
    with served(folder) as address, open_page(opened, size, scheme) as page:
        walk = Walk(page, address)
        walk.go(f"sites/{SITE}")
        expect(page.locator("main")).to_contain_text("No rule: the settings of all sites hold.")
        page.get_by_text("Change the rules").click()
        page.get_by_label("Not these addresses").fill("/news/*\n*.pdf\n*")
        page.get_by_role("button", name="What would it keep out?").click()
        expect(page.locator("main")).to_contain_text("It would keep out 7 of 7 known pages that are visited now.")
        page.get_by_text("How fast and when").click()
        page.get_by_label("Active hours").fill("mondays 8-9")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("'mondays' is no day: write daily, weekdays")
        walk.picture(pictures / f"rule-error-{size}-{scheme}.png")
        page.get_by_label("Active hours").fill("sun 0-0:01 Europe/Istanbul")
        page.get_by_label("Fetches per hour at most").fill("60")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status").filter(has_text="Saved: the next crawl goes by it.")).to_be_visible()
        expect(page.locator("main")).to_contain_text("Outside its hours: nothing is asked for until")
        expect(page.locator("main")).to_contain_text("Out of scope: 7 pages")
        assert not walk.is_too_wide()
        walk.picture(pictures / f"rule-{size}-{scheme}.png")
        page.get_by_text("Change the rules").click()
        expect(page.get_by_label("Fetches per hour at most")).to_have_value("60")
        page.screenshot(path=str(pictures / f"rule-form-{size}-{scheme}.png"), full_page=True)
        assert not walk.is_too_wide()
        walk.go("sites")
        expect(page.locator("main")).to_contain_text("outside its hours until")
        walk.picture(pictures / f"rule-list-{size}-{scheme}.png")
        walk.go(f"sites/{SITE}")
        page.get_by_text("Change the rules").click()
        page.get_by_role("button", name="End this rule").click()
        expect(page.get_by_role("status").filter(has_text="The rule has ended.")).to_be_visible()
        assert [each for each in walk.complaints if "400" not in each] == []
    with levada.open(folder) as news:
        assert news.rules() == []


def test_a_part_of_a_site_is_given_a_rule_of_its_own(opened: Browser, folder: Path) -> None:
    with served(folder) as address, open_page(opened, "wide") as page:
        walk = Walk(page, address)
        walk.go(f"sites/{SITE}")
        page.get_by_text("Change the rules").click()
        page.get_by_label("Rule for").fill(f"{SITE}/app/")
        page.get_by_label("Rule for").blur()
        page.get_by_text("Pages that need JavaScript").click()
        page.get_by_label("A browser renders its pages").select_option("auto")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status").filter(has_text="Saved: the next crawl goes by it.")).to_be_visible()
        expect(page.locator("main")).to_contain_text(f"{SITE}/app/")
        assert walk.complaints == []
    with levada.open(folder) as news:
        assert [(rule.match, rule.keys) for rule in news.rules()] == [(f"{SITE}/app/", {"render": "auto"})]


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_a_part_of_a_site_is_added(opened: Browser, folder: Path, size: str) -> None:
    with served(folder) as address, open_page(opened, size) as page:
        walk = Walk(page, address)
        walk.go("sites")
        page.get_by_label("Address to crawl").fill("https://new.example/docs/intro")
        page.get_by_text("Only a part of it").click()
        page.get_by_label("Not these addresses").fill("*.pdf\nre:a{1,2}b")
        page.get_by_label("Links away").fill("3")
        page.get_by_label("How much of the site").select_option("folder")
        page.get_by_role("button", name="Add a site").click()
        expect(page.get_by_text("Kept: the next crawl will visit it.")).to_be_visible()
        assert not walk.is_too_wide()
        assert walk.complaints == []
    with levada.open(folder) as news:
        (rule,) = news.rules()
    assert rule.keys == {"exclude": ["*.pdf", "re:a{1,2}b"], "folders": ["/docs/"], "depth": 3}


def test_the_text_of_a_page_is_shown_and_its_markdown(opened: Browser, folder: Path) -> None:
    with levada.open(folder) as news:
        text, markdown = news.page(FRONT).text, news.markdown(FRONT)
    with served(folder) as address, open_page(opened, "narrow") as page:
        walk = Walk(page, address)
        walk.go_page(FRONT)
        page.locator("summary", has_text="Text").click()
        shown = page.get_by_label("The stored text")
        expect(shown).to_have_text(text)
        page.get_by_label("Shown as").select_option("markdown")
        expect(shown).to_have_text(markdown)
        assert not walk.is_too_wide()
        assert walk.complaints == []
