"""Microdata, RDFa and meta elements as pages write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.structured import Offer, unpack_data
from levada.testing.common import properties
from tests.pages.structured.reading import data_of, page_with, parsed, plain

SHOP = """
<div itemscope itemtype="https://schema.org/Product" itemid="#t" itemref="extra">
  <h1 itemprop="name">Thermos
     1 l</h1>
  <a itemprop="url" href="../thermos?x=1">more</a> <img itemprop="image" src="/t.jpg">
  <div itemprop="offers" itemscope itemtype="http://schema.org/Offer">
    <span itemprop="price" content="1299.00">1.299,00 TL</span>
    <meta itemprop="priceCurrency" content="TRY"><link itemprop="availability" href="http://schema.org/InStock">
    <time itemprop="priceValidUntil" datetime="2026-12-31">the end of the year</time>
    <data itemprop="sku" value="T-1">first</data>
  </div>
  <p itemprop="description category">Keeps tea hot</p>
  <div itemscope itemtype="https://schema.org/Person"><b itemprop="name">A stranger</b></div>
</div>
<p id="extra"><b itemprop="color">blue</b></p>
"""


def test_microdata_is_read_as_the_standard_says() -> None:
    thermos, stranger = data_of(body=SHOP).items
    assert plain(thermos) == {
        "@type": "Product",
        "name": "Thermos 1 l",
        "url": "https://shop.example/thermos?x=1",
        "image": "https://shop.example/t.jpg",
        "offers": {
            "@type": "Offer",
            "price": "1299.00",
            "priceCurrency": "TRY",
            "availability": "InStock",
            "priceValidUntil": "2026-12-31",
            "sku": "T-1",
        },
        "description": "Keeps tea hot",
        "category": "Keeps tea hot",
        "color": "blue",
    }
    assert (thermos.id, thermos.source) == ("#t", "microdata")
    assert plain(stranger) == {"@type": "Person", "name": "A stranger"}


def test_rdfa_lite_is_read() -> None:
    event = """<div vocab="https://schema.org/" typeof="MusicEvent" resource="#concert">
      <span property="name">A concert at the pier</span>
      <time property="startDate" datetime="2026-05-01T20:00+03:00">in May</time>
      <div property="location" typeof="Place"><span property="name schema:legalName">Harbour hall</span></div>
      <a property="url" href="/concert">tickets</a>
    </div>"""
    (found,) = data_of(body=event).items
    assert plain(found) == {
        "@type": "MusicEvent",
        "name": "A concert at the pier",
        "startDate": "2026-05-01T20:00+03:00",
        "location": {"@type": "Place", "name": "Harbour hall", "legalName": "Harbour hall"},
        "url": "https://shop.example/concert",
    }
    assert found.source == "rdfa"


def test_meta_elements_become_items_with_the_names_of_schema_org() -> None:
    head = """<meta property="og:type" content="product"><meta property="og:title" content="Mug &amp; cup">
      <meta property="product:price:amount" content="19,90"><meta property="product:price:currency" content="EUR">
      <meta property="product:availability" content="in stock"><meta property="og:image" content="/m.jpg">
      <meta name="twitter:title" content="Mug"><meta name="twitter:creator" content="@shop">
      <meta name="DC.creator" content="Ada"><meta name="DCTERMS.issued" content="2026-01-31">
      <meta name="dc.nothing" content="x"><meta property="og:nothing" content="x">"""
    data = data_of(head)
    assert {item.source: plain(item) for item in data.items} == {
        "opengraph": {
            "@type": "Product",
            "name": "Mug & cup",
            "image": "/m.jpg",
            "offers": {"@type": "Offer", "price": "19,90", "priceCurrency": "EUR", "availability": "InStock"},
        },
        "twitter": {"@type": "WebPage", "name": "Mug", "author": "@shop"},
        "dublin-core": {"@type": "CreativeWork", "author": "Ada", "datePublished": "2026-01-31"},
    }
    assert data.offers == (Offer("19.90", "EUR", "InStock", "Mug & cup"),)


def test_a_page_that_describes_nothing_has_no_data() -> None:
    assert parsed(page_with('<meta name="description" content="Tea">', "<p itemprop=x property=y>no")).data == b""


@pytest.mark.parametrize(
    "hostile",
    [
        '<div itemscope itemtype="https://schema.org/Thing">' * 3_000,
        '<i itemscope itemprop="x" itemtype="https://schema.org/Thing">' * 3_000,
        "<b>" * 2_000 + '<i itemscope itemtype="https://schema.org/T"><i itemprop=x>y</i></i>' * 2_000,
        '<div itemscope itemtype="https://schema.org/T" id="a" itemref="a b">'
        '<p id="b" itemprop="x" itemscope itemref="a">',
        '<p id="a" itemprop="x" itemscope itemref="b" itemtype="https://schema.org/T"></p>'
        '<p id="b" itemprop="x" itemscope itemref="a"></p>',
        '<p typeof="https://schema.org/T" property="x">' * 3_000,
        '<meta itemscope itemprop="" itemtype="https://schema.org/ https://schema.org/"><a itemprop=x href="http://[">',
        '<p itemscope itemtype="https://schema.org/T">' + "<i itemprop=x>" * 2_000 + "word " * 300_000,
        '<p itemscope itemtype="https://schema.org/T">' + "<i itemprop=x>y</i>" * 100_000,
        '<div itemscope itemtype="https://schema.org/T">' + '<meta itemprop="x" content="y">' * 20_000,
    ],
)
def test_hostile_markup_is_kept_small(hostile: str) -> None:
    found = parsed(page_with(body=hostile))
    assert len(found.data) < 100_000
    assert sum(1 for item in unpack_data(found.data).items for _ in item.walk()) <= 400


TAGS = st.lists(
    st.sampled_from(
        [
            "<div itemscope itemtype='https://schema.org/A'>",
            "<p itemprop=a>",
            "<i itemprop='a b' itemscope>",
            "<p id=x itemprop=c itemscope itemref='x y'>",
            "<b id=y itemprop=d>",
            "<p typeof=T property=p vocab='https://schema.org/'>",
            "<meta property=q content=v>",
            "<td typeof=U>",
            "<table>",
            "text",
            "</div>",
            "</p>",
            "</i>",
        ]
    ),
    max_size=25,
).map("".join)


@properties(200)
@given(TAGS)
def test_any_markup_is_read(markup: str) -> None:
    assert parsed(page_with(body=f"<!-- schema.org -->{markup}")).reason is None
