"""Every valid message is read, and everything else is refused."""

from __future__ import annotations

import resource
import struct
import zlib
from contextlib import suppress
from typing import Any

import bson
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from levada.capture.mongodb.bson import Unreadable, elements
from levada.capture.mongodb.conversation import FAULT, CaptureCounts, Conversation, Conversations
from levada.capture.mongodb.messages import Frames, Silent, read_message, unpack
from levada.sharding.queries import Condition, QueryEntry, Sort
from tests.capture.mongodb_responder import compressed, message, msg

FIND = msg({"find": "c", "filter": {"a": 1}, "$db": "d"})
FOUND = QueryEntry("d.c", "find", filter=Condition("a", "eq", (1,)), at=1.0, source="mongo")


def heard_in(data: bytes, heard: CaptureCounts | None = None) -> list[QueryEntry]:
    heard = heard or CaptureCounts()
    conversation = Conversation(heard)
    found = list(conversation.feed(data, 1.0, "mongo"))
    conversation.close()
    assert [words for words in heard.unreadable if words.startswith(FAULT)] == []
    return found


@pytest.mark.parametrize("compressor", [0, 1, 2, 3], ids=["noop", "snappy", "zlib", "zstd"])
def test_a_compressed_message_is_the_message(compressor: int) -> None:
    assert heard_in(compressed(FIND, compressor)) == [FOUND]


@pytest.mark.parametrize("flags", [0, 1, 2, 1 << 16, 3 | 1 << 16], ids=["none", "checksum", "more", "exhaust", "all"])
def test_flags_change_nothing(flags: int) -> None:
    assert heard_in(msg({"find": "c", "filter": {"a": 1}, "$db": "d"}, flags)) == [FOUND]


def test_sequences_stand_for_arrays_and_inserted_documents_are_counted_wherever_they_stand() -> None:
    update = msg({"update": "c", "$db": "d"}, updates=[{"q": {"a": 1}, "u": {"$set": {"b": 1}}}] * 3)
    assert [query.op for query in heard_in(update)] == ["update"] * 3
    behind = msg({"insert": "c", "$db": "d"}, documents=[{"_id": 1}, {"_id": 2}])
    inside = msg({"insert": "c", "comment": "\x04documents\0", "documents": [{"_id": 1}, {"_id": 2}], "$db": "d"})
    assert [query.inserted for query in heard_in(behind) + heard_in(inside)] == [2, 2]


def legacy_query(name: str, asked: dict[str, Any], limit: int = 0) -> bytes:
    return message(
        2004, struct.pack("<i", 0) + name.encode() + b"\0" + struct.pack("<ii", 0, limit) + bson.encode(asked)
    )


def test_messages_of_old_drivers_are_read() -> None:
    name, one = b"d.c\0", bson.encode({"a": 1})
    change = bson.encode({"$set": {"b": 1}})
    said = [
        legacy_query("d.c", {"a": 1}, -3),
        legacy_query("d.c", {"$query": {"a": 1}, "$orderby": {"b": -1}}),
        legacy_query("d.$cmd", {"$query": {"count": "c", "query": {"a": 1}}, "$readPreference": {}}),
        legacy_query("d.$cmd", {"insert": "c", "documents": [{}, {}]}),
        message(2010, b"d\0find\0" + bson.encode({}) + bson.encode({"find": "c", "filter": {"a": 1}})),
        message(2001, bytes(4) + name + struct.pack("<i", 3) + one + change),
        message(2002, bytes(4) + name + one * 4),
        message(2006, bytes(4) + name + struct.pack("<i", 1) + one),
        message(2005, bytes(4) + name + bytes(12)),
    ]
    found = heard_in(b"".join(said))
    a1 = Condition("a", "eq", (1,))
    expected = [
        QueryEntry("d.c", "find", filter=a1, limit=3),
        QueryEntry("d.c", "find", filter=a1, sort=(Sort("b", False),)),
        QueryEntry("d.c", "count", filter=a1),
        QueryEntry("d.c", "insert", inserted=2),
        QueryEntry("d.c", "find", filter=a1),
        QueryEntry("d.c", "update", filter=a1, changes=("b",), many=True, upsert=True),
        QueryEntry("d.c", "insert", inserted=4),
        QueryEntry("d.c", "delete", filter=a1),
    ]
    assert found == [replace(query, at=1.0, source="mongo") for query in expected]


def test_hello_authentication_and_batches_are_not_logged() -> None:
    heard = CaptureCounts()
    silent: list[dict[str, Any]] = [
        {"hello": 1},
        {"ismaster": 1},
        {"saslStart": 1},
        {"ping": 1},
        {"getMore": 5, "collection": "c"},
    ]
    assert heard_in(b"".join(msg({**body, "$db": "admin"}) for body in silent), heard) == []
    assert heard.silent == len(silent)


@given(st.lists(st.integers(1, 200), min_size=1))
def test_messages_may_come_in_any_pieces(sizes: list[int]) -> None:
    stream, frames, found, at, turn = FIND * 5 + compressed(FIND, 2), Frames(), [], 0, 0
    while at < len(stream):
        found += list(frames.feed(stream[at : at + sizes[turn % len(sizes)]]))
        at, turn = at + sizes[turn % len(sizes)], turn + 1
    assert found == [FIND] * 5 + [compressed(FIND, 2)]
    assert (frames.held, frames.passed_over, frames.gaps) == (0, 0, 0)


@given(st.binary(max_size=400), st.integers(0, 400))
def test_after_bytes_are_lost_the_next_message_is_found(noise: bytes, cut: int) -> None:
    conversation = Conversation(CaptureCounts())
    list(conversation.feed(FIND[:cut], 1.0, "mongo"))
    conversation.lose()
    found = list(conversation.feed(noise.replace(b"\x07", b"") + FIND + FIND, 1.0, "mongo"))
    assert found[-1:] == [FOUND]


def nested(levels: int) -> bytes:
    heads = (struct.pack("<i", 5 + 8 * (levels - level)) + b"\x03a\0" for level in range(levels))
    return b"".join(heads) + b"\5\0\0\0\0" + bytes(levels)


def body_message(body: bytes) -> bytes:
    return message(2013, bytes(4) + b"\0" + body)


@pytest.mark.parametrize("levels", [1_000, 100_000])
def test_a_document_nested_without_end_is_refused(levels: int) -> None:
    heard = CaptureCounts()
    command = bson.encode({"find": "c", "$db": "d"})[4:-1] + b"\x03filter\0" + nested(levels)
    whole = struct.pack("<i", len(command) + 5) + command + b"\0"
    assert len(heard_in(body_message(whole) + FIND, heard)) <= 2
    assert heard.messages == 2
    assert heard_in(FIND) == [FOUND]


@pytest.mark.parametrize("claimed", [-1, 0, 4, 2**31 - 1, 10**6])
def test_lengths_that_lie_are_not_believed(claimed: int) -> None:
    lying = bytearray(FIND)
    lying[21:25] = struct.pack("<i", claimed)  # of the document
    heard = CaptureCounts()
    assert heard_in(bytes(lying) + FIND, heard) == [FOUND]
    assert sum(heard.unreadable.values()) == 1


def test_a_message_that_claims_too_much_is_passed_over() -> None:
    heard = CaptureCounts()
    assert heard_in(struct.pack("<iiii", 2**31 - 1, 1, 0, 2013) + bytes(100) + FIND, heard) == [FOUND]
    assert (heard.gaps, heard.passed_over) == (1, 116)


@pytest.mark.parametrize("compressor", [2, 3], ids=["zlib", "zstd"])
def test_a_bomb_is_unpacked_no_further_than_it_claims(compressor: int) -> None:
    zeroes = bytes(50_000_000)
    packed = zlib.compress(zeroes, 9) if compressor == 2 else zstandard.ZstdCompressor().compress(zeroes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Unreadable):
        unpack(compressor, packed, 1000, 48_000_000)
    with pytest.raises(Unreadable, match="claims"):
        unpack(compressor, packed, 50_000_000, 48_000_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # kilobytes


def test_a_bomb_of_snappy_is_seen_before_it_is_unpacked() -> None:
    with pytest.raises(Unreadable):
        unpack(1, b"\xff\xff\xff\xff\x0f" + b"\xfe\x01\x00" * 100, 1000, 48_000_000)


def test_a_compressed_message_in_a_compressed_message_is_refused() -> None:
    with pytest.raises(Unreadable):
        read_message(compressed(compressed(FIND, 2), 2))


def test_what_is_held_of_all_connections_is_bounded() -> None:
    conversations = Conversations(CaptureCounts(), "mongo", memory=1_000_000)
    head = struct.pack("<iiii", 40_000_000, 1, 0, 2013) + bytes(5)
    for number in range(100):
        assert list(conversations.feed(number, head + bytes(100_000), 1.0)) == []
        assert sum(each.held for each in conversations._by_number.values()) <= 1_000_000
    assert list(conversations.feed(1000, FIND, 1.0)) == [FOUND]


def test_a_question_too_large_to_decode_is_counted() -> None:
    heard = CaptureCounts()
    assert heard_in(msg({"find": "c", "filter": {"a": "x" * 5_000_000}, "$db": "d"}), heard) == []
    assert heard.unreadable == {"a document is too large for a query": 1}


SEEDS = [
    FIND,
    compressed(FIND, 1),
    compressed(FIND, 3),
    msg({"insert": "c", "$db": "d"}, 1, documents=[{"_id": 1}]),
    legacy_query("d.c", {"$query": {"a": {"$in": [1, 2]}}, "$orderby": {"b": -1}}),
    message(2001, bytes(4) + b"d.c\0" + bytes(4) + bson.encode({"a": 1}) + bson.encode({"$set": {"b": 1}})),
]


@settings(max_examples=300)
@given(st.sampled_from(SEEDS), st.data())
def test_damaged_messages_harm_nobody(seed: bytes, data: st.DataObject) -> None:
    """Truncated, overwritten, lengthened: whatever comes out, nothing is raised and the next message is heard."""
    damaged = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(4, len(damaged) - 1))
        damaged[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=6))
        if len(damaged) < 5:
            return
    whole = message(struct.unpack_from("<i", seed, 12)[0], bytes(damaged[16:]))
    heard_in(whole)
    heard_in(bytes(damaged) + FIND)


@settings(max_examples=200)
@given(st.binary(max_size=300))
@example(b"\x15\0\0\0\1\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0")
def test_bytes_of_any_kind_harm_nobody(data: bytes) -> None:
    heard_in(data)
    for opcode in (2001, 2002, 2004, 2006, 2010, 2012, 2013):
        with suppress(Unreadable, Silent):
            read_message(message(opcode, data))


documents = st.dictionaries(
    st.text(st.characters(blacklist_characters="\0", codec="utf-8"), max_size=5),
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.binary(max_size=5)
    | st.text(max_size=5) | st.builds(bson.ObjectId) | st.builds(bson.Regex, st.just("^a"), st.just("i"))
    | st.builds(bson.Timestamp, st.integers(0, 9), st.integers(0, 9)) | st.lists(st.integers(0, 9), max_size=3)
    | st.builds(bson.Code, st.text(max_size=3)) | st.builds(bson.MinKey)
    | st.builds(bson.Decimal128, st.just("1.5")),
    max_size=6,
)  # fmt: skip


@given(documents)
def test_elements_are_found_where_bson_puts_them(document: dict[str, Any]) -> None:
    data = bson.encode(document)
    assert [element.name.decode() for element in elements(data)] == list(bson.decode(data))  # _id comes first
    for element in elements(data):
        alone = data[element.begin : element.end]
        again = bson.decode(struct.pack("<i", len(alone) + 5) + alone + b"\0")
        assert repr(again) == repr(bson.decode(bson.encode({element.name.decode(): document[element.name.decode()]})))
