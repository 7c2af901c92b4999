"""Hashes of keys: the thesis's hash, and one that nobody can aim."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.grouping import KeyedHash, MurmurHash
from levada.grouping.keys import Key, KeyCache, key_bytes, murmur3_first64

KEYS = st.one_of(st.binary(max_size=40), st.text(max_size=20), st.integers(-(2**63), 2**63 - 1))


@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [
        (b"", 0, 0),
        (b"Turkey", 13, 18019059272323049271),
        (b"hello", 0, 14688674573012802306),
        (b"The quick brown fox jumps over the lazy dog", 17, 13517088536503734343),
    ],
)
def test_murmur_is_the_one_that_everybody_has(data: bytes, seed: int, expected: int) -> None:
    assert murmur3_first64(data, seed) == expected


def test_the_thesis_takes_the_hash_without_its_sign() -> None:
    assert MurmurHash(13).of("Turkey") == 2**64 - murmur3_first64(b"Turkey", 13)


@given(KEYS, st.binary(min_size=1, max_size=8))
def test_a_hash_is_a_function_of_key_and_secret(key: Key, secret: bytes) -> None:
    hashed = KeyedHash(secret).of(key)
    assert 0 <= hashed < 2**64
    assert KeyedHash(secret).of(key) == hashed


@given(
    st.one_of(
        st.lists(KEYS, max_size=20),
        st.lists(st.text(max_size=90), max_size=20),
        st.lists(st.binary(max_size=90), max_size=20),
    )
)
@settings(deadline=None)
def test_many_keys_hash_like_each_one(keys: list[Key]) -> None:
    for hasher in (KeyedHash(b"s"), MurmurHash(13)):
        assert hasher.many(keys).tolist() == [hasher.of(key) for key in keys]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
@settings(deadline=None)
def test_an_array_of_numbers_hashes_like_each_one(keys: list[int]) -> None:
    for hasher in (KeyedHash(b"s"), MurmurHash(13)):
        assert hasher.many(np.array(keys, np.int64)).tolist() == [hasher.of(key) for key in keys]


def test_unsigned_numbers_hash_like_each_one() -> None:
    keys = [0, 1, 2**63, 2**64 - 1]
    assert KeyedHash(b"s").many(np.array(keys, np.uint64)).tolist() == [KeyedHash(b"s").of(key) for key in keys]


@pytest.mark.parametrize("key", [b"", "", b"\xff\xfe", "\ud800", 2**200, -(2**70), b"x" * 10_000_000])
def test_any_bytes_and_numbers_are_keys(key: Key) -> None:
    assert KeyedHash(b"s").of(key) == KeyedHash(b"s").of(key)


def test_text_and_its_bytes_are_one_key() -> None:
    assert KeyedHash(b"s").of("çay") == KeyedHash(b"s").of("çay".encode())


def test_what_is_no_key_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes, str or int"):
        key_bytes(1.5)  # type: ignore[arg-type]


def test_an_empty_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="secret"):
        KeyedHash(b"")


def test_what_is_remembered_is_bounded() -> None:
    known = KeyCache[int](lambda key: 1)
    for key in range(70_000):
        assert known[key] == 1
    assert len(known) <= 1 << 16
    assert known[b"x" * 1_000] == 1
    assert b"x" * 1_000 not in known
