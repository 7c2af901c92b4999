"""Which server of a Redis, alone or a cluster, holds this key?

A cluster gives each key one of 16,384 slots and each slot to a master. `MOVED` says that a slot lives elsewhere
now: the map of slots is read again and the command repeated. `ASK` says that this key is on its way: it is asked
there, once. Source: the Redis Cluster specification.
"""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Callable

from levada.adapters.bulk.resp import Answer, RedisAddress, RedisError, RedisLine, command, redis_address
from levada.bulk.trouble import Away

__all__ = ["CLUSTER_BUCKETS", "RedisNodes", "slot_of"]

SLOTS = 16_384
CLUSTER_BUCKETS = 512  # enough to spread evenly over many masters, few enough for commands of many keys
_TRIES = 40


def slot_of(key: bytes) -> int:
    """Only what stands between the first { and the next } counts, if it is not empty."""
    start = key.find(b"{")
    end = key.find(b"}", start + 1) if start >= 0 else -1
    return crc_hqx(key[start + 1 : end] if end > start + 1 else key, 0) % SLOTS


class RedisNodes:
    """One server, or all masters of a cluster."""

    def __init__(self, url: str, wait: Callable[[float], object]) -> None:
        self._first = RedisLine(redis_address(url))
        self._wait = wait
        self._lines: dict[tuple[str, int], RedisLine] = {}
        self._slots: list[RedisLine] = []
        self.clustered = b"cluster_enabled:1" in _bytes(self._first.ask("INFO", "cluster"))
        if self.clustered:
            self._learn()

    @property
    def address(self) -> RedisAddress:
        return self._first.address

    @property
    def buckets(self) -> int:
        return CLUSTER_BUCKETS if self.clustered else 1

    def masters(self) -> list[RedisLine]:
        return list(dict.fromkeys(self._slots)) if self.clustered else [self._first]

    def line_of(self, key: bytes) -> RedisLine:
        return self._slots[slot_of(key)] if self.clustered else self._first

    def ask(self, key: bytes, *words: bytes | str | int) -> Answer:
        """One command about one key, wherever it is; an error is raised."""
        answer = self.ask_all([(key, command(*words))])[0]
        if isinstance(answer, RedisError):
            raise self._first.translated(answer)
        return answer

    def ask_all(self, asked: list[tuple[bytes, bytes]]) -> list[Answer]:
        """Commands, each about one key or one slot, in as few turns as there are masters; errors are among them."""
        answers: list[Answer] = [None] * len(asked)
        left = list(range(len(asked)))
        for tried in range(_TRIES):
            left = self._turn(asked, left, answers)
            if not left:
                return answers
            self._wait(min(0.5, 0.01 * 2**tried))
            self._learn()
        raise Away(f"Redis at {self.address}: slots of the cluster are on the move for too long")

    def close(self) -> None:
        for line in (self._first, *self._lines.values()):
            line.close()

    def _turn(self, asked: list[tuple[bytes, bytes]], left: list[int], answers: list[Answer]) -> list[int]:
        """What must be asked again."""
        per_line: dict[RedisLine, list[int]] = {}
        for place in left:
            per_line.setdefault(self.line_of(asked[place][0]), []).append(place)
        again: list[int] = []
        for line, places in per_line.items():
            got = line.exchange([asked[place][1] for place in places], len(places))
            for place, answer in zip(places, got, strict=True):
                answers[place] = self._followed(asked[place][1], answer)
                if _elsewhere(answers[place]):
                    again.append(place)
        return again

    def _followed(self, words: bytes, answer: Answer) -> Answer:
        if not isinstance(answer, RedisError) or not str(answer).startswith("ASK "):
            return answer
        host, _, port = str(answer).split()[2].rpartition(":")
        return self._line(host, int(port)).exchange([command("ASKING"), words], 2)[1]

    def _line(self, host: str, port: int) -> RedisLine:
        host = host or self._first.address.host
        if (host, port) not in self._lines:
            self._lines[host, port] = RedisLine(self._first.address.elsewhere(host, port))
        return self._lines[host, port]

    def _learn(self) -> None:
        """Ask whoever answers where each slot is."""
        if not self.clustered:
            return
        trouble: Away | None = None
        for line in (self._first, *self._lines.values()):
            try:
                stretches = line.ask("CLUSTER", "SLOTS")
            except Away as error:
                trouble = error
                continue
            slots: list[RedisLine | None] = [None] * SLOTS
            for stretch in stretches if isinstance(stretches, list) else []:
                first, last, node = stretch[0], stretch[1], stretch[2]
                owner = self._line(_bytes(node[0]).decode(), int(node[1]))
                slots[int(first) : int(last) + 1] = [owner] * (int(last) - int(first) + 1)
            if None in slots:
                trouble = Away(f"Redis at {self.address}: the cluster has slots without a master")
                continue
            self._slots = [line for line in slots if line is not None]
            return
        raise trouble or Away(f"Redis at {self.address}: no node of the cluster answers")


def _elsewhere(answer: Answer) -> bool:
    return isinstance(answer, RedisError) and str(answer).startswith(("MOVED ", "ASK ", "TRYAGAIN", "CLUSTERDOWN"))


def _bytes(answer: Answer) -> bytes:
    return answer if isinstance(answer, bytes) else b""
