"""Messages over RabbitMQ's queues: where they go, that none is lost, and what is said when the broker is away."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import aio_pika
import pytest

from levada.core.errors import BrokerAway, BrokerError, MissingExtra, UsageError
from levada.engines.rabbitmq.grouping import GroupedPublisher
from levada.grouping import (
    DirectGrouping,
    Grouping,
    KeyGrouping,
    LevelledGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from tests.servers.private import free_ports
from tests.servers.proxy import cuttable

pytest_plugins = ["tests.servers.fixtures"]

EXAMPLES = Path(__file__).parents[2] / "examples" / "grouping"
SECRET = b"known to all senders"
PLENTY = 1 << 40


class Hasty:
    """A clock whose sleeps are over at once, and remembered."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


class Listening(KeyGrouping):
    """Key grouping that remembers what it was told."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.heard: list[list[float]] = []

    def observe_queues(self, queues: Sequence[float]) -> None:
        self.heard.append(list(queues))

    def join(self, worker: int) -> None:
        self.workers += 1

    def leave(self, worker: int) -> None:
        self.workers -= 1


@pytest.fixture
def prefix() -> str:
    return f"test.{uuid4().hex}."


def skewed(records: int, seed: int = 1) -> list[str]:
    """Half of the records are one key."""
    chance = random.Random(seed)
    return ["hot" if chance.random() < 0.5 else f"key {chance.randrange(200)}" for _ in range(records)]


def records_of(keys: Sequence[str]) -> list[tuple[str, bytes]]:
    return [(key, f"{place} {key}".encode()) for place, key in enumerate(keys)]


def through(url: str, port: int) -> str:
    return url.replace(f":{urlsplit(url).port}/", f":{port}/")


async def emptied(url: str, queue: str) -> list[aio_pika.abc.AbstractIncomingMessage]:
    """What waits in a queue, in its order; the queue is deleted."""
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        found = await channel.declare_queue(queue, passive=True)
        waiting = found.declaration_result.message_count or 0
        messages = []
        if waiting:
            async with found.iterator(no_ack=True) as arriving:
                async for message in arriving:
                    messages.append(message)
                    if len(messages) == waiting:
                        break
        await channel.queue_delete(queue)
        return messages


async def arrived(url: str, publisher: GroupedPublisher, workers: Sequence[int]) -> dict[int, list[bytes]]:
    return {worker: [each.body for each in await emptied(url, publisher.queue_of(worker))] for worker in workers}


@pytest.mark.parametrize(
    "method",
    [
        lambda: LevelledGrouping(4, SECRET),
        lambda: KeyGrouping(4),
        lambda: PartialKeyGrouping(4),
        lambda: ShuffleGrouping(4),
    ],
    ids=["levelled", "key", "partial", "shuffle"],
)
def test_each_message_goes_where_the_grouping_alone_would_send_it(
    rabbitmq: str, prefix: str, method: type[Grouping]
) -> None:
    records = records_of(skewed(1_000))

    async def story() -> None:
        async with GroupedPublisher(rabbitmq, 4, grouping=method(), prefix=prefix) as publisher:
            chosen = await publisher.publish_many(records[:700])
            chosen += [await publisher.publish(*record) for record in records[700:750]]
            chosen += await publisher.publish_many(iter(records[750:]))
            alone = method()
            assert chosen == [alone.choose(key, 0.0) for key, _ in records]
            sent = await arrived(rabbitmq, publisher, range(4))
            for worker in range(4):
                expected = [body for (_, body), one in zip(records, chosen, strict=True) if one == worker]
                assert sent[worker] == expected

    asyncio.run(story())


def test_ours_is_the_default_and_shares_a_hot_key_out(rabbitmq: str, prefix: str) -> None:
    async def story() -> None:
        async with GroupedPublisher(rabbitmq, 4, SECRET, prefix=prefix) as publisher:
            await publisher.publish_many(records_of(skewed(2_000)))
            waiting = await publisher.ask_queues()
            assert sum(waiting.values()) == 2_000
            assert max(waiting.values()) <= 1.15 * 500
            await arrived(rabbitmq, publisher, range(4))

    asyncio.run(story())


def test_workers_come_and_go_while_messages_flow(rabbitmq: str, prefix: str) -> None:
    records = records_of(skewed(1_500))

    async def story() -> None:
        async with GroupedPublisher(rabbitmq, [1, 2, 3], SECRET, prefix=prefix) as publisher:
            before = await publisher.publish_many(records[:500])
            await publisher.join(7)
            assert publisher.workers == (1, 2, 3, 7)
            during = await publisher.publish_many(records[500:1_000])
            publisher.leave(2)
            after = await publisher.publish_many(records[1_000:])
            assert set(before) == {1, 2, 3}
            assert set(during) == {1, 2, 3, 7}
            assert set(after) == {1, 3, 7}
            sent = await arrived(rabbitmq, publisher, [1, 2, 3, 7])
            assert sorted(chain(*sent.values())) == sorted(body for _, body in records)
            assert len(sent[2]) == Counter(before + during)[2]

    asyncio.run(story())


def test_a_grouping_is_told_the_true_lengths_of_the_queues(rabbitmq: str, prefix: str) -> None:
    async def story() -> None:
        grouping = Listening(3)
        asking = GroupedPublisher(rabbitmq, 3, grouping=grouping, prefix=prefix, feedback_every=100)
        async with asking as publisher:
            chosen: list[int] = []
            for _ in range(5):
                chosen += await publisher.publish_many(records_of(skewed(50)))
            shares = [Counter(chosen[:count]) for count in (100, 200)]
            assert grouping.heard == [[share[worker] for worker in range(3)] for share in shares]
            await emptied(rabbitmq, publisher.queue_of(chosen[0]))
            assert (await publisher.ask_queues())[chosen[0]] == 0
            await arrived(rabbitmq, publisher, range(3))

    asyncio.run(story())


def test_a_worker_whose_queue_is_not_emptied_gets_less_and_less(rabbitmq: str, prefix: str) -> None:
    async def story() -> None:
        asking = GroupedPublisher(rabbitmq, 4, SECRET, prefix=prefix, feedback_every=100)
        async with asking as publisher, await aio_pika.connect(rabbitmq) as connection:
            channel = await connection.channel()
            shares = []
            for turn in range(12):
                chosen = await publisher.publish_many(records_of(skewed(200, seed=turn)))
                shares.append(chosen.count(0))
                for prompt in (1, 2, 3):
                    await (await channel.get_queue(publisher.queue_of(prompt))).purge()
            assert sum(shares[6:]) < 0.5 * 6 * 200 / 4  # half of an even share
            await arrived(rabbitmq, publisher, range(4))

    asyncio.run(story())


def test_messages_are_kept_on_disk_and_carry_an_id_each(rabbitmq: str, prefix: str) -> None:
    async def story() -> None:
        async with GroupedPublisher(rabbitmq, 2, SECRET, prefix=prefix) as publisher:
            await publisher.publish_many(records_of(skewed(40)))
            messages = await emptied(rabbitmq, publisher.queue_of(0))
            messages += await emptied(rabbitmq, publisher.queue_of(1))
        assert {each.delivery_mode for each in messages} == {aio_pika.DeliveryMode.PERSISTENT}
        assert len({each.message_id for each in messages}) == 40

    asyncio.run(story())


def test_a_connection_that_breaks_again_and_again_loses_nothing(rabbitmq: str, prefix: str) -> None:
    records = records_of(skewed(1_500))

    async def story() -> None:
        port = urlsplit(rabbitmq).port or 0
        async with cuttable(port, [20_000, 3_000, 50_000, 30_000, PLENTY]) as cut:
            url = through(rabbitmq, cut)
            async with GroupedPublisher(url, 4, SECRET, prefix=prefix, clock=Hasty()) as publisher:
                chosen = await publisher.publish_many(records)
                alone = LevelledGrouping(4, SECRET)
                assert chosen == [alone.choose(key) for key, _ in records]
        expected: dict[int, set[bytes]] = {worker: set() for worker in range(4)}
        for (_, body), worker in zip(records, chosen, strict=True):
            expected[worker].add(body)
        for worker in range(4):
            messages = await emptied(rabbitmq, publisher.queue_of(worker))
            assert {each.body for each in messages} == expected[worker]
            assert len({each.message_id for each in messages}) == len(expected[worker])  # twice only under one id

    asyncio.run(story())


def test_tasks_that_share_a_publisher_do_not_hang_up_on_each_other(rabbitmq: str, prefix: str) -> None:
    records = records_of(skewed(1_500))

    async def story() -> None:
        port = urlsplit(rabbitmq).port or 0
        async with cuttable(port, [20_000, 30_000, 40_000, 50_000, PLENTY]) as cut:
            url = through(rabbitmq, cut)
            async with GroupedPublisher(url, 4, SECRET, prefix=prefix, clock=Hasty(), tries=5) as publisher:
                await asyncio.gather(*(publisher.publish_many(records[part::10]) for part in range(10)))
        there = await arrived(rabbitmq, publisher, range(4))
        assert set(chain(*there.values())) == {body for _, body in records}

    asyncio.run(story())


def test_a_broker_that_goes_away_for_good_leaves_word_of_what_is_not_confirmed(rabbitmq: str, prefix: str) -> None:
    records = records_of(skewed(1_500))

    async def story() -> None:
        port = urlsplit(rabbitmq).port or 0
        clock = Hasty()
        async with cuttable(port, [150_000, 0]) as cut:
            url = through(rabbitmq, cut)
            async with GroupedPublisher(url, 4, SECRET, prefix=prefix, clock=clock, tries=3) as publisher:
                with pytest.raises(BrokerAway) as caught:
                    await publisher.publish_many(records)
        unconfirmed = set(caught.value.unconfirmed)
        assert 0 < len(unconfirmed) < len(records)
        assert f"{len(unconfirmed)} messages" in str(caught.value)
        there = await arrived(rabbitmq, publisher, range(4))
        confirmed = {body for place, (_, body) in enumerate(records) if place not in unconfirmed}
        assert confirmed <= set(chain(*there.values()))

    asyncio.run(story())


def test_a_queue_that_somebody_deleted_is_made_anew(rabbitmq: str, prefix: str) -> None:
    async def story() -> None:
        publishing = GroupedPublisher(rabbitmq, 2, grouping=ShuffleGrouping(2), prefix=prefix, clock=Hasty())
        async with publishing as publisher:
            await emptied(rabbitmq, publisher.queue_of(1))
            assert await publisher.publish_many([("a", b"1"), ("b", b"2"), ("c", b"3"), ("d", b"4")]) == [
                0,
                1,
                0,
                1,
            ]
            sent = await arrived(rabbitmq, publisher, range(2))
            assert sent == {0: [b"1", b"3"], 1: [b"2", b"4"]}

    asyncio.run(story())


def test_a_broker_that_is_not_there_is_tried_a_few_times_with_growing_pauses() -> None:
    (port,) = free_ports(1)
    clock = Hasty()

    async def story() -> None:
        async with GroupedPublisher(f"amqp://me:hidden@127.0.0.1:{port}/", 2, SECRET, tries=8, clock=clock):
            raise AssertionError("there is nobody to talk to")

    with pytest.raises(BrokerAway, match=f"127.0.0.1:{port} does not answer after 8 tries") as caught:
        asyncio.run(story())
    assert "hidden" not in str(caught.value)
    assert clock.slept == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_a_refused_user_is_not_tried_again(rabbitmq: str) -> None:
    clock = Hasty()

    async def story() -> None:
        async with GroupedPublisher(rabbitmq.replace("guest:guest", "guest:wrong"), 2, SECRET, clock=clock):
            raise AssertionError("the password is wrong")

    with pytest.raises(BrokerError, match="refused the user, password or virtual host"):
        asyncio.run(story())
    assert clock.slept == []


def test_a_virtual_host_that_is_not_there_is_not_tried_again(rabbitmq: str) -> None:
    clock = Hasty()

    async def story() -> None:
        async with GroupedPublisher(rabbitmq + "elsewhere", 2, SECRET, clock=clock):
            raise AssertionError("there is no such virtual host")

    with pytest.raises(BrokerError, match="refused the user, password or virtual host"):
        asyncio.run(story())
    assert clock.slept == []


def test_a_queue_with_other_settings_is_named(rabbitmq: str, prefix: str) -> None:
    async def story() -> None:
        async with await aio_pika.connect(rabbitmq) as connection:
            channel = await connection.channel()
            await channel.declare_queue(f"{prefix}1", durable=False)
            async with GroupedPublisher(rabbitmq, 2, SECRET, prefix=prefix, clock=Hasty()):
                raise AssertionError("that queue is not durable")

    with pytest.raises(BrokerError, match=f"{prefix}1 exists with other settings"):
        asyncio.run(story())


def test_bad_input_is_refused_before_anything_is_sent() -> None:
    url = "amqp://127.0.0.1/"
    with pytest.raises(ValueError, match="at least one worker"):
        GroupedPublisher(url, 0, SECRET)
    with pytest.raises(ValueError, match="secret"):
        GroupedPublisher(url, 2)
    with pytest.raises(UsageError, match="looks like amqp://"):
        GroupedPublisher("http://127.0.0.1/", 2, SECRET)
    with pytest.raises(UsageError, match="looks like amqp://"):
        GroupedPublisher("amqp://127.0.0.1:many/", 2, SECRET)
    for prefix in ("", "amq.mine", "x" * 201):
        with pytest.raises(UsageError, match="prefix"):
            GroupedPublisher(url, 2, SECRET, prefix=prefix)


def test_workers_that_are_not_there_or_cannot_change_are_said() -> None:
    async def story() -> None:
        outside = GroupedPublisher("amqp://127.0.0.1/", [1, 2], grouping=DirectGrouping(3, lambda key: 0))
        with pytest.raises(UsageError, match="worker 0, which is not one of"):
            await outside.publish("key", b"")
        fixed = GroupedPublisher("amqp://127.0.0.1/", 2, grouping=KeyGrouping(2))
        with pytest.raises(UsageError, match="KeyGrouping cannot change its workers"):
            await fixed.join(2)
        with pytest.raises(UsageError, match="KeyGrouping cannot change its workers"):
            fixed.leave(1)

    asyncio.run(story())


def test_a_missing_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aio_pika", None)
    with pytest.raises(MissingExtra, match=r"pip install 'levada\[rabbitmq\]'"):
        GroupedPublisher("amqp://127.0.0.1/", 2, SECRET)


def test_the_example_prints_what_was_recorded(rabbitmq: str) -> None:
    command = [sys.executable, str(EXAMPLES / "rabbitmq.py"), rabbitmq]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == (EXAMPLES / "rabbitmq.txt").read_text(encoding="utf-8")
