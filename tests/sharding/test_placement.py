"""A document always lives where a query for it looks."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.sharding.placement import (
    KeyPart,
    Placement,
    Ranges,
    ShardKey,
    decoded_key,
    even_ranges,
    hashed_placement,
    moved,
    quantile_ranges,
)
from levada.sharding.queries import AllOf, AnyOf, Condition, Filter, NoneOf
from levada.sharding.values import AFTER, MISSING, dig, encoded

NUMBERS = st.integers(-(1 << 70), 1 << 70) | st.floats(allow_nan=False) | st.integers(-5, 5)
TEXTS = st.text(alphabet="ab\x00é\U0001f600", max_size=4)
SMALL = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "ab", "b", "a\x00"])
FIELDS = ("a", "b", "c")
DOCUMENTS = st.dictionaries(st.sampled_from(FIELDS), SMALL, max_size=3)


def of_kind(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return st.tuples(kind, kind)


CONDITIONS: st.SearchStrategy[Filter] = st.one_of(
    st.builds(Condition, st.sampled_from(FIELDS), st.just("eq"), st.tuples(SMALL)),
    st.builds(Condition, st.sampled_from(FIELDS), st.just("in"), st.lists(SMALL, max_size=3).map(tuple)),
    st.builds(
        Condition,
        st.sampled_from(FIELDS),
        st.just("range"),
        of_kind(st.none() | st.integers(0, 3)) | of_kind(st.none() | st.sampled_from(["", "a", "ab", "b"])),
    ),
    st.builds(Condition, st.sampled_from(FIELDS), st.just("prefix"), st.tuples(st.sampled_from(["", "a", "ab"]))),
    st.builds(Condition, st.sampled_from(FIELDS), st.just("exists"), st.tuples(st.booleans())),
    st.builds(Condition, st.sampled_from(FIELDS), st.just("other:near"), st.tuples(SMALL)),
)
FILTERS = st.recursive(
    CONDITIONS,
    lambda inner: st.one_of(
        st.builds(AllOf, st.lists(inner, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(NoneOf, st.lists(inner, max_size=2).map(tuple)),
    ),
    max_leaves=6,
)


def same(one: Any, other: Any) -> bool:
    return encoded(one) == encoded(other)


def comparable(one: Any, other: Any) -> bool:
    return type(one) is type(other) or (isinstance(one, int) and isinstance(other, int))


def holds(condition: Condition, document: dict[str, Any]) -> bool:
    value = document.get(condition.field, MISSING)
    match condition.operator:
        case "eq" | "in":
            if not condition.values:
                return True
            null = None in condition.values and value is MISSING
            return null or any(same(value, each) for each in condition.values)
        case "range":
            low, high = condition.values
            if isinstance(value, bool) or value is None or value is MISSING:
                return low is None and high is None
            above = low is None or (comparable(value, low) and value >= low)
            below = high is None or (comparable(value, high) and value <= high)
            return above and below
        case "prefix":
            return isinstance(value, str) and value.startswith(str(condition.values[0]))
        case "exists":
            return (value is not MISSING) == condition.values[0]
    return True


def finds(asked: Filter, document: dict[str, Any]) -> bool:
    if isinstance(asked, Condition):
        return holds(asked, document)
    each = [finds(one, document) for one in asked.of]
    return all(each) if isinstance(asked, AllOf) else any(each) if isinstance(asked, AnyOf) else not any(each)


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    fields = draw(st.permutations(FIELDS))[: draw(st.integers(1, 3))]
    parts = tuple(KeyPart(field, hashed=draw(st.booleans()) and not number) for number, field in enumerate(fields))
    key = ShardKey(parts, draw(st.sampled_from([b"", b"secret"])))
    shards = draw(st.integers(1, 5))
    sample = [key.encode(document) for document in draw(st.lists(DOCUMENTS, max_size=20))]
    ranges = quantile_ranges(sample, shards)
    if parts[0].hashed and draw(st.booleans()):
        ranges = even_ranges(shards, draw(st.integers(1, 3)))
    return Placement(key, ranges, shards, draw(st.sampled_from(["", "c"])))


@given(NUMBERS, NUMBERS)
def test_numbers_stand_in_their_order(one: float, other: float) -> None:
    if one < other:
        assert encoded(one) <= encoded(other)
    within = all(abs(value) < 1 << 63 for value in (one, other))
    if within:
        assert (encoded(one) < encoded(other)) == (one < other)


@given(TEXTS, TEXTS)
def test_texts_stand_in_their_order(one: str, other: str) -> None:
    assert (encoded(one) < encoded(other)) == (one < other)


@given(SMALL | TEXTS | NUMBERS | st.binary(max_size=3), SMALL | TEXTS | NUMBERS | st.binary(max_size=3))
def test_no_encoding_begins_with_another(one: Any, other: Any) -> None:
    if not same(one, other):
        assert not encoded(one).startswith(encoded(other))


def test_kinds_stand_one_after_the_other() -> None:
    values = [MISSING, None, math.nan, -math.inf, -1, 0, 0.5, 1, math.inf, "", "1", b"", False, True]
    assert [encoded(value) for value in values] == sorted(encoded(value) for value in values)
    assert encoded(1) == encoded(1.0) != encoded(True)
    assert encoded(-0.0) == encoded(0)
    assert max(map(encoded, values)) < AFTER


def test_deep_and_strange_values_have_a_place_too() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert encoded(deep) < AFTER
    assert encoded({"b": 1, "a": [1]}) == encoded('{"a":[1],"b":1}')


@given(st.lists(SMALL | TEXTS | NUMBERS | st.binary(max_size=3) | st.just(MISSING), min_size=1, max_size=4))
def test_a_bound_can_be_read_backwards(values: list[Any]) -> None:
    key = ShardKey(tuple(KeyPart(str(number)) for number in range(len(values))))
    data = b"".join(map(encoded, values))
    assert [encoded(value) for value in decoded_key(key, data)] == [encoded(value) for value in values]


def test_a_dotted_field_is_dug_out() -> None:
    document = {"a": {"b": 1}, "c.d": 2}
    assert (dig(document, "a.b"), dig(document, "c.d"), dig(document, "a.x")) == (1, 2, MISSING)


@given(placements(), DOCUMENTS, FILTERS)
def test_a_query_touches_the_shard_of_everything_that_it_finds(
    placement: Placement, document: dict[str, Any], asked: Filter
) -> None:
    if finds(asked, document):
        shard = placement.place(document)
        assert shard in placement.shards_for(asked)
        assert shard in placement.shards_for(asked, locate=lambda value: shard)


@given(placements(), DOCUMENTS)
def test_a_query_that_names_the_whole_key_touches_one_shard(placement: Placement, document: dict[str, Any]) -> None:
    named = {field: value for field, value in document.items() if value is not None}
    if set(placement.key.fields) <= set(named):
        conditions = tuple(Condition(field, "eq", (value,)) for field, value in named.items())
        assert placement.shards_for(AllOf(conditions)) == {placement.place(document)}


@given(placements())
def test_a_placement_can_be_written_and_read_again(placement: Placement) -> None:
    assert msgspec.json.decode(msgspec.json.encode(placement), type=Placement) == placement
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(placement), type=Placement) == placement


@given(placements(), placements(), st.binary(max_size=6))
def test_what_moves_is_what_has_another_owner(one: Placement, other: Placement, key: bytes) -> None:
    old, new = one.ranges, other.ranges
    moves = moved(old, new)
    over = [each for each in moves if each.low <= key and (each.high is None or key < each.high)]
    if old.shard_of(key) == new.shard_of(key):
        assert over == []
    else:
        assert [(each.source, each.target) for each in over] == [(old.shard_of(key), new.shard_of(key))]


def test_equal_ranges_spread_hashes_evenly_without_any_data() -> None:
    placement = hashed_placement("id", 8, rest=("name",))
    counts = [0] * 8
    for number in range(8_000):
        counts[placement.place({"id": number, "name": "x"})] += 1
    assert max(counts) < 1.15 * 1_000


def test_a_secret_changes_where_values_fall() -> None:
    plain, keyed = (hashed_placement("id", 64, secret=secret) for secret in (b"", b"key"))
    assert any(plain.place({"id": number}) != keyed.place({"id": number}) for number in range(20))


def test_alternatives_within_a_condition_are_multiplied_out() -> None:
    key = ShardKey((KeyPart("status"), KeyPart("category")))
    sample = [key.encode({"status": status, "category": category}) for status in (1, 2) for category in range(50)]
    placement = Placement(key, quantile_ranges(sample, 10), 10)
    either = AnyOf((Condition("category", "eq", (3,)), Condition("category", "eq", (4,))))
    assert len(placement.shards_for(AllOf((Condition("status", "eq", (1,)), either)))) == 1
    assert len(placement.shards_for(either)) == 10


def test_what_cannot_be_is_looked_for_nowhere() -> None:
    placement = hashed_placement("id", 4)
    both = AllOf((Condition("id", "eq", (1,)), Condition("id", "eq", (2,))))
    assert placement.shards_for(both) == frozenset()
    assert placement.shards_for(Condition("id", "in", (), 0)) == frozenset()
    assert len(placement.shards_for(Condition("id", "in", (), 3))) == 4  # values that are not known


def test_the_directory_leads_to_one_shard_where_the_key_would_not() -> None:
    placement = msgspec.structs.replace(hashed_placement("category", 8, rest=("id",)), directory="id")
    asked = Condition("id", "eq", (7,))
    assert len(placement.shards_for(asked)) == 8
    assert placement.shards_for(asked, locate=lambda value: 3) == {3}
    assert placement.shards_for(asked, locate=lambda value: None) == frozenset()


@pytest.mark.parametrize(
    ("bounds", "owners"), [((b"a",), (0,)), ((b"b", b"a"), (0, 1, 2)), ((b"a", b"a"), (0, 1, 2)), ((), (-1,))]
)
def test_ranges_that_cannot_be_are_refused(bounds: tuple[bytes, ...], owners: tuple[int, ...]) -> None:
    with pytest.raises(ValueError):
        Ranges(bounds, owners)


def test_a_placement_that_cannot_be_is_refused() -> None:
    key = ShardKey((KeyPart("a"),))
    with pytest.raises(ValueError, match="at least one shard"):
        Placement(key, Ranges((), (0,)), 0)
    with pytest.raises(ValueError, match="shard 3 of 2"):
        Placement(key, Ranges((), (3,)), 2)
    with pytest.raises(ValueError, match="at least one field"):
        ShardKey(())
    with pytest.raises(ValueError, match="each field once"):
        ShardKey((KeyPart("a"), KeyPart("a", hashed=True)))
