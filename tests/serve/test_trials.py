"""Trials over HTTP: what is shown, what is saved, and how often a site is asked."""

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
    answer = api.post("/api/v1/try", json=asked)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_trial_shows_stored_and_live_and_asks_the_site_once_a_minute(shop: Shop, api: TestClient) -> None:
    shop.write(price="99")
    before = shop.asked.count("/lamp")
    for entries in (["h1"], [".price"]):
        told = tried(api, url=shop.lamp, select=entries, trigger=["price below 100"])
    assert (told["stored"]["text"], told["live"]["text"]) == ("120 EUR", "99 EUR")
    assert (told["changed"], told["told"], told["saved"]) == (True, True, [])
    assert shop.asked.count("/lamp") == before + 1
    shop.write(price="98")
    assert tried(api, url=shop.lamp, select=[".price"], anew=True)["live"]["text"] == "98 EUR"


def test_a_saved_trial_is_the_rule_and_one_that_finds_nothing_is_not(shop: Shop, api: TestClient) -> None:
    nothing = tried(api, url=shop.lamp, select=[".nowhere"], save=True)
    assert (nothing["live"]["reason"], nothing["saved"]) == ("no-match", [])
    told = tried(api, url=shop.lamp, select=[".price"], ignore=["dates"], save=True)
    assert [(each["key"], each["value"]) for each in told["saved"]] == [
        (f"site.{shop.name}/lamp.ignore", ["dates"]),
        (f"site.{shop.name}/lamp.select", [".price"]),
    ]
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
        ({"save": True, "match": "a b", "select": ["h1"]}, 400, "match takes a host"),
    ],
)
def test_what_is_wrong_is_said(shop: Shop, api: TestClient, asked: dict[str, Any], status: int, said: str) -> None:
    assert said in tried(api, status, **{"url": shop.lamp, **asked})["error"]["message"]
