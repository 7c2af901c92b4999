"""JSON-LD as shops, newspapers, kitchens and calendars write it, and as nobody should."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.structured import Offer, pack_data, unpack_data
from levada.pages.structured.building import DEEPEST, MOST_ITEMS, MOST_NOTES
from levada.testing.common import properties
from tests.pages.structured.reading import data_of, json_ld, page_with, parsed, plain

THERMOS = {
    "@context": "https://schema.org/",
    "@type": "Product",
    "name": "Thermos 1 l",
    "brand": {"@type": "Brand", "name": "Acme"},
    "aggregateRating": {"@type": "AggregateRating", "ratingValue": 4.50, "reviewCount": 12},
    "offers": {
        "@type": "Offer",
        "price": 1299.10,
        "priceCurrency": "TRY",
        "availability": "https://schema.org/InStock",
        "isFamilyFriendly": True,
    },
}


def test_a_product_keeps_its_names_and_its_numbers_as_written() -> None:
    script = '{"@context": "http://schema.org", "@type": "Product", "name": "Pen", "offers": {"price": 1299.10}}'
    data = data_of(json_ld(THERMOS, script))
    thermos, pen = data.items
    assert plain(thermos) == {
        "@type": "Product",
        "name": "Thermos 1 l",
        "brand": {"@type": "Brand", "name": "Acme"},
        "aggregateRating": {"@type": "AggregateRating", "ratingValue": "4.5", "reviewCount": "12"},
        "offers": {
            "@type": "Offer",
            "price": "1299.1",
            "priceCurrency": "TRY",
            "availability": "InStock",
            "isFamilyFriendly": "true",
        },
    }
    assert plain(pen) == {"@type": "Product", "name": "Pen", "offers": {"price": "1299.10"}}
    assert {item.source for item in data.items} == {"json-ld"}
    assert data.offers[0] == Offer("1299.1", "TRY", "InStock", "Thermos 1 l")
    assert data.notes == ()


def test_a_graph_is_joined_by_its_ids_and_an_item_stands_in_full_once() -> None:
    graph = {
        "@context": "https://schema.org",
        "@graph": [
            {"@type": "Organization", "@id": "#org", "name": "The Harbour Times"},
            {
                "@type": "NewsArticle",
                "@id": "#article",
                "headline": "A ferry leaves",
                "author": [{"@id": "#ada"}, {"@type": "Person", "name": "Grace"}],
                "publisher": {"@id": "#org"},
                "isPartOf": {"@id": "#page"},
                "about": {"@id": "https://elsewhere.example/#ferry"},
            },
            {"@type": "WebPage", "@id": "#page", "publisher": {"@id": "#org"}},
            {"@type": ["Person", "schema:Author"], "@id": "#ada", "name": "Ada"},
        ],
    }
    (article,) = data_of(json_ld(graph)).items
    assert plain(article) == {
        "@type": "NewsArticle",
        "headline": "A ferry leaves",
        "author": [{"@type": "Person Author", "name": "Ada"}, {"@type": "Person", "name": "Grace"}],
        "publisher": {"@type": "Organization", "name": "The Harbour Times"},
        "isPartOf": {
            "@type": "WebPage",
            "publisher": {"@type": "Organization", "name": "The Harbour Times"},
        },
        "about": "https://elsewhere.example/#ferry",
    }


def test_a_circle_of_ids_ends() -> None:
    circle = [
        {"@context": "https://schema.org", "@id": "#a", "@type": "Thing", "name": "a", "next": {"@id": "#b"}},
        {"@id": "#b", "@type": "Thing", "name": "b", "next": {"@id": "#a"}, "self": {"@id": "#b"}},
    ]
    (found,) = data_of(json_ld(circle)).items
    assert plain(found) == {
        "@type": "Thing",
        "name": "a",
        "next": {
            "@type": "Thing",
            "name": "b",
            "next": {"@type": "Thing", "name": "a"},
            "self": {"@type": "Thing", "name": "b"},
        },
    }


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ('{"@context": "https://schema.org", "name": "Tea & more",}', "Tea & more"),
        ('{"@context": "https://schema.org", "name": "Tea &amp; more"}', "Tea & more"),
        ("{&quot;@context&quot;: &quot;https://schema.org&quot;, &quot;name&quot;: &quot;Tea&quot;}", "Tea"),
        ('<!-- {"@context": "https://schema.org", "name": "Tea"} -->', "Tea"),
        ('//<![CDATA[\n{"@context": "https://schema.org", "name": "Tea"}\n//]]>', "Tea"),
        ('\ufeff {"@context": "https://schema.org", "name": "Tea"};', "Tea"),
        ('{"@context": "https://schema.org", /* of the "house" */ "name": "Tea" // the best\n}', "Tea"),
        (
            '{"@context": "https://schema.org", "name": "Tea // not, ] a comment,}", "list": [1, 2, ], }',
            "Tea // not, ] a comment,}",
        ),
        ('{"@context": "https://schema.org", "name": "Two\nlines"}', "Two lines"),
        ('{"@context": {"@vocab": "https://schema.org/"}, "schema:name": {"@value": "Çay", "@language": "tr"}}', "Çay"),
        ('{"@context": "https://schema.org", "http://schema.org/name": ["Tea", null, 4]}', "Tea"),
        ('{"@context": "https://schema.org", "type": "Thing", "id": "#x", "name": "Tea"}', "Tea"),
        ('[[{"@context": "https://schema.org", "name": "Tea"}]]', "Tea"),
        ('{"@context": "https://schema.org", "name": {"@list": ["Tea"]}}', "Tea"),
    ],
)
def test_what_was_meant_is_read(script: str, value: str) -> None:
    data = data_of(json_ld(script))
    assert data.items[0].first("name") == value
    assert data.notes == ()


def test_a_script_that_cannot_be_read_is_noted_and_the_others_are_kept() -> None:
    data = data_of(json_ld('{"@context": "https://schema.org", "name": }', "", THERMOS, "[" * 200_000))
    assert [item.first("name") for item in data.items] == ["Thermos 1 l"]
    assert data.notes == (
        "JSON-LD 1 is no JSON: Expecting value: line 1 column 44 (char 43)",
        "JSON-LD 4 is no JSON: it is nested too deeply",
    )


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"@type": "Thing", "name": "deepest"}
    for _ in range(depth):
        found = {"@type": "Thing", "part": found}
    return found | {"@context": "https://schema.org"}


def test_items_are_kept_down_to_a_depth() -> None:
    (item,) = data_of(json_ld(nested(DEEPEST))).items
    assert [each.first("name") for each in item.walk()][-1] == "deepest"
    data = data_of(json_ld(nested(900)))
    assert len(list(data.items[0].walk())) == DEEPEST + 1
    assert data.notes == (f"items more than {DEEPEST} deep are left out",)


@pytest.mark.parametrize("end", ["", "]", '"', "}"])
@pytest.mark.parametrize("row", ['"' + '\\"' * 100_000, "/*" * 100_000, "," * 200_000, ", " * 100_000, "&" * 200_000])
def test_rows_that_a_careless_pattern_reads_again_and_again_are_read_once(row: str, end: str) -> None:
    data = data_of(json_ld(THERMOS, f"[{row}{end}"))
    assert [item.first("name") for item in data.items] == ["Thermos 1 l"]
    assert all(note.startswith("JSON-LD 2 is no JSON") for note in data.notes)


@pytest.mark.parametrize(
    ("hostile", "note"),
    [
        ({"@graph": [{"@type": "Thing", "name": f"n{n}"} for n in range(5_000)]}, f"more than {MOST_ITEMS} items"),
        ({"@type": "Thing", **{f"p{n}": "x" for n in range(5_000)}}, "more than 80 properties"),
        ({"@type": "Thing", "name": [f"n{n}" for n in range(5_000)]}, "more than 100 values"),
        ({"@type": "Thing", "name": ["x" * 9_000 + str(n) for n in range(60)]}, "is left out: a page may have 30"),
        ({"@graph": [{"@type": "T" * 5_000, "p" * 5_000: "x", "name": "ok"}] * 3}, ""),
        ({"@graph": [{"@id": f"#{n}", "x": [{"@id": f"#{m}"} for m in range(90)]} for n in range(90)]}, "items"),
        ({"@type": "Thing", "a": {"@list": {"@list": {"@list": {"@set": [{"@list": []}]}}}}, "name": "x"}, ""),
        ({"@type": {"@type": 4}, "@id": ["#"], "name": {"@value": {"@value": 1}}, "@graph": 7}, ""),
    ],
)
def test_hostile_data_is_kept_small(hostile: dict[str, Any], note: str) -> None:
    found = parsed(f"<title>x</title>{json_ld({'@context': 'https://schema.org', **hostile})}<p>words".encode())
    data = unpack_data(found.data)
    assert found.reason is None
    assert len(found.data) < 300_000
    assert sum(1 for item in data.items for _ in item.walk()) <= MOST_ITEMS
    assert any(note in each for each in data.notes) or not note
    assert len(data.notes) <= MOST_NOTES


def test_numbers_of_a_million_digits_and_odd_letters_do_no_harm() -> None:
    data = data_of(
        json_ld('{"@context": "https://schema.org", "name": 1' + "0" * 300_000 + ', "x": "\\ud800", "y": NaN}')
    )
    (item,) = data.items
    assert len(item.first("name")) == 1_000
    assert item.first("x") == "?"
    assert item.first("y") == "NaN"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20) | st.sampled_from(["#a", "#b"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["@id", "@type", "@graph", "@value", "@list", "type", "name", "offers", "price", "schema:x"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@properties(150)
@given(JSON)
def test_any_json_is_read_or_noted_and_survives_storing(value: Any) -> None:
    data = data_of(json_ld({"@context": "https://schema.org"}, json.dumps(value).replace("</", "<\\/")))
    assert unpack_data(pack_data(data)) == data


@properties(150)
@given(st.text(alphabet='{}[]",:/*\\ntrue0123&; \n<!--@ab', max_size=200))
def test_any_text_is_read_or_noted(script: str) -> None:
    parsed(page_with(json_ld({"@context": "https://schema.org"}, script)))
