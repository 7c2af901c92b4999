"""Which worker is a key's first choice, and how few keys move when workers come and go?

A table of slots, dealt out as in Maglev (Eisenbud et al., NSDI 2016): each worker goes through the slots in its
own order and takes turns with the others to claim the next free one. All have the same number of slots, within
one; the table depends on nothing but the set of workers, so all senders have the same; and a worker that comes or
goes leaves most slots where they are.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

__all__ = ["deal_slots"]

# Both prime, so that every stride meets every slot. The size must stay as workers come and go, or all keys would
# move; only where a 513th worker joins does it change.
_SLOTS, _MANY_SLOTS = 8_191, 131_071
_FEW_WORKERS = 512


@lru_cache(maxsize=16)
def deal_slots(workers: tuple[int, ...]) -> tuple[int, ...]:
    """For each slot, the place of its worker among `workers`, which are sorted."""
    size = _SLOTS if len(workers) <= _FEW_WORKERS else _MANY_SLOTS
    slots = [-1] * size
    orders = [_order(worker, size) for worker in workers]
    for turn in range(size):
        place = turn % len(workers)
        slot, stride = orders[place]
        while slots[slot] >= 0:
            slot = (slot + stride) % size
        slots[slot] = place
        orders[place] = ((slot + stride) % size, stride)
    return tuple(slots)


def _order(worker: int, size: int) -> tuple[int, int]:
    """Where a worker begins, and by how much it steps."""
    digest = blake2b(str(worker).encode(), digest_size=16, person=b"levada slots").digest()
    start, stride = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
    return start % size, 1 + stride % (size - 1)
