"""The advised key is the best candidate, with its reasons."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from levada.lab.sharding.ads import ads, ads_log
from levada.lab.sharding.comparison import Board
from levada.sharding.advice import Advice, advise, fields_to_keep
from levada.sharding.evaluation import Evaluator, assigned, pieces_of
from levada.sharding.placement import Placement, hashed_placement
from levada.sharding.queries import AllOf, Condition, QueryEntry
from levada.sharding.sample import Sample
from levada.sharding.workload import LogStatistics, Workload
from tests.sharding.boards import advice_on, small_board


@pytest.fixture(scope="module")
def advice() -> Advice:
    return advice_on(small_board(6_000), 8)


def advised(log: list[QueryEntry], documents: list[dict[str, Any]], shards: int = 4, **said: Any) -> Advice:
    statistics = LogStatistics.of(log)
    found = "_id" if any("_id" in each for each in documents) else ""
    return advise(log, statistics, Sample(documents, fields_to_keep(statistics), found), shards, **said)


def asks(**values: Any) -> QueryEntry:
    return QueryEntry("c", "find", filter=AllOf(tuple(Condition(f, "eq", (v,)) for f, v in values.items())))


def test_ours_at_eight_shards_beats_the_papers_key_on_queries_it_has_not_seen(advice: Advice) -> None:
    fresh = Board(small_board(6_000, seed=2)).evaluator()
    paper = advice.of_kind("paper")
    assert paper is not None
    ours, theirs = fresh.figures(advice.chosen.placement), fresh.figures(paper.placement)
    assert ours.capacity >= 1.8 * theirs.capacity
    assert ours.shards_per_query <= 1.5
    assert advice.chosen.figures.insert_max_mean <= 1.2  # 75 newest documents per shard: noise alone makes it 1.15


def test_it_still_does_where_most_ads_are_active_and_with_few_shards() -> None:
    for shards in (2, 8):
        known = advice_on(small_board(6_000, 0.9), shards)
        fresh = Board(small_board(6_000, 0.9, seed=2)).evaluator()
        paper = known.of_kind("paper")
        assert paper is not None
        ours, theirs = fresh.figures(known.chosen.placement), fresh.figures(paper.placement)
        assert ours.capacity >= theirs.capacity * (1.05 if shards == 8 else 1.0)


def test_no_field_that_writes_change_is_in_a_key_of_ours(advice: Advice) -> None:
    assert advice.mutable == ("status",)
    for each in advice.tried:
        assert ("status" in each.placement.key.fields) == (each.kind == "paper")
    assert advice.of_kind("paper") is not None
    assert advice.tried[-1].refused == "status: writes change it, and documents would move"
    assert any("status is in none of Levada's keys" in words for words in advice.why)


def test_the_user_may_say_what_changes() -> None:
    log = [asks(site=number % 40, page=number) for number in range(400)]
    documents = [{"_id": number, "site": number % 40, "page": number} for number in range(2_000)]
    assert "site" in advised(log, documents).chosen.key
    assert "site" not in advised(log, documents, mutable=["site"]).chosen.key
    update = QueryEntry("c", "update", filter=Condition("_id", "eq", (1,)), changes=("site", "*"))
    assert "site" not in advised([*log, update], documents).chosen.key
    assert "site" in advised([*log, update], documents, immutable=["site"]).chosen.key


def test_figures_can_be_reckoned_by_hand() -> None:
    documents = [{"_id": number, "a": number % 4} for number in range(4_000)]
    sample = Sample(documents, ["a"], "_id")
    log = [asks(a=0)] * 6 + [asks(a=1)] * 2 + [QueryEntry("c", "find", times=2)]
    placement = hashed_placement("a", 4, rest=("_id",))
    homes = {value: placement.place({"a": value}) for value in range(4)}
    figures = Evaluator(Workload(log, sample), sample).figures(placement)
    loads = Counter(dict.fromkeys(range(4), 2))
    loads[homes[0]] += 6
    loads[homes[1]] += 2
    assert figures.shards_per_query == pytest.approx((6 + 2 + 2 * 4) / 10)
    assert figures.single_shard == 0.8
    assert figures.capacity == pytest.approx(10 / max(loads.values()))
    assert figures.unsplittable == 0
    assert figures.moved == 0.0


def test_a_key_without_the_id_has_chunks_that_cannot_be_split() -> None:
    documents = [{"a": number % 4} for number in range(400)]
    sample = Sample(documents, ["a"])
    figures = Evaluator(Workload([asks(a=1)], sample), sample).figures(hashed_placement("a", 4))
    assert figures.unsplittable == 4


def test_a_growing_key_sends_every_insert_to_one_shard() -> None:
    model = small_board(2_000)
    board = Board(model)
    from levada.sharding.placement import KeyPart, ShardKey, quantile_ranges

    key = ShardKey((KeyPart("_id"),))
    evaluator = board.evaluator()
    placement = Placement(key, quantile_ranges(evaluator.keys(key), 8), 8)
    assert evaluator.figures(placement).insert_max_mean == 8.0


def test_a_status_in_front_moves_documents_with_every_change(advice: Advice) -> None:
    paper = advice.of_kind("paper")
    assert paper is not None
    assert paper.figures.moved > 0.5
    assert advice.chosen.figures.moved == 0.0


def test_a_value_too_hot_for_one_shard_is_shared_by_several() -> None:
    documents = [{"_id": n, "a": 0 if n % 2 else n, "b": n % 97} for n in range(4_000)]
    log = [asks(a=0 if n % 2 else n, b=n % 97) for n in range(1_000)]
    found = advised(log, documents, shards=8)
    zoned = next(each for each in found.tried if each.kind == "zones" and each.placement.key.fields[0] == "a")
    assert [zone.value for zone in zoned.placement.zones] == [0]
    assert zoned.figures.storage_max_mean < 1.1


def test_pieces_hold_every_document_and_owners_stay_even() -> None:
    starts = [bytes([0x70, number % 50]) for number in range(5_000)]
    keys = [start + number.to_bytes(4, "big") for number, start in enumerate(starts)]
    pieces = pieces_of(starts, keys, Counter(starts), 4)
    assert sum(piece.documents for piece in pieces) == 5_000
    assert [piece.low for piece in pieces] == sorted(piece.low for piece in pieces)
    ranges, _ = assigned(pieces, [piece.documents for piece in pieces], 4)
    homes = Counter(ranges.shard_of(key) for key in keys)
    assert max(homes.values()) <= 1.05 * 1_250


@pytest.mark.parametrize("hide", ["drop", "hash"])
def test_queries_that_do_not_tell_their_values_are_marked_as_guessed(hide: str) -> None:
    model = small_board(3_000)

    def hidden(condition: Condition) -> Condition:
        values = () if hide == "drop" else tuple(f"#{hash(v) & 0xFFFFFFFFFFFFFFFF:016x}" for v in condition.values)
        return msgspec.structs.replace(condition, values=values if condition.operator == "eq" else ())

    log = []
    for query in ads_log(model):
        if isinstance(query.filter, AllOf):
            conditions = tuple(hidden(each) for each in query.filter.of if isinstance(each, Condition))
            query = msgspec.structs.replace(query, filter=AllOf(conditions))
        log.append(query)
    found = advised(log, ads(model), 8)
    assert any("lack their values" in note for note in found.notes)
    assert found.chosen.placement.key.fields[0] == "category_id"
    assert found.chosen.figures.shards_per_query < 1.6


def test_a_hidden_value_of_an_array_narrows_nothing() -> None:
    sample = Sample([{"tags": [1, 2]}], ["tags"])
    workload = Workload([QueryEntry("c", "find", filter=Condition("tags", "eq"))], sample)
    assert workload.guessed == 1
    assert workload.touches(hashed_placement("tags", 4))[1] == [0, 0, 0, 0, 1]


def test_what_is_missing_or_mixed_is_said() -> None:
    log = [asks(code=number % 9) for number in range(90)]
    documents = [{"code": str(n % 9) if n % 10 == 0 else n % 9, "tags": [1]} for n in range(300)]
    found = advised([*log, asks(tags=1)], documents)
    told = " ".join(found.notes)
    assert "the sample has no id" in told
    assert "code is of several kinds (number in 90.0%, text in 10.0%)" in told
    assert "300 documents are too few" in told
    assert "tags is an array" in told
    assert all(each.kind != "hashed-id" for each in found.tried)


def test_a_field_that_most_documents_do_not_have_is_a_hot_value_too() -> None:
    documents = [{"_id": n, **({"a": n} if n % 3 == 0 else {})} for n in range(3_000)]
    found = advised([asks(a=n * 3) for n in range(300)] + [asks(gone=1)] * 9, documents, shards=8)
    zoned = found.of_kind("zones")
    assert zoned is not None
    assert [zone.value for zone in zoned.placement.zones] == [None]
    assert msgspec.json.encode(found)
    assert {facts.field: facts.distinct for facts in found.fields} == {"a": 1_000, "gone": 0, "_id": 3_000}


def test_where_nothing_is_named_only_the_id_is_left() -> None:
    found = advised([QueryEntry("c", "find")] * 5, [{"_id": n} for n in range(2_000)])
    assert found.chosen.kind == "hashed-id"
    assert "hash(_id)" in found.why[0]


def test_a_key_that_would_answer_more_is_named_with_what_it_costs() -> None:
    """The newest documents are all of one site: by site they would all go to one shard."""
    documents = [{"_id": n, "site": f"s{n % 40}" if n < 2_650 else "s1"} for n in range(3_000)]
    log = [asks(site=f"s{n % 40}") if n % 10 else asks(_id=n) for n in range(2_000)]
    found = advised(log, documents, immutable=["site"])
    stronger = max(found.tried, key=lambda each: each.figures.capacity)
    if stronger is found.chosen:
        pytest.fail("the case no longer shows a trade: make inserts pile up more")
    said = next(each for each in found.why if "times as many queries" in each)
    assert stronger.name in said
    assert "inserts pile up" in said
    assert not any("often enough" in each for each in found.why)


def test_an_advice_can_be_written(advice: Advice) -> None:
    assert msgspec.json.decode(msgspec.json.encode(advice))["shards"] == 8
