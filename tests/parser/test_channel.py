"""A page in the shared buffer stays as it is until it was read."""

from __future__ import annotations

from collections import deque
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from levada.parser.channel import Place, SharedPageBuffer, SharedPageReader

SIZE = 100
STEPS = st.lists(st.one_of(st.integers(1, 60), st.none()), max_size=200)  # a page of so many bytes; one was read


@given(STEPS)
def test_what_lies_there_is_read_as_it_was_laid_down(steps: list[int | None]) -> None:
    with closing(SharedPageBuffer(SIZE)) as page_buffer:
        reader = SharedPageReader(page_buffer.fileno())
        lying: deque[tuple[Place, bytes]] = deque()
        for turn, size in enumerate(steps):
            if size is None:
                if lying:
                    lying.popleft()
                    page_buffer.take_oldest()
            elif place := page_buffer.put(page := bytes([turn % 256]) * size):
                lying.append((place, page))
            assert [reader.page(place) for place, _ in lying] == [page for _, page in lying]


@given(STEPS)
def test_a_page_finds_room_if_there_is_some_in_one_piece(steps: list[int | None]) -> None:
    with closing(SharedPageBuffer(SIZE)) as page_buffer:
        lying: deque[Place] = deque()
        for size in steps:
            if size is None:
                if lying:
                    lying.popleft()
                    page_buffer.take_oldest()
                continue
            place = page_buffer.put(b"x" * size)
            assert place is not None or size >= _largest_gap(lying)
            if place is not None:
                lying.append(place)


def _largest_gap(lying: deque[Place]) -> int:
    """Of the parts after the newest page and before the oldest, where the next one may lie."""
    if not lying:
        return SIZE + 1
    oldest, (newest, size) = lying[0][0], lying[-1]
    free = newest + size
    return oldest - free if free <= oldest else max(SIZE - free + 1, oldest)


def test_a_page_larger_than_the_desk_finds_none() -> None:
    with closing(SharedPageBuffer(SIZE)) as page_buffer:
        assert page_buffer.put(b"x" * (SIZE + 1)) is None
        assert page_buffer.put(b"x" * SIZE) == (0, SIZE)
        assert page_buffer.put(b"x") is None
        page_buffer.take_oldest()
        assert page_buffer.put(b"x") == (0, 1)
