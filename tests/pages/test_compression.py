"""Text and body packed together come apart again, and what is damaged says so."""

from __future__ import annotations

from random import Random

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from levada.pages.compression import content_size, pack_content, unpack_content, unpack_text

LONG = Random(1).randbytes(300_000)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_what_was_packed_comes_apart_again(text: bytes, body: bytes) -> None:
    packed = pack_content(text, body, 1)
    assert unpack_content(packed) == (text, body)
    assert unpack_text(packed) == text
    assert content_size(packed) == 4 + len(text) + len(body)


@pytest.mark.parametrize(("text", "body"), [(b"short", LONG), (LONG, b"short"), (LONG, LONG), (b"", LONG), (LONG, b"")])
def test_a_long_page_comes_apart_too(text: bytes, body: bytes) -> None:
    packed = pack_content(text, body, 1)
    assert unpack_content(packed) == (text, body)
    assert unpack_text(packed) == text


def test_a_body_that_holds_the_text_again_takes_little_room() -> None:
    text = LONG[:6_000].hex().encode()
    assert len(pack_content(text, b"<p>" + text, 1)) < len(pack_content(text, b"", 1)) + 50


@pytest.mark.parametrize("read", [unpack_content, unpack_text])
@pytest.mark.parametrize("body", [b"body", LONG])
def test_damage_says_so(read: object, body: bytes) -> None:
    assert callable(read)
    whole = pack_content(b"text" * 50_000, body, 1)
    too_long = zstandard.ZstdCompressor().compress((len(body) + 1).to_bytes(4, "little") + body)
    for damaged in (b"", b"no frame", whole[:40], too_long):
        with pytest.raises((zstandard.ZstdError, ValueError)):
            read(damaged)
