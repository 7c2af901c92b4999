"""The task store in Redis, one script per step.

All keys of a load have its name in braces, so that they lie together in a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import msgspec

from levada.bulk.splitting import Span
from levada.bulk.targets.redis_client import Answer, RedisNodes
from levada.bulk.task_stores.sql import status_of_load
from levada.bulk.tasks import LoadRecord, LoadState, LoadStatus, TaskLease, TaskResult

_SCRIPT_FLAGS = 7  # the first version whose scripts may have flags
_CLOCK = b"""
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local load, free, held = KEYS[1], KEYS[1] .. ':waiting', KEYS[1] .. ':leased'
local spans, tokens, owners = KEYS[1] .. ':spans', KEYS[1] .. ':tokens', KEYS[1] .. ':owners'
local offers, results = KEYS[1] .. ':offers', KEYS[1] .. ':results'
local function runs(generation)
  return redis.call('HGET', load, 'generation') == generation and redis.call('HGET', load, 'state') == 'running'
end
local function holds(task, token)
  return redis.call('HGET', tokens, task) == token and redis.call('HEXISTS', results, task) == 0
end
local function insert(first)
  for place = first, #ARGV do
    local task = redis.call('HLEN', spans)
    redis.call('HSET', spans, task, ARGV[place])
    redis.call('ZADD', free, task, task)
  end
end
"""
# expected, generation, record, spans...
_BEGIN = b"""
if (redis.call('HGET', load, 'generation') or '0') ~= ARGV[1] then return 0 end
redis.call('UNLINK', load, free, held, spans, tokens, owners, offers, results)
redis.call('HSET', load, 'generation', ARGV[2], 'record', ARGV[3], 'state', 'running', 'reason', '')
redis.call('HSET', load, 'started', string.format('%.6f', now))
insert(4)
return 1
"""
# generation, owner, seconds, offer
_LEASE = b"""
if not runs(ARGV[1]) then return false end
local task = redis.call('ZPOPMIN', free)[1]
task = task or redis.call('ZRANGEBYSCORE', held, '-inf', string.format('%.6f', now), 'LIMIT', 0, 1)[1]
if not task then return false end
redis.call('ZADD', held, string.format('%.6f', now + ARGV[3]), task)
redis.call('HSET', owners, task, ARGV[2])
redis.call('HSET', offers, task, ARGV[4])
return {task, redis.call('HINCRBY', tokens, task, 1), redis.call('HGET', spans, task)}
"""
# generation, task, token, seconds
_RENEW = b"""
if not runs(ARGV[1]) or not holds(ARGV[2], ARGV[3]) then return 0 end
redis.call('ZADD', held, string.format('%.6f', now + ARGV[4]), ARGV[2])
return 1
"""
# generation, task, token, result, spans...
_SETTLE = b"""
if not runs(ARGV[1]) or not holds(ARGV[2], ARGV[3]) then return 0 end
redis.call('HSET', results, ARGV[2], ARGV[4])
redis.call('ZREM', held, ARGV[2])
insert(5)
return 1
"""
# generation, state, reason
_FINISH = b"""
local at = redis.call('HGET', load, 'state')
if redis.call('HGET', load, 'generation') ~= ARGV[1] or at == 'published' then return 0 end
redis.call('HSET', load, 'state', ARGV[2], 'reason', ARGV[3], 'ended', string.format('%.6f', now))
if ARGV[2] == 'running' then redis.call('HDEL', load, 'ended') end
return 1
"""
_STANDING = b"""
local record = redis.call('HMGET', load, 'record', 'state', 'reason', 'started', 'ended')
if not record[1] then return false end
return {record, string.format('%.6f', now), redis.call('HKEYS', spans), redis.call('HGETALL', owners),
  redis.call('HGETALL', offers), redis.call('ZRANGE', held, 0, -1, 'WITHSCORES'), redis.call('HGETALL', results)}
"""


class RedisTaskStore:
    """Tasks in Redis."""

    def __init__(self, nodes: RedisNodes) -> None:
        self._nodes = nodes
        self._lock = Lock()  # the heartbeat runs on a thread of its own

    def begin(self, record: LoadRecord, spans: Sequence[Span], expected: int) -> bool:
        texts = [msgspec.json.encode(span) for span in spans]
        answer = self._run(record.plan.name, _BEGIN, expected, record.generation, msgspec.json.encode(record), *texts)
        return bool(answer)

    def lease(self, name: str, generation: int, owner: str, seconds: float, offer: str) -> TaskLease | None:
        answer = self._run(name, _LEASE, generation, owner, repr(seconds), offer)
        if answer is None:
            return None
        task, token, span = answer
        return TaskLease(name, generation, int(task), token, msgspec.json.decode(span, type=Span))

    def renew(self, lease: TaskLease, seconds: float) -> bool:
        return bool(self._run(lease.name, _RENEW, lease.generation, lease.task, lease.token, repr(seconds)))

    def complete(self, lease: TaskLease, result: TaskResult) -> bool:
        parts = [msgspec.json.encode(span) for span in result.parts]
        text = msgspec.json.encode(result)
        return bool(self._run(lease.name, _SETTLE, lease.generation, lease.task, lease.token, text, *parts))

    def finish(self, name: str, generation: int, state: LoadState, reason: str) -> bool:
        """Works on a full server too: that a load failed because of it must be recorded."""
        version = self._nodes.masters()[0].info("server").get("redis_version", "0")
        flags = b"#!lua flags=allow-oom\n" if int(version.partition(".")[0]) >= _SCRIPT_FLAGS else b""
        return bool(self._run(name, _FINISH, generation, state.value, reason, flags=flags))

    def status(self, name: str) -> LoadStatus | None:
        answer = self._run(name, _STANDING)
        if answer is None:
            return None
        (text, state, reason, started, ended), now, tasks, owners, offers, held, results = answer
        owner_of, offer_of, end_of, result_of = (_pairs(each) for each in (owners, offers, held, results))
        rows = [
            (
                owner_of.get(task, b"").decode(),
                offer_of.get(task, b"").decode(),
                float(end_of[task]) if task in end_of else None,
                result_of.get(task),
            )
            for task in tasks
        ]
        known = text, state.decode(), reason.decode(), float(started), None if ended is None else float(ended)
        return status_of_load(known, rows, float(now))

    def close(self) -> None:
        self._nodes.close()

    def _run(self, name: str, script: bytes, *words: bytes | str | int, flags: bytes = b"") -> Answer:
        key = b"levada:load:{%b}" % name.encode()
        with self._lock:
            return self._nodes.ask(key, "EVAL", flags + _CLOCK + script, 1, key, *words)


def _pairs(flat: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
