"""The guide `structured-data.md`, typed as it stands there, on a shop whose prices change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import levada as product
from tests.story.commands import levada
from tests.story.guides import guide_commands, guide_settings, typed
from tests.story.test_watch_a_blog import blog_server

pytestmark = pytest.mark.timeout(240)


def thermos(price: str, availability: str = "InStock", *, text: str = "Keeps tea hot for a day.") -> str:
    """A page that says its price in JSON-LD only."""
    described = {
        "@context": "https://schema.org",
        "@type": "Product",
        "name": "Thermos 1 l",
        "brand": {"@type": "Brand", "name": "Acme"},
        "offers": {
            "@type": "Offer",
            "price": price,
            "priceCurrency": "TRY",
            "availability": f"https://schema.org/{availability}",
        },
    }
    script = f'<script type="application/ld+json">{json.dumps(described)}</script>'
    return f"<title>Thermos</title>{script}<h1>Thermos</h1><p>{text}</p>"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a shop, and the page of a product."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text(
        '<title>Shop</title><p>We sell <a href="/thermos.html">thermos flasks</a> and <a href="/mug.html">mugs</a>.'
    )
    page = folder / "thermos.html"
    page.write_text(thermos("1299.00"))
    (folder / "mug.html").write_text(
        '<title>Mug</title><div itemscope itemtype="https://schema.org/Product"><h1 itemprop="name">Mug</h1>'
        '<p>Of steel, <span itemprop="offers" itemscope itemtype="https://schema.org/Offer">for '
        '<span itemprop="price">2.049,90 TL</span></span> a piece.</p></div>'
    )
    with blog_server(folder) as address:
        (tmp_path / "levada.toml").write_text(f'[guard]\nallow = ["{address}"]\n[politeness]\ndelay = 0\n')
        yield address, page


def test_the_guide_finds_shows_and_exports_what_pages_describe(tmp_path: Path, shop: tuple[str, Path]) -> None:
    address, page = shop
    said = []
    for command in guide_commands("structured-data"):
        if "check" in command:
            page.write_text(thermos("1199.00"))
        done = typed(command, tmp_path, {"https://shop.example": f"http://{address}"})
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        said.append(done.stdout)

    _, search, _, shown, _ = said
    assert f"http://{address}/thermos.html" in search
    assert "mug" not in search
    assert "Product (json-ld)" in shown
    assert "    price: 1199.00" in shown
    as_json = levada("page", f"http://{address}/thermos.html", "--structured", "--json", cwd=tmp_path)
    facts = json.loads(as_json.stdout)
    assert facts["items"][0]["properties"]["brand"] == [{"type": ["Brand"], "properties": {"name": ["Acme"]}}]
    offer = {"price": "1199.00", "currency": "TRY", "availability": "InStock", "name": "Thermos 1 l"}
    assert (facts["offers"], len(facts["prices"]), facts["notes"]) == ([offer], 2, [])
    prices = shown[shown.index("prices") :]
    assert prices.index("1299.00 TRY  InStock") < prices.index("1199.00 TRY  InStock")
    rows = [json.loads(line) for line in (tmp_path / "products.jsonl").read_text().splitlines()]
    found = {row["url"].split("/")[3]: (row["price"], row["currency"], row["availability"]) for row in rows}
    assert found == {
        "": ("", "", ""),
        "thermos.html": ("1199.00", "TRY", "InStock"),
        "mug.html": ("2049.90", "TRY", ""),
    }


def test_a_price_that_changes_in_the_data_alone_is_noted_in_the_version_and_found_at_once(
    tmp_path: Path, shop: tuple[str, Path]
) -> None:
    address, page = shop
    assert levada("crawl", f"http://{address}/", "--once", cwd=tmp_path).returncode == 0
    url = f"http://{address}/thermos.html"
    with product.open(tmp_path / "levada-data") as collection:
        page.write_text(thermos("1199.00"))
        assert not collection.check(url).changed
        page.write_text(thermos("1199.00", "OutOfStock"))
        collection.check(url)
        page.write_text(thermos("1399.50", text="Keeps tea hot for two days."))
        assert collection.check(url).changed
        page.write_text(thermos("1399.50", text="Keeps tea hot for two days."))
        collection.check(url)

        prices = collection.prices(url)
        assert [(each.price, each.availability, each.version) for each in prices] == [
            ("1299.00", "InStock", 1),
            ("1199.00", "InStock", 1),
            ("1199.00", "OutOfStock", 1),
            ("1399.50", "InStock", 2),
        ]
        assert [each.at for each in prices] == sorted(each.at for each in prices)
        assert [change.version for change in collection.changes() if change.url == url] == [1, 2]
        assert collection.data(url, 1).offers[0].availability == "OutOfStock"
    for query, status in (("price:>1399 brand:acme", 0), ("price:<1300", 3)):
        assert levada("search", query, cwd=tmp_path).returncode == status, query


def test_a_rule_of_the_guide_makes_a_price_what_is_compared_and_told(tmp_path: Path, shop: tuple[str, Path]) -> None:
    address, page = shop
    (rule,) = guide_settings("structured-data")
    settings = (tmp_path / "levada.toml").read_text() + rule.replace("shop.example", address)
    (tmp_path / "levada.toml").write_text(settings)
    assert levada("crawl", f"http://{address}/", "--once", cwd=tmp_path).returncode == 0
    url = f"http://{address}/thermos.html"
    with product.open(tmp_path / "levada-data") as collection:
        assert collection.page(url).text == "1299.00 TRY\nInStock"
        page.write_text(thermos("1299.00", text="Keeps tea hot for two days."))
        assert not collection.check(url).changed
        page.write_text(thermos("1299.00", "OutOfStock"))
        check = collection.check(url)
        assert check.changed
        assert "-InStock" in str(check.diff)
        assert "+OutOfStock" in str(check.diff)
        assert [each.availability for each in collection.prices(url)] == ["InStock", "OutOfStock"]
        assert collection.why(f"http://{address}/").page.reason is product.Reason.NO_MATCH
