"""Trying a rule, as a user does: on a stored page, on a live one, without a collection, and without a network."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import levada
from tests.story import commands
from tests.story.commands import Ended, one_line

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own

LAMP = """<!doctype html><title>Lamp</title><main><h1>Lamp</h1><p class=price>{price} EUR</p><p class=stock>{stock}</p>
<p class=ad>{ad}</p><p>Seen at {clock} by 7 people</p></main>"""
AT_FIRST = {"price": "120", "stock": "Sold out", "ad": "Buy two!", "clock": "10:22:05"}


class Shop:
    """A site of pages that a test writes; it remembers what it was asked for."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, str]] = {}
        self.moved: dict[str, str] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.write()
        shop = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                shop.requests.append((self.path, dict(self.headers)))
                if location := shop.moved.get(self.path):
                    self.send_response(302)
                    self.send_header("Location", location)
                    self.end_headers()
                    return
                kind, body = shop.pages.get(self.path, ("", ""))
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", kind or "text/plain")
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.name = f"127.0.0.1:{self._server.server_port}"
        self.lamp = f"http://{self.name}/lamp"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def asked(self) -> list[str]:
        """The paths, in order."""
        return [path for path, _ in self.requests]

    def write(self, **changed: str) -> None:
        self.pages["/lamp"] = "text/html", LAMP.format(**AT_FIRST | changed)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def shop() -> Iterator[Shop]:
    opened = Shop()
    yield opened
    opened.close()


@pytest.fixture
def here(shop: Shop, tmp_path: Path) -> Path:
    """A folder with settings that allow the shop, and no collection."""
    (tmp_path / "levada.toml").write_text(f'[guard]\nallow = ["{shop.name}"]\n[politeness]\ndelay = 0.0\n')
    return tmp_path


@pytest.fixture
def crawled(shop: Shop, here: Path) -> Path:
    """The folder with a collection of the lamp."""
    assert run(here, "crawl", shop.lamp, "--once").returncode == 0
    return here


def run(here: Path, *words: str) -> Ended:
    return commands.levada(*words, cwd=here)


def tried(here: Path, *words: str) -> dict[str, Any]:
    done = run(here, "try", *words, "--json")
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def test_a_page_of_no_collection_is_tried_live_and_nothing_is_left_behind(shop: Shop, here: Path) -> None:
    facts = tried(here, shop.lamp, "--select", ".price", "--select", ".stock")
    assert (facts["live"]["text"], facts["stored"]) == ("120 EUR\nSold out", None)
    assert facts["why_not_stored"] == "there is no collection here"
    assert [path.name for path in here.iterdir()] == ["levada.toml"]


def test_stored_and_live_page_are_compared_by_the_rule(shop: Shop, crawled: Path) -> None:
    shop.write(price="99", ad="Buy three!", clock="11:00:00")
    words = ("--remove", ".ad", "--ignore", "dates", "--ignore", "numbers")
    ignoring = tried(crawled, shop.lamp, *words)
    assert (ignoring["changed"], ignoring["told"]) == (False, False)
    assert ignoring["hunks"]
    found = {(each["key"], each["entry"]): each["examples"] for each in ignoring["live"]["entries"]}
    assert found["remove", ".ad"] == ["Buy three!"]
    assert found["ignore", "dates"] == ["11:00:00"]
    shown = run(crawled, "try", shop.lamp, "--select", ".price")
    assert "-120 EUR\n+99 EUR\n" in shown.stdout
    assert shown.stdout.endswith("By this rule the live page is a new version, and it is told.\n")


@pytest.mark.parametrize(("trigger", "told"), [("price below 100", True), ("appears: in stock", False)])
def test_a_trial_says_whether_a_trigger_is_met(shop: Shop, crawled: Path, trigger: str, told: bool) -> None:
    shop.write(price="99")
    facts = tried(crawled, shop.lamp, "--trigger", trigger)
    assert (facts["changed"], facts["told"]) == (True, told)


def test_a_trial_stores_nothing_and_a_saved_one_is_the_rule_of_the_page(shop: Shop, crawled: Path) -> None:
    shop.write(stock="In stock")
    with levada.open(crawled / "levada-data", create=False) as collection:
        before = collection.why(shop.lamp).page
        tried(crawled, shop.lamp, "--select", ".stock")
        assert collection.why(shop.lamp).page == before
        assert collection.rules() == []
        tried(crawled, shop.lamp, "--select", ".stock", "--trigger", "appears: in stock", "--save")
        (rule,) = collection.rules()
    assert (rule.match, rule.keys) == (
        f"{shop.name}/lamp",
        {"select": [".stock"], "trigger": ["appears: in stock"]},
    )
    assert tried(crawled, shop.lamp)["live"]["text"] == "In stock"
    assert tried(crawled, shop.lamp, "--select", "")["rule"] == {"trigger": ["appears: in stock"]}


def test_a_rule_that_finds_nothing_is_not_saved(shop: Shop, crawled: Path) -> None:
    done = run(crawled, "try", shop.lamp, "--select", ".nowhere", "--save")
    assert done.returncode == 1
    assert "select .nowhere: finds nothing" in done.stdout
    assert done.stdout.endswith("not saved, because it finds nothing\n")
    with levada.open(crawled / "levada-data", create=False) as collection:
        assert collection.rules() == []


def test_without_a_network_the_stored_page_is_enough(shop: Shop, crawled: Path) -> None:
    shop.close()
    facts = tried(crawled, shop.lamp, "--select", ".price")
    assert (facts["stored"]["text"], facts["live"]) == ("120 EUR", None)
    assert facts["why_not_live"].startswith("it cannot be fetched (connect)")


def test_with_no_live_nobody_is_asked(shop: Shop, crawled: Path) -> None:
    before = len(shop.asked)
    assert tried(crawled, shop.lamp, "--no-live")["why_not_live"] == "it was not asked for"
    assert len(shop.asked) == before


def test_robots_and_the_guard_hold_for_a_trial(shop: Shop, here: Path) -> None:
    shop.pages["/robots.txt"] = "text/plain", "User-agent: *\nDisallow: /lamp\n"
    shop.moved["/away"] = "http://127.0.0.1:1/lamp"
    shop.moved["/round"] = "/round"
    for path, said in (
        ("/lamp", f"robots.txt of {shop.name} does not allow it"),
        ("/away", "(address)"),
        ("/round", "it redirects more than 5 times"),
        ("/nothing", "the site answers with status 404"),
    ):
        done = run(here, "try", f"http://{shop.name}{path}")
        assert said in one_line(done, 3)
    assert "/lamp" not in shop.asked


def test_a_site_outside_its_hours_is_asked_for_nothing(shop: Shop, here: Path) -> None:
    day = f"{datetime.now(UTC) + timedelta(days=3):%a}".lower()
    with (here / "levada.toml").open("a") as settings:
        settings.write(f'[[site]]\nmatch = "{shop.name}"\nhours = ["{day} 8-9"]\n')
    assert f"the active hours of {shop.name} begin in" in one_line(run(here, "try", shop.lamp), 3)
    assert shop.asked == []


def test_a_redirect_is_followed_and_said(shop: Shop, here: Path) -> None:
    shop.moved["/old"] = "/lamp"
    old = f"http://{shop.name}/old"
    facts = tried(here, old, "--select", "h1")
    assert (facts["live"]["url"], facts["live"]["text"], facts["match"]) == (shop.lamp, "Lamp", f"{shop.name}/lamp")
    assert f"redirected to {shop.lamp}" in run(here, "try", old).stdout


def test_a_selector_for_another_kind_of_page_is_said(shop: Shop, here: Path) -> None:
    shop.pages["/lamp.json"] = "application/json", '{"name": "Lamp", "price": 120}'
    facts = tried(here, f"http://{shop.name}/lamp.json", "--select", "json:$.price", "--remove", ".ad")
    assert facts["live"]["text"] == "120"
    assert facts["live"]["entries"][1]["note"] == "it is for HTML, and this page is none"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--select", "p:::"), "select: 'p:::' is no CSS selector that can be used: it does not parse"),
        (("--trigger", "below 100"), "trigger: 'below 100' is no trigger: write "),
        (("--trigger", "price below 1.299,00"), "'1.299,00' is no number"),
        (("--trigger", "appears: !!!"), "there is no word in '!!!'"),
        (("--trigger", "price below 5 near total"), 'near goes with "number", not with "price"'),
        (("--ignore", "date"), "ignore: 'date' is a word that it does not know"),
        (("--save",), "--save keeps what is given"),
        (("--match", "a.example"), "--match says what --save is for"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(shop: Shop, here: Path, words: tuple[str, ...], said: str) -> None:
    done = run(here, "try", shop.lamp, *words)
    assert said in one_line(done, 2)
    assert shop.asked == []


def test_sites_says_on_how_many_pages_a_rule_finds_nothing(shop: Shop, crawled: Path) -> None:
    front = f"http://{shop.name}/"
    shop.pages["/"] = "text/html", "<title>Shop</title><p>All that we have, and more of it.</p><a href=/lamp>Lamp</a>"
    assert run(crawled, "sites", "set", shop.name, 'select=[".price"]').returncode == 0
    assert "finds nothing" not in run(crawled, "sites").stdout  # nothing was read by it yet
    assert run(crawled, "check", front, shop.lamp).returncode == 0
    told = run(crawled, "sites").stdout.splitlines()[-1]
    assert told == (
        f"select of the rule of {shop.name} finds nothing on 1 of 2 pages, such as {front}: "
        f"'levada try {front}' shows what is there"
    )
    with levada.open(crawled / "levada-data", create=False) as collection:
        (rule,) = collection.rules()
    assert (rule.selected_on, rule.no_match, rule.no_match_example) == (2, 1, front)


def test_the_headers_of_a_rule_go_with_the_live_page_and_not_to_another_site(shop: Shop, here: Path) -> None:
    other = Shop()
    try:
        shop.moved["/away"] = other.lamp
        settings = here / "levada.toml"
        settings.write_text(
            f'[guard]\nallow = ["{shop.name}", "{other.name}"]\n[politeness]\ndelay = 0.0\n'
            f'[[site]]\nmatch = "{shop.name}"\nheaders = {{ X-Reader = "levada" }}\n'
        )
        tried(here, f"http://{shop.name}/away")
    finally:
        other.close()
    assert [headers.get("X-Reader") for _, headers in (*shop.requests, *other.requests)] == ["levada"] * 2 + [None] * 2


def test_a_page_that_kills_the_parser_ends_the_trial_with_its_reason(shop: Shop, here: Path) -> None:
    (here / "levada.toml").write_text(f'[guard]\nallow = ["{shop.name}"]\n[parse]\ncpu_seconds = 0.5\n')
    shop.pages["/large"] = "text/html", "<p>" + "<b>x</b>" * 10_000
    endless = "xpath://*[count(//*[count(//*[count(//b) > 0]) > 0]) > 0]"
    done = run(here, "try", f"http://{shop.name}/large", "--select", endless, "--remove", ".ad", "--json")
    told = json.loads(done.stdout)["live"]
    assert (done.returncode, told["reason"]) == (1, "parse-seconds")
    assert [each["note"] for each in told["entries"]] == ["not looked at (parse-seconds)"] * 2
