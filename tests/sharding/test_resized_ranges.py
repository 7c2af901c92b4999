"""Shards that come and go: each owner gets its share, and no more moves than must."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from levada.sharding.placement import HASH_TAG, Ranges, even_ranges, moved, resized_ranges

ALL = 1 << 64
owners_of = st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True)
hashes = st.integers(0, ALL - 1)


def position(bound: bytes | None) -> int:
    return ALL if bound is None else int.from_bytes(bound[1:9].ljust(8, b"\0"), "big")


def widths(ranges: Ranges) -> Counter[int]:
    found = Counter[int]()
    for low, high, owner in ranges.each():
        found[owner] += position(high) - position(low)
    return found


def moved_width(old: Ranges, new: Ranges) -> int:
    return sum(position(each.high) - position(each.low) for each in moved(old, new))


@given(st.lists(owners_of, min_size=1, max_size=5))
def test_each_owner_gets_its_share_and_only_what_must_moves(steps: list[list[int]]) -> None:
    ranges = even_ranges(3)
    for owners in steps:
        before, new = widths(ranges), resized_ranges(ranges, owners)
        after = widths(new)
        assert set(after) == set(owners)
        assert all(abs(width - ALL / len(owners)) <= 1 for width in after.values())
        must = sum(max(0, width - after.get(owner, 0)) for owner, width in before.items())
        assert moved_width(ranges, new) == must
        assert len(new.bounds) <= len(ranges.bounds) + len(owners)
        ranges = new


@given(owners_of, hashes, hashes, hashes)
def test_cuts_within_one_hash_stay_in_order(owners: list[int], first: int, second: int, third: int) -> None:
    """A cut that was advised may lie between two pages of one site."""
    low, middle, high = sorted((first, second, third))
    cuts = {HASH_TAG + low.to_bytes(8, "big") + b"a", HASH_TAG + middle.to_bytes(8, "big") + b"b"}
    cuts |= {HASH_TAG + middle.to_bytes(8, "big") + b"c", HASH_TAG + high.to_bytes(8, "big")}
    bounds = tuple(sorted(cuts))
    old = Ranges(bounds, tuple(number % 3 for number in range(len(bounds) + 1)))
    new = resized_ranges(old, owners)
    assert all(abs(width - ALL / len(owners)) <= 1 for width in widths(new).values())
    before, after = widths(old), widths(new)
    must = sum(max(0, width - after.get(owner, 0)) for owner, width in before.items())
    assert moved_width(old, new) == must


def test_a_third_of_the_keys_moves_to_a_third_server() -> None:
    old = even_ranges(2)
    new = resized_ranges(old, [0, 1, 2])
    assert abs(moved_width(old, new) - ALL / 3) <= 2
    assert {each.target for each in moved(old, new)} == {2}


def test_the_same_owners_keep_everything() -> None:
    for count in range(1, 9):
        assert resized_ranges(even_ranges(count), range(count)) == even_ranges(count)
