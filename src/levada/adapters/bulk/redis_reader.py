"""How is a published map read from Redis?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from levada.adapters.bulk.redis_keys import entry_prefix, map_key, tag
from levada.adapters.bulk.redis_nodes import RedisNodes
from levada.adapters.bulk.resp import Answer, RedisError, command
from levada.bulk.encoding import bucket_of
from levada.bulk.generations import Manifest, decoded_manifest

__all__ = ["RedisReader"]

_PASS = 1_000_000  # keys that are remembered at a time, so that none is counted twice


class RedisReader:
    def __init__(self, nodes: RedisNodes) -> None:
        self._nodes = nodes

    def manifest(self, name: str) -> Manifest | None:
        pointer = self._nodes.ask(map_key(name), "HGET", map_key(name), "pointer")
        return decoded_manifest(pointer) if isinstance(pointer, bytes) else None

    def get(self, manifest: Manifest, keys: Sequence[bytes]) -> tuple[list[bytes | None], bool]:
        """Entries of a published generation never change: if it still is the published one, so it was before."""
        name, width = manifest.plan.name, len(manifest.layers)
        asked = [(key, command("GET", key)) for key in self._stored(manifest, keys)]
        pointer = (map_key(name), command("HGET", map_key(name), "pointer"))
        if not self._nodes.clustered:
            *found, now = self._whole(asked, pointer)
        else:
            found = self._nodes.ask_all(asked)
            now = self._nodes.ask_all([pointer])[0]
        self._check([*found, now])
        layered = [found[place : place + width] for place in range(0, len(found), width)]
        values: list[bytes | None] = [
            next((each for each in layers if isinstance(each, bytes)), None) for layers in layered
        ]
        return values, isinstance(now, bytes) and decoded_manifest(now) == manifest

    def entries(self, name: str, generation: int) -> Iterator[tuple[bytes, bytes]]:
        """A scan may show a key twice: each pass takes a share of the keys and remembers them."""
        passes = 1 + self._size() // _PASS
        before = len(entry_prefix(name, generation) + tag(0, self._nodes.buckets))
        for share in range(passes):
            seen: set[bytes] = set()
            for found in self._scanned(name, generation):
                fresh = [key for key in found if key not in seen and (passes == 1 or _drawn(key, passes) == share)]
                fresh = list(dict.fromkeys(fresh))
                seen.update(fresh)
                values = self._nodes.ask_all([(key, command("GET", key)) for key in fresh])
                self._check(values)
                for key, value in zip(fresh, values, strict=True):
                    if isinstance(value, bytes):
                        yield key[before:], value

    def generations(self, name: str) -> list[int]:
        fields = self._nodes.ask(map_key(name), "HKEYS", map_key(name))
        names = [field for field in fields if isinstance(field, bytes)] if isinstance(fields, list) else []
        return sorted(int(field[2:]) for field in names if field.startswith(b"g:"))

    def close(self) -> None:
        self._nodes.close()

    def _stored(self, manifest: Manifest, keys: Sequence[bytes]) -> Iterator[bytes]:
        prefixes = [entry_prefix(manifest.plan.name, layer) for layer in manifest.layers]
        for key in keys:
            place = tag(bucket_of(key, manifest.key_kind, manifest.buckets), manifest.buckets)
            yield from (prefix + place + key for prefix in prefixes)

    def _whole(self, asked: list[tuple[bytes, bytes]], pointer: tuple[bytes, bytes]) -> list[Answer]:
        keys = [key for key, _ in asked]
        line = self._nodes.masters()[0]
        many = [command("MGET", *keys)] if keys else []
        *found, now = line.exchange([*many, pointer[1]], len(many) + 1)
        self._check([*found, now])
        return [*(found[0] if found else []), now]

    def _scanned(self, name: str, generation: int) -> Iterator[list[bytes]]:
        pattern = entry_prefix(name, generation) + b"*"
        for line in self._nodes.masters():
            cursor: Answer = b"0"
            while True:
                answer = line.ask(
                    "SCAN", cursor if isinstance(cursor, bytes) else b"0", "MATCH", pattern, "COUNT", 2_000
                )
                cursor, found = answer if isinstance(answer, list) else (b"0", [])
                yield [key for key in found if isinstance(key, bytes)] if isinstance(found, list) else []
                if cursor == b"0":
                    break

    def _size(self) -> int:
        sizes = [line.ask("DBSIZE") for line in self._nodes.masters()]
        return sum(size for size in sizes if isinstance(size, int))

    def _check(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            if isinstance(answer, RedisError):
                raise self._nodes.masters()[0].translated(answer)


def _drawn(key: bytes, shares: int) -> int:
    from zlib import crc32

    return crc32(key) % shares
