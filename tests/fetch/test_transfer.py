"""What an exchange holds in memory is what its limits count."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from levada.core.reasons import Reason
from levada.fetch.guard import AddressGuard
from levada.fetch.transfer import _SMALL, FetchLimits, SharedBuffer, Transfer


class NoCurl:
    """Takes every option."""

    def setopt(self, *_: Any) -> None:
        pass


def transfer(**limits: int) -> Transfer:
    found = FetchLimits(**limits)
    return Transfer(NoCurl(), found, AddressGuard(), SharedBuffer(found.max_buffered_bytes, 4))


def begun(**limits: int) -> Transfer:
    made = transfer(**limits)
    made._deadline = float("inf")
    return made


@given(st.lists(st.sampled_from([1, 2, 100, _SMALL - 1, _SMALL, 3 * _SMALL]), max_size=200))
def test_pieces_of_any_size_are_the_body(sizes: list[int]) -> None:
    exchange = begun()
    pieces = [bytes([at % 256]) * size for at, size in enumerate(sizes)]
    for piece in pieces:
        assert exchange._take_body(piece) is None
    assert b"".join(exchange._body) == b"".join(pieces)


def test_a_body_in_tiny_pieces_takes_hardly_more_than_its_bytes() -> None:
    exchange = begun()
    for _ in range(100_000):
        exchange._take_body(b"xy")
    assert sum(sys.getsizeof(piece) + 8 for piece in exchange._body) < 2 * 200_000


def test_a_head_of_tiny_lines_is_cut() -> None:
    exchange = begun()
    taken = 0
    while exchange._take_head(b"a:\r\n") is None:
        taken += 1
    assert taken < 5_000
    assert exchange._stopped is not None
    assert exchange._stopped[0] is Reason.HEADER_BYTES
