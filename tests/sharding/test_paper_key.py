"""The paper's method gives the paper's key."""

from __future__ import annotations

from levada.lab.sharding.comparison import PRINTED_KEY, key_of_table, printed_document
from levada.sharding.paper import QueriedField, Thresholds, paper_key


def test_the_printed_key_comes_out_of_the_printed_table() -> None:
    key = key_of_table()
    assert key.fields == ("status", "category_id", "region_id", "city_id", "_id")
    assert key.text(printed_document()) == PRINTED_KEY == "s04 ct01302 r013 c303 _id011648102"
    reasons = {each.field: each.reason for each in key.dropped}
    assert set(reasons) == {"properties", "is_top"}
    assert reasons["properties"].startswith("far too many values: 122,000 values for 11%")
    assert reasons["is_top"].startswith("far too few values: 2 values for 2%")


def test_fields_that_are_hardly_asked_for_are_ignored() -> None:
    key = paper_key([QueriedField("rare", 100, 0.009), QueriedField("_id", 9, 0.2)], "_id")
    assert key.fields == ("_id",)
    assert key.dropped[0].reason == "in 0.90% of the queries, less than 1%"


def test_the_thresholds_can_be_said() -> None:
    fields = [QueriedField("flag", 2, 0.02), QueriedField("id", 9, 0.2)]
    assert paper_key(fields, "id", Thresholds(least_values=0.01)).fields == ("flag", "id")


def test_other_fields_get_the_shortest_prefix_that_is_free() -> None:
    fields = [
        QueriedField("city", 50, 0.5, 720),
        QueriedField("category", 90, 0.9, 99),
        QueriedField("id", 9, 0.1, 1234),
    ]
    key = paper_key(fields, "id")
    assert key.text({"category": 7, "city": 8, "id": 9}) == "c07 ci008 id0009"


def test_the_padded_text_has_the_order_of_the_compound_key() -> None:
    key = key_of_table()
    documents = [
        {"status": status, "category_id": category, "region_id": 3, "city_id": 4, "_id": number}
        for status in (1, 15)
        for category in (9, 10, 1755)
        for number in (6_145_245, 21_611_833)
    ]
    by_text = sorted(documents, key=key.text)
    assert by_text == sorted(documents, key=key.key.encode)
