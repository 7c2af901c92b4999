"""Maps in Redis: fenced writes, published at once, and read.

Everything is below `levada:`, and a map's name has no colon or brace, so no map reaches into another. In a cluster
keys are placed by a part in braces: entries of one bucket lie together with the write fence of that bucket. Keys of
entries are short on purpose: one of 28 bytes costs Redis a quarter less than one of 35.

Every generation has a write fence, a number beside the entries (in a cluster one per bucket, on the same slot).
Entries are written by MSETs of about a thousand, and only while the fence is where the writer last saw it: on one
server by WATCH, which makes the server drop the transaction if the fence has moved; in a cluster by a script per
bucket.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from zlib import crc32

import msgspec
from redis.exceptions import ResponseError

from levada.bulk.entries import bucket_of, bucket_tag, redis_string
from levada.bulk.protocols import Entries, RedisStrings
from levada.bulk.targets.redis_client import Answer, RedisNodes, command
from levada.bulk.tasks import Manifest, decoded_manifest


def map_key(name: str) -> bytes:
    """The key of a hash: `pointer` is the published manifest, `g:7` says that generation 7 is there (0: in part)."""
    return b"levada:map:{%b}" % name.encode()


def fence_key(name: str, generation: int, bucket: int, buckets: int) -> bytes:
    return b"levada:gate:%b:%d:" % (name.encode(), generation) + bucket_tag(bucket, buckets)


def entry_prefix(name: str, generation: int) -> bytes:
    """What comes before the tag and the key. A number comes first, so that no other kind of key matches."""
    return b"levada:%d:%b:" % (generation, name.encode())


BATCH = 1_000
_TRANSACTION = 16  # batches per transaction
_PASS = 1_000_000  # keys remembered at a time, so that none is counted twice
_FENCED = b"""
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('MSET', unpack(ARGV, 2))
return 1
"""
_MOVE = b"if tonumber(redis.call('GET', KEYS[1]) or 0) == 0 then return 0 end return redis.call('INCR', KEYS[1])"
_RAISE = b"""
local at = redis.call('GET', KEYS[1])
if at and tonumber(at) > 0 and tonumber(at) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return 1
"""
# ARGV: generation, manifest. Only an existing generation, and none older than the published one.
_PUBLISH = b"""
if redis.call('HGET', KEYS[1], 'g:' .. ARGV[1]) ~= '1' then return 0 end
local old = redis.call('HGET', KEYS[1], 'pointer')
if old and cjson.decode(old)['generation'] > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'pointer', ARGV[2])
return 1
"""
_FORGET = b"""
local old = redis.call('HGET', KEYS[1], 'pointer')
if old then
  for _, layer in ipairs(cjson.decode(old)['layers']) do
    if layer == tonumber(ARGV[1]) then return 0 end
  end
end
if redis.call('HEXISTS', KEYS[1], 'g:' .. ARGV[1]) == 1 then redis.call('HSET', KEYS[1], 'g:' .. ARGV[1], 0) end
return 1
"""
_OPEN = b"""
local old = redis.call('HGET', KEYS[1], 'pointer')
if old and cjson.decode(old)['generation'] >= tonumber(ARGV[1]) then return 0 end
if redis.call('HGET', KEYS[1], 'g:' .. ARGV[1]) == '0' then return 0 end
redis.call('HSET', KEYS[1], 'g:' .. ARGV[1], 1)
return 1
"""


class RedisMaps:
    """The maps of one Redis; target and reader in one."""

    def __init__(self, nodes: RedisNodes) -> None:
        self._nodes = nodes

    @property
    def buckets(self) -> int:
        return self._nodes.buckets

    def fingerprint(self) -> str:
        return " ".join(sorted(line.run_id() for line in self._nodes.masters()))

    def fence(self, name: str, generation: int, action: str) -> int:
        if action == "open":
            key = map_key(name)
            if self._nodes.ask(key, "EVAL", _OPEN, 1, key, generation) == 1:
                self._at_fences(name, generation, "SET", 1, "NX")
        if action == "move":
            epochs = self._at_fences(name, generation, "EVAL", _MOVE)
        else:
            epochs = self._at_fences(name, generation, "GET")
        numbers = [int(epoch or 0) for epoch in epochs]
        if min(numbers) and min(numbers) < max(numbers):  # the instance that moved them died on the way
            self._at_fences(name, generation, "EVAL", _RAISE, after=(max(numbers),))
        return max(numbers) if min(numbers) else 0

    def write(self, name: str, generation: int, epoch: int, entries: Entries) -> bool:
        if not epoch:
            return False
        strings = entries.strings(entry_prefix(name, generation), self._nodes.buckets)
        way = self._write_slots if self._nodes.clustered else self._write_watched
        return way(name, generation, epoch, strings)

    def publish(self, manifest: Manifest) -> bool:
        name, generation = manifest.plan.name, manifest.generation
        self._at_fences(name, generation, "SET", 0, "XX")
        key = map_key(name)
        return bool(self._nodes.ask(key, "EVAL", _PUBLISH, 1, key, generation, msgspec.json.encode(manifest)))

    def remove(self, name: str, generation: int) -> None:
        """The generation stays listed until its last key is gone: if this is killed, the next load finishes it."""
        key = map_key(name)
        if self._nodes.ask(key, "EVAL", _FORGET, 1, key, generation) != 1:
            return
        self._at_fences(name, generation, "DEL")
        for line in self._nodes.masters():
            for found in line.scanned(entry_prefix(name, generation) + b"*", 5_000):
                line.exchange([command("UNLINK", each) for each in found], len(found))
        self._nodes.ask(key, "HDEL", key, f"g:{generation}")

    def manifest(self, name: str) -> Manifest | None:
        pointer = self._nodes.ask(map_key(name), "HGET", map_key(name), "pointer")
        return decoded_manifest(pointer) if isinstance(pointer, bytes) else None

    def get(self, manifest: Manifest, keys: Sequence[bytes]) -> tuple[list[bytes | None], bool]:
        """Entries of a published generation never change: if it still is the published one, it was before too."""
        where, width = map_key(manifest.plan.name), len(manifest.layers)
        stored = list(self._stored(manifest, keys))
        if self._nodes.clustered:
            found = self._raised(self._nodes.ask_all([(key, command("GET", key)) for key in stored]))
            now = self._nodes.ask(where, "HGET", where, "pointer")
        else:
            orders = [*([command("MGET", *stored)] if stored else []), command("HGET", where, "pointer")]
            *lists, now = self._raised(self._nodes.masters()[0].exchange(orders, len(orders)))
            found = lists[0] if lists else []
        layered = [found[place : place + width] for place in range(0, len(found), width)]
        values: list[bytes | None] = [
            next((each for each in layers if isinstance(each, bytes)), None) for layers in layered
        ]
        return values, isinstance(now, bytes) and decoded_manifest(now) == manifest

    def entries(self, name: str, generation: int) -> Iterator[tuple[bytes, bytes]]:
        """A scan may show a key twice, so each pass takes a share of the keys and remembers them."""
        prefix = entry_prefix(name, generation)
        passes = 1 + sum(int(line.ask("DBSIZE")) for line in self._nodes.masters()) // _PASS
        before = len(prefix + bucket_tag(0, self._nodes.buckets))
        for share in range(passes):
            seen: set[bytes] = set()
            for found in chain.from_iterable(line.scanned(prefix + b"*", 2_000) for line in self._nodes.masters()):
                fresh = [key for key in dict.fromkeys(found) if key not in seen and crc32(key) % passes == share]
                seen.update(fresh)
                values = self._raised(self._nodes.ask_all([(key, command("GET", key)) for key in fresh]))
                for key, value in zip(fresh, values, strict=True):
                    if isinstance(value, bytes):
                        yield key[before:], value

    def generations(self, name: str) -> list[int]:
        fields = self._nodes.ask(map_key(name), "HKEYS", map_key(name))
        return sorted(int(field[2:]) for field in fields if field.startswith(b"g:"))

    def close(self) -> None:
        self._nodes.close()

    def _stored(self, manifest: Manifest, keys: Sequence[bytes]) -> Iterator[bytes]:
        prefixes = [entry_prefix(manifest.plan.name, layer) for layer in manifest.layers]
        for key in keys:
            place = bucket_tag(bucket_of(key, manifest.key_kind, manifest.buckets), manifest.buckets)
            yield from (prefix + place + key for prefix in prefixes)

    def _write_watched(self, name: str, generation: int, epoch: int, strings: Iterator[RedisStrings]) -> bool:
        """Send each transaction together with the fence check that the next one needs: one round trip each."""
        line, fence = self._nodes.masters()[0], fence_key(name, generation, 0, 1)
        look, seen = [command("WATCH", fence), command("GET", fence)], b"%d" % epoch
        answers, batches = self._raised(line.exchange(look, 2)), _transactions(strings)
        batch = next(batches, None)
        while batch is not None:
            if answers[-1] != seen:
                line.ask("UNWATCH")
                return False
            following = next(batches, None)
            then = look if following is not None else []
            orders = [command("MULTI"), *batch, command("EXEC"), *then]
            answers = self._raised(line.exchange(orders, len(orders), same=True))
            if answers[len(batch) + 1] is None:  # dropped: the fence has moved
                line.ask("UNWATCH")
                return False
            batch = following
        return True

    def _write_slots(self, name: str, generation: int, epoch: int, strings: Iterator[RedisStrings]) -> bool:
        commands: list[tuple[bytes, bytes]] = []
        for bucket, count, data in _by_bucket(strings):
            fence = fence_key(name, generation, bucket, self._nodes.buckets)
            fixed = b"".join(redis_string(part) for part in (b"EVAL", _FENCED, b"1", fence, b"%d" % epoch))
            commands.append((fence, b"*%d\r\n" % (5 + 2 * count) + fixed + data))
        return all(answer == 1 for answer in self._raised(self._nodes.ask_all(commands)))

    def _at_fences(
        self, name: str, generation: int, verb: str, *rest: bytes | int | str, after: tuple[int, ...] = ()
    ) -> list[Answer]:
        commands = []
        for bucket in range(self._nodes.buckets):
            fence = fence_key(name, generation, bucket, self._nodes.buckets)
            words = (verb, *rest, 1, fence, *after) if verb == "EVAL" else (verb, fence, *rest)
            commands.append((fence, command(*words)))
        return self._raised(self._nodes.ask_all(commands))

    def _raised(self, answers: list[Answer]) -> list[Answer]:
        """The answers, if none is an error. The first refusal says more than the abort that follows."""
        for answer in answers:
            if isinstance(answer, ResponseError):
                self._nodes.close()  # a half-queued transaction ends with its connection
                raise self._nodes.masters()[0].translated(answer)
        return answers


def _transactions(strings: Iterator[RedisStrings]) -> Iterator[list[bytes]]:
    """MSETs of about a thousand entries, several to a transaction."""
    sets = (b"*%d\r\n$4\r\nMSET\r\n" % (1 + 2 * count) + data for _, count, data in _by_bucket(strings))
    while batch := list(islice(sets, _TRANSACTION)):
        yield batch


def _by_bucket(strings: Iterator[RedisStrings]) -> Iterator[RedisStrings]:
    """Batches of about a thousand entries of one bucket."""
    counts, parts = defaultdict[int, int](int), defaultdict[int, list[bytes]](list)
    for bucket, count, data in strings:
        parts[bucket].append(data)
        counts[bucket] += count
        if counts[bucket] >= BATCH:
            yield bucket, counts.pop(bucket), b"".join(parts.pop(bucket))
    for bucket, count in counts.items():
        yield bucket, count, b"".join(parts[bucket])
