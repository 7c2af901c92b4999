"""Script that shards a MongoDB collection by an advised key, for mongosh.

MongoDB has its own hash: the values that several shards share are found with its `convertShardKeyToHashed`, and the
balancer spreads the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from levada.sharding.placement import CutValue, Hashed, KeyPart, Placement, decoded_key, layout_of
from levada.sharding.values import MISSING

_CHUNKS_PER_SHARD = 4
_CHECKING = (
    "// Afterwards (MongoDB 7.0 and later): sample queries for a day, then have the server judge the key.",
    "db.adminCommand({configureQueryAnalyzer: ns, mode: 'full', samplesPerSecond: 5});",
    "print('In a day, run: ' + JSON.stringify({analyzeShardKey: ns, key: key}));",
)


def mongodb_script(
    collection: str, placement: Placement, shards: Sequence[str], current: Sequence[KeyPart] = ()
) -> str:
    """`shards`: their names in the cluster. `current`: the key of a collection that is already sharded."""
    parts = placement.key.parts
    lines = [
        "// Made by levada shard script mongodb. Run it with mongosh against a mongos.",
        f"const ns = {_text(collection)};",
        f"const key = {_key(parts)};",
        f"const shards = {_text(list(shards))};",
        "const collection = db.getSiblingDB(ns.split('.')[0]).getCollection(ns.split('.').slice(1).join('.'));",
        "collection.createIndex(key);",
        *_sharding(parts, tuple(current)),
        *_splitting(placement),
        *_CHECKING,
    ]
    if placement.directory:
        lines += _directory(placement)
    return "\n".join(lines) + "\n"


def _sharding(parts: tuple[KeyPart, ...], current: tuple[KeyPart, ...]) -> Iterator[str]:
    if not current:
        yield "sh.enableSharding(ns.split('.')[0]);"
        if parts[0].hashed:
            yield "// An empty collection gets its first chunks at once, evenly over all hashes."
            chunks = f"numInitialChunks: shards.length * {_CHUNKS_PER_SHARD}"
            yield f"sh.shardCollection(ns, key, false, collection.estimatedDocumentCount() ? {{}} : {{{chunks}}});"
        else:
            yield "sh.shardCollection(ns, key);"
    elif current == parts[: len(current)]:
        yield "// The present key is the beginning of this one: nothing has to move (MongoDB 4.4 and later)."
        yield "db.adminCommand({refineCollectionShardKey: ns, key: key});"
    else:
        yield "// Another key: every document is copied to its new place (MongoDB 5.0 and later)."
        yield "db.adminCommand({reshardCollection: ns, key: key});"


def _splitting(placement: Placement) -> Iterator[str]:
    if placement.key.parts[0].hashed:
        cut = layout_of(placement, [zone.value for zone in placement.zones]).cut
        for number, each in enumerate(cut):
            yield from _zone(placement, each, number)
        return
    yield "// Chunks as they were advised, each on its shard."
    for bound, owner in zip(placement.ranges.bounds, placement.ranges.owners[1:], strict=True):
        at = _point(placement.key.parts, decoded_key(placement.key, bound))
        yield f"sh.splitAt(ns, {at}); sh.moveChunk(ns, {at}, shards[{owner}]);"


def _zone(placement: Placement, each: CutValue, number: int) -> Iterator[str]:
    parts = placement.key.parts
    yield f"// {_text(each.value)} is too hot for one shard: it is cut by what follows it in the key."
    for cut in each.cuts:
        yield f"sh.splitAt(ns, {_point(parts, [each.value, *cut])});"
    for piece, owner in enumerate(each.owners):
        low = [each.value, *each.cuts[piece - 1]] if piece else [each.value]
        high = [each.value, *each.cuts[piece]] if piece < len(each.cuts) else [each.value]
        name = _text(f"levada-{number}-{piece}")
        ends = f"{_point(parts, low)}, {_point(parts, high, highest=piece == len(each.cuts))}"
        yield f"sh.addShardToZone(shards[{owner}], {name}); sh.updateZoneKeyRange(ns, {ends}, {name});"


def _directory(placement: Placement) -> Iterator[str]:
    first, field = placement.key.parts[0].field, placement.directory
    yield f"// A directory: for each document keep {{_id: <{_comment(field)}>, first: <{_comment(first)}>}}, and"
    yield "// add what it says to the filter of a query by id alone: one shard answers, instead of all."
    yield "const directory = collection.getName() + '_directory';"
    yield "db.getSiblingDB(ns.split('.')[0]).createCollection(directory);"
    yield "sh.shardCollection(ns + '_directory', {_id: 'hashed'});"


def _key(parts: Sequence[KeyPart]) -> str:
    return "{" + ", ".join(f"{_text(part.field)}: {_text('hashed') if part.hashed else 1}" for part in parts) + "}"


def _point(parts: Sequence[KeyPart], values: Sequence[Any], *, highest: bool = False) -> str:
    """A key; fields after the given values are at their lowest, or at their highest."""
    ends = dict.fromkeys((part.field for part in parts), "MaxKey" if highest else "MinKey")
    for part, value in zip(parts, values, strict=False):
        unhashed = part.hashed and not isinstance(value, Hashed)
        ends[part.field] = f"convertShardKeyToHashed({_value(value)})" if unhashed else _value(value)
    return "{" + ", ".join(f"{_text(field)}: {end}" for field, end in ends.items()) + "}"


def _value(value: Any) -> str:
    if value is MISSING:
        return "MinKey"
    if isinstance(value, Hashed):
        return f"NumberLong({_text(str(int(value) - (1 << 63)))})"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 1 << 53:
        return f"NumberLong({_text(str(value))})"
    return _text(value)


def _text(value: Any) -> str:
    """JSON, which is also JavaScript."""
    return msgspec.json.encode(value).decode()


def _comment(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)
