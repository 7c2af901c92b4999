"""Trials over HTTP: what is shown, and how often a site is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import levada
from tests.serve.conftest import Open
from tests.story.test_try import Shop, here, shop

__all__ = ["here", "shop"]


@pytest.fixture
def api(shop: Shop, here: Path, open_server: Open) -> TestClient:
    """A server over a collection of the shop's lamp."""
    settings = levada.Settings.load(here / "levada.toml")
    with levada.open(here / "levada-data", settings) as collection:
        collection.add(shop.lamp)
        collection.crawl(once=True)
    return open_server(here / "levada-data")


def tried(api: TestClient, status: int = 200, **asked: Any) -> Any:
    answer = api.post("/api/v1/page/try", json=asked)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_trial_shows_stored_and_live_and_asks_the_site_once_a_minute(shop: Shop, api: TestClient) -> None:
    shop.write(price="99")
    before = shop.asked.count("/lamp")
    for entries in (["h1"], [".price"]):
        told = tried(api, url=shop.lamp, select=entries, trigger=["price below 100"])
    assert (told["stored"]["text"], told["live"]["text"]) == ("120 EUR", "99 EUR")
    assert (told["changed"], told["told"]) == (True, True)
    assert shop.asked.count("/lamp") == before + 1
    shop.write(price="98")
    assert tried(api, url=shop.lamp, select=[".price"], anew=True)["live"]["text"] == "98 EUR"


def test_a_key_that_is_null_is_as_in_force_and_an_empty_one_is_none(shop: Shop, api: TestClient) -> None:
    nothing = tried(api, url=shop.lamp, select=[".nowhere"])
    assert (nothing["live"]["reason"], nothing["match"]) == ("no-match", f"{shop.name}/lamp")
    rule = {"match": nothing["match"], "keys": {"select": [".price"], "ignore": ["dates"]}}
    assert api.put("/api/v1/rules", json=rule).json()["changed"] == 2
    assert tried(api, url=shop.lamp, live=False)["rule"] == {"select": [".price"], "ignore": ["dates"]}
    assert tried(api, url=shop.lamp, select=[], live=False)["rule"] == {"ignore": ["dates"]}


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"select": ["p:::"]}, 400, "select: 'p:::' is no CSS selector that can be used: it does not parse"),
        ({"trigger": ["below 5"]}, 400, "trigger: 'below 5' is no trigger"),
        ({"select": "p"}, 400, "select must be a list or null, not 'p'"),
        ({"headers": {}}, 400, "'headers' is not known here"),
        (
            {"url": "http://127.0.0.1:9/"},
            404,
            "there is nothing to try it on: the live page: it cannot be fetched (address)",
        ),
    ],
)
def test_what_is_wrong_is_said(shop: Shop, api: TestClient, asked: dict[str, Any], status: int, said: str) -> None:
    assert said in tried(api, status, **{"url": shop.lamp, **asked})["error"]["message"]


def test_the_rules_say_on_how_many_pages_a_selector_finds_nothing(shop: Shop, api: TestClient, here: Path) -> None:
    with levada.open(here / "levada-data", create=False) as collection:
        collection.set_rule(shop.name, select=[".nowhere"])
        collection.check(shop.lamp)
    (rule,) = api.get("/api/v1/rules").json()["rules"]
    assert (rule["selected_on"], rule["no_match"], rule["no_match_example"]) == (1, 1, shop.lamp)
