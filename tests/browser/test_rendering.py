"""A single-page application and a static site beside it, crawled with a real browser under `render = "auto"`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.browser.shop import SHOP_BLOCK, routes, set_price, shop_files, static_files
from tests.needs import missing
from tests.serve.browser_session import chromium
from tests.servers.nginx import nginx
from tests.story.commands import contents
from tests.story.secrets_planted import run

SETTINGS = """
[guard]
allow = ["127.0.0.1:{shop}", "127.0.0.1:{still}"]
[politeness]
delay = 0
[[site]]
match = "*"
render = "auto"
"""


class Places(NamedTuple):
    home: Path
    shop: str
    still: str
    still_paths: set[str]

    @property
    def data(self) -> Path:
        return self.home / "levada-data"

    def asked(self, name: str) -> list[str]:
        """The paths that a server was asked for."""
        lines = (self.home / name / "access.log").read_text().splitlines()
        return [line.split('"')[1].split()[1] for line in lines]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    if chromium() is None:
        missing("no Chromium is installed")
    home = tmp_path_factory.mktemp("rendering")
    shop_files(home / "shop-files")
    still_paths = static_files(home / "still-files")
    still_block = f"root {home / 'still-files'};\nerror_page 404 =404 /nothing;\n"
    with (
        nginx(home / "shop", SHOP_BLOCK.format(root=home / "shop-files")) as shop,
        nginx(home / "still", still_block) as still,
    ):
        (home / "levada.toml").write_text(SETTINGS.format(shop=shop, still=still))
        yield Places(home, f"http://127.0.0.1:{shop}", f"http://127.0.0.1:{still}", still_paths)


@pytest.fixture(scope="module")
def crawled(places: Places) -> Places:
    done = run(places.home, "crawl", f"{places.shop}/", f"{places.still}/", "--once")
    assert done.returncode == 0, done.stderr
    return places


def test_every_route_of_the_application_is_stored_as_a_visitor_sees_it(crawled: Places) -> None:
    stored = contents(crawled.data)
    assert {url for url in stored if url.startswith(crawled.shop)} == {crawled.shop + path for path in routes()}
    assert "It costs 103 euros" in stored[f"{crawled.shop}/lamps/3"][1]
    assert "since 1931" in stored[f"{crawled.shop}/about"][1]
    assert all("JavaScript" not in text and "Loading" not in text for _, text in stored.values())


def test_the_static_site_beside_it_is_never_rendered(crawled: Places) -> None:
    stored = contents(crawled.data)
    assert {url for url in stored if url.startswith(crawled.still)} == {
        crawled.still + path for path in crawled.still_paths
    }
    asked = crawled.asked("still")
    assert "/counter.js" not in asked
    assert sorted(path for path in asked if path in crawled.still_paths) == sorted(crawled.still_paths)


def test_the_scripts_of_the_application_are_loaded_once_for_each_tab_and_not_for_every_page(crawled: Places) -> None:
    lines = (crawled.home / "shop" / "access.log").read_text().splitlines()
    loaded = [line for line in lines if "vue.runtime.global.prod.js" in line and '" 200 ' in line]
    assert 1 <= len(loaded) <= 2


def test_a_change_of_what_the_scripts_load_is_found_although_the_shell_stays_the_same(crawled: Places) -> None:
    lamp = f"{crawled.shop}/lamps/5"
    set_price(crawled.home / "shop-files", 5, 777)
    done = run(crawled.home, "check", lamp)
    assert done.returncode == 0, done.stderr
    version, text = contents(crawled.data)[lamp]
    assert version == 2
    assert "777 euros" in text
    assert "777 euros" in run(crawled.home, "diff", lamp).stdout


def test_without_the_rule_nothing_of_the_browser_is_started(places: Places, tmp_path: Path) -> None:
    settings = (places.home / "levada.toml").read_text().partition("[[site]]")[0]
    (tmp_path / "levada.toml").write_text(settings)
    done = run(tmp_path, "crawl", f"{places.shop}/", "--once")
    assert done.returncode in (0, 1)
    assert all("euros" not in text for _, text in contents(tmp_path / "levada-data").values())
    assert not (tmp_path / "levada-data" / "rendering.json").exists()
