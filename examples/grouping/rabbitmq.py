"""A skewed stream over the queues of eight workers in RabbitMQ: by key, and levelled.

python examples/grouping/rabbitmq.py [amqp://guest:guest@localhost:5672/]
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

import aio_pika
from skewed import SECRET, print_table, skewed_keys

from levada.engines.rabbitmq.grouping import GroupedPublisher
from levada.grouping import Grouping, KeyGrouping

WORKERS = 8


async def share_out(url: str, keys: list[str], prefix: str, grouping: Grouping | None) -> list[tuple[str, int]]:
    async with GroupedPublisher(url, WORKERS, SECRET, grouping=grouping, prefix=prefix) as publisher:
        chosen = await publisher.publish_many((key, key.encode()) for key in keys)
        waiting = await publisher.ask_queues()
    assert waiting == {worker: Counter(chosen)[worker] for worker in range(WORKERS)}, "the queues were not empty"
    return list(zip(keys, chosen, strict=True))


async def delete_queues(url: str, prefixes: list[str]) -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        for prefix in prefixes:
            for worker in range(WORKERS):
                await channel.queue_delete(f"{prefix}{worker}")


async def main(url: str) -> None:
    keys = skewed_keys(8_000)
    prefixes = ["levada.example.key.", "levada.example.levelled."]
    try:
        by_key = await share_out(url, keys, prefixes[0], KeyGrouping(WORKERS))
        levelled = await share_out(url, keys, prefixes[1], None)
    finally:
        await delete_queues(url, prefixes)
    print_table(WORKERS, {"key": by_key, "levelled": levelled})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "amqp://guest:guest@localhost:5672/"))
