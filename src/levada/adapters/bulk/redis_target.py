"""How is a map written into Redis so that no late writer can touch what is published?

Every generation has a gate, a number beside the entries (in a cluster one per bucket, on the same slot). Entries
are written by MSET of about a thousand, and only while the gate stands where the writer last saw it: on one server
by WATCH, which makes the server drop the transaction if the gate has moved; in a cluster by a script per bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from levada.adapters.bulk.redis_keys import entry_prefix, gate_key, map_key, tag
from levada.adapters.bulk.redis_nodes import RedisNodes
from levada.adapters.bulk.resp import Answer, RedisError, command
from levada.bulk.encoding import bucket_of
from levada.bulk.generations import Manifest, encoded_manifest
from levada.bulk.ports import Entries
from levada.errors import LevadaError

__all__ = ["RedisTarget"]

BATCH = 1_000
_TRANSACTION = 16  # batches that the server takes in one go
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
# ARGV: generation, manifest. Only a generation that is there, and no older than the published one.
_PUBLISH = b"""
if redis.call('HEXISTS', KEYS[1], 'g:' .. ARGV[1]) == 0 then return 0 end
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
redis.call('HDEL', KEYS[1], 'g:' .. ARGV[1])
return 1
"""
_OPEN = b"""
local old = redis.call('HGET', KEYS[1], 'pointer')
if old and cjson.decode(old)['generation'] >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'g:' .. ARGV[1], 1)
return 1
"""
Strings = tuple[int, int, bytes]  # bucket, entries, `$n key $n value` of each


class RedisTarget:
    def __init__(self, nodes: RedisNodes) -> None:
        self._nodes = nodes

    @property
    def buckets(self) -> int:
        return self._nodes.buckets

    def fingerprint(self) -> str:
        lives = [_field(line.ask("INFO", "server"), b"run_id:") for line in self._nodes.masters()]
        return " ".join(sorted(lives))

    def gate(self, name: str, generation: int, action: str) -> int:
        if action == "open":
            key = map_key(name)
            if self._nodes.ask(key, "EVAL", _OPEN, 1, key, generation) == 1:
                self._at_gates(name, generation, "SET", 1, "NX")
        if action == "move":
            epochs = self._at_gates(name, generation, "EVAL", _MOVE)
        else:
            epochs = self._at_gates(name, generation, "GET")
        numbers = [int(epoch or 0) for epoch in epochs]
        if min(numbers) and min(numbers) < max(numbers):  # whoever moved them died on the way
            self._at_gates(name, generation, "EVAL", _RAISE, after=(max(numbers),))
        return max(numbers) if min(numbers) else 0

    def write(self, name: str, generation: int, epoch: int, entries: Entries) -> bool:
        if not epoch:
            return False
        strings = _strings(entries, entry_prefix(name, generation), self._nodes.buckets)
        way = self._write_slots if self._nodes.clustered else self._write_watched
        return way(name, generation, epoch, strings)

    def publish(self, manifest: Manifest) -> bool:
        name, generation = manifest.plan.name, manifest.generation
        self._at_gates(name, generation, "SET", 0, "XX")
        key = map_key(name)
        return bool(self._nodes.ask(key, "EVAL", _PUBLISH, 1, key, generation, encoded_manifest(manifest)))

    def remove(self, name: str, generation: int) -> None:
        key = map_key(name)
        if self._nodes.ask(key, "EVAL", _FORGET, 1, key, generation) != 1:
            return
        self._at_gates(name, generation, "DEL")
        pattern = entry_prefix(name, generation) + b"*"
        for line in self._nodes.masters():
            cursor = b"0"
            while True:
                cursor, found = line.ask("SCAN", cursor, "MATCH", pattern, "COUNT", 5_000)
                line.exchange([command("UNLINK", each) for each in found], len(found))
                if cursor == b"0":
                    break

    def close(self) -> None:
        self._nodes.close()

    def _write_watched(self, name: str, generation: int, epoch: int, strings: Iterator[Strings]) -> bool:
        """Each transaction is sent together with the look at the gate that the next one needs: one turn each."""
        line, gate = self._nodes.masters()[0], gate_key(name, generation, 0, 1)
        look, seen = [command("WATCH", gate), command("GET", gate)], b"%d" % epoch
        answers, batches = self._raised(line.exchange(look, 2)), _transactions(strings)
        batch = next(batches, None)
        while batch is not None:
            if answers[-1] != seen:
                line.ask("UNWATCH")
                return False
            following = next(batches, None)
            then = look if following is not None else []
            orders = [command("MULTI"), *batch, command("EXEC"), *then]
            answers = self._raised(line.exchange(orders, len(orders)))
            if answers[len(batch) + 1] is None:  # dropped: the gate has moved
                line.ask("UNWATCH")
                return False
            batch = following
        return True

    def _write_slots(self, name: str, generation: int, epoch: int, strings: Iterator[Strings]) -> bool:
        asked: list[tuple[bytes, bytes]] = []
        for bucket, count, data in _by_bucket(strings):
            gate = gate_key(name, generation, bucket, self._nodes.buckets)
            fixed = b"".join(_bulk(part) for part in (b"EVAL", _FENCED, b"1", gate, b"%d" % epoch))
            asked.append((gate, b"*%d\r\n" % (5 + 2 * count) + fixed + data))
        return all(answer == 1 for answer in self._raised(self._nodes.ask_all(asked)))

    def _at_gates(
        self, name: str, generation: int, verb: str, *rest: bytes | int | str, after: tuple[int, ...] = ()
    ) -> list[Answer]:
        asked = []
        for bucket in range(self._nodes.buckets):
            gate = gate_key(name, generation, bucket, self._nodes.buckets)
            words = (verb, *rest, 1, gate, *after) if verb == "EVAL" else (verb, gate, *rest)
            asked.append((gate, command(*words)))
        return self._raised(self._nodes.ask_all(asked))

    def _raised(self, answers: list[Answer]) -> list[Answer]:
        """The answers, if there is no error among them; the first refusal says more than the abort that follows."""
        for answer in answers:
            if isinstance(answer, RedisError):
                self._nodes.close()  # a transaction that is half queued ends with its connection
                raise self._nodes.masters()[0].translated(answer)
        return answers


def _strings(entries: Entries, prefix: bytes, buckets: int) -> Iterator[Strings]:
    packed: Any = getattr(entries, "strings", None)
    if packed is not None:
        yield from packed(prefix, buckets)
        return
    for key, value in entries.pairs():
        bucket = bucket_of(key, entries.key_kind, buckets)
        yield bucket, 1, _bulk(prefix + tag(bucket, buckets) + key) + _bulk(value)


def _transactions(strings: Iterator[Strings]) -> Iterator[list[bytes]]:
    """MSETs of about a thousand entries, several to a transaction."""
    sets: list[bytes] = []
    parts: list[bytes] = []
    size = 0
    for _, count, data in strings:
        parts.append(data)
        size += count
        if size >= BATCH:
            sets.append(_mset(parts, size))
            parts, size = [], 0
            if len(sets) == _TRANSACTION:
                yield sets
                sets = []
    if size:
        sets.append(_mset(parts, size))
    if sets:
        yield sets


def _by_bucket(strings: Iterator[Strings]) -> Iterator[Strings]:
    gathered: dict[int, tuple[int, list[bytes]]] = {}
    for bucket, count, data in strings:
        held, parts = gathered.pop(bucket, (0, []))
        parts.append(data)
        if held + count >= BATCH:
            yield bucket, held + count, b"".join(parts)
        else:
            gathered[bucket] = (held + count, parts)
    for bucket, (count, parts) in gathered.items():
        yield bucket, count, b"".join(parts)


def _mset(parts: list[bytes], size: int) -> bytes:
    return b"*%d\r\n$4\r\nMSET\r\n" % (1 + 2 * size) + b"".join(parts)


def _bulk(data: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(data), data)


def _field(answer: Answer, name: bytes) -> str:
    if not isinstance(answer, bytes) or name not in answer:
        raise LevadaError("this Redis does not tell which run of it this is")
    rest: bytes = answer.split(name, 1)[1]
    return rest.split(b"\r\n", 1)[0].decode(errors="replace")
