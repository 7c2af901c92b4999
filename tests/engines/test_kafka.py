"""Records over Kafka's partitions, by each client of Python against the brokers that librdkafka pretends to be."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import warnings
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import BrokerAway, BrokerError, MissingExtra
from levada.engines.kafka import GroupedProducer, GroupingPartitioner, kafka_python_partitioner
from levada.engines.sender import MakeGrouping
from levada.grouping import DynamicKeyGrouping, KeyGrouping, LevelledGrouping, PartialKeyGrouping
from tests.servers.private import free_ports

EXAMPLES = Path(__file__).parents[2] / "examples" / "grouping"
SECRET = b"known to all producers"
PARTITIONS = 4  # of every topic of the mock cluster


@pytest.fixture(scope="module")
def producer() -> Producer:
    return Producer({"test.mock.num.brokers": 2, "log_level": 0})


@pytest.fixture(scope="module")
def brokers(producer: Producer) -> str:
    """Where the mock brokers listen; they live as long as the producer."""
    found = producer.list_topics(timeout=10.0).brokers.values()
    return ",".join(f"{broker.host}:{broker.port}" for broker in found)


@pytest.fixture
def kafka_python() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it reads its own files in an old way
        return import_module("kafka")


def skewed(records: int) -> list[bytes]:
    chance = random.Random(1)
    return [b"hot" if chance.random() < 0.5 else b"key %d" % chance.randrange(200) for _ in range(records)]


def alone(keys: list[bytes]) -> list[int]:
    grouping = LevelledGrouping(PARTITIONS, SECRET)
    return [grouping.choose(key) for key in keys]


@pytest.mark.parametrize("make", [KeyGrouping, PartialKeyGrouping, DynamicKeyGrouping, None])
def test_confluent_kafka_delivers_where_the_grouping_alone_would(producer: Producer, make: MakeGrouping | None) -> None:
    keys = skewed(2_000)
    arrived: list[tuple[int, int]] = []
    grouped = GroupedProducer(producer, SECRET, make)
    topic = make.__name__ if isinstance(make, type) else "levelled"

    def report(error: Any, message: Any) -> None:
        arrived.append((int(message.value()), message.partition()))

    chosen = [grouped.produce(topic, str(place), key, on_delivery=report) for place, key in enumerate(keys)]
    grouped.flush()
    method = make(PARTITIONS) if make else LevelledGrouping(PARTITIONS, SECRET)
    assert chosen == [method.choose(key, 0.0) for key in keys]
    assert sorted(arrived) == list(enumerate(chosen))


def test_aiokafka_delivers_where_the_grouping_alone_would(brokers: str) -> None:
    keys = skewed(1_000)

    async def story() -> list[int]:
        client: Any = import_module("aiokafka")
        sender = client.AIOKafkaProducer(bootstrap_servers=brokers, partitioner=GroupingPartitioner(SECRET))
        await sender.start()
        try:
            sent = [await sender.send("of-aiokafka", b"", key=key) for key in keys]
            return [told.partition for told in await asyncio.gather(*sent)]
        finally:
            await sender.stop()

    assert asyncio.run(story()) == alone(keys)


def test_kafka_python_delivers_where_the_grouping_alone_would(brokers: str, kafka_python: Any) -> None:
    keys = skewed(500)
    # Of what versions brokers speak, the mock ones do not tell in the way that this client asks.
    sender = kafka_python.KafkaProducer(
        bootstrap_servers=brokers, partitioner=kafka_python_partitioner(SECRET), api_version=(2, 3, 0)
    )
    try:
        sent = [sender.send("of-kafka-python", b"", key=key) for key in keys]
        arrived = [future.get(10.0).partition for future in sent]
    finally:
        sender.close()
    assert arrived == alone(keys)


def test_all_clients_send_a_text_key_where_its_bytes_go() -> None:
    partitioner, other = GroupingPartitioner(SECRET), GroupingPartitioner(SECRET)
    for word in ("Fés", "", "Ōsaka", "Ōsaka"):
        assert partitioner.partition_for(word, 7) == other(word.encode(), range(7), [])


def test_records_without_a_key_go_to_each_partition_in_turn(producer: Producer) -> None:
    grouped = GroupedProducer(producer, SECRET)
    assert [grouped.produce("without-key", b"") for _ in range(10)] == list(islice(cycle(range(PARTITIONS)), 10))
    grouped.flush()
    partitioner = GroupingPartitioner(SECRET)
    assert [partitioner(None, [0, 1, 2, 3], [1, 3]) for _ in range(4)] == [1, 3, 1, 3]
    assert [partitioner(None, [0, 1, 2], []) for _ in range(4)] == [0, 1, 2, 0]


@given(
    keys=st.lists(st.none() | st.binary(max_size=20), max_size=60),
    partitions=st.sets(st.integers(0, 40), min_size=1, max_size=12),
    chance=st.randoms(use_true_random=False),
)
def test_it_names_a_partition_that_is_there_in_whatever_order_they_come(
    keys: list[bytes | None], partitions: set[int], chance: random.Random
) -> None:
    one, other = GroupingPartitioner(SECRET), GroupingPartitioner(SECRET)
    for key in keys:
        shuffled = chance.sample(sorted(partitions), len(partitions))
        chosen = one(key, sorted(partitions), sorted(partitions))
        assert chosen in partitions
        assert chosen == other(key, shuffled, sorted(partitions))


def test_a_key_goes_where_it_belongs_although_that_partition_cannot_be_reached_now() -> None:
    partitioner = GroupingPartitioner(make=KeyGrouping)
    home = KeyGrouping(4).choose(b"key")
    assert partitioner(b"key", [0, 1, 2, 3], [each for each in range(4) if each != home]) == home


def test_topics_do_not_share_their_counts() -> None:
    keys = skewed(1_000)
    partitioner = GroupingPartitioner(SECRET)
    both = [[partitioner.partition_for(key, PARTITIONS, topic) for topic in ("one", "other")] for key in keys]
    assert [list(each) for each in zip(*both, strict=True)] == [alone(keys), alone(keys)]


def test_few_keys_move_when_a_topic_grows() -> None:
    partitioner = GroupingPartitioner(SECRET)
    keys = [b"key %d" % number for number in range(400)]
    before = [partitioner(key, range(8), []) for key in keys]
    after = [partitioner(key, range(9), []) for key in keys]
    assert sum(one != other for one, other in zip(before, after, strict=True)) < 0.3 * len(keys)


def test_a_kafka_that_is_not_there_is_said_before_anything_is_sent() -> None:
    (port,) = free_ports(1)
    away = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
    with pytest.raises(BrokerAway, match="does not describe the topic trends"):
        GroupedProducer(away, SECRET, seconds=0.2).produce("trends", b"", b"key")


class Fault:
    def __init__(self, words: str) -> None:
        self._words = words

    def str(self) -> str:
        return self._words


class Pretended:
    """A producer that is told what becomes of each record: "deliver", "wait" for ever, "full", or an error."""

    def __init__(self, *fates: str) -> None:
        self._fates = list(fates)
        self._reports: list[tuple[Any, str]] = []

    def list_topics(self, topic: str, timeout: float) -> Any:
        kind = type("Described", (), {"error": None, "partitions": [0, 1]})
        return type("Topics", (), {"topics": {topic: kind}})

    def produce(self, *record: Any, on_delivery: Any) -> None:
        fate = self._fates.pop(0)
        if fate == "full":
            raise BufferError("Local: Queue full")
        self._reports.append((on_delivery, fate))

    def poll(self, seconds: float) -> int:
        return 0

    def flush(self, seconds: float) -> int:
        for report, fate in self._reports:
            if fate != "wait":
                report(None if fate == "deliver" else Fault(fate), None)
        left = [each for each in self._reports if each[1] == "wait"]
        self._reports = left
        return len(left)


def test_what_was_not_delivered_is_named_once() -> None:
    pretended: Any = Pretended("deliver", "Message too large", "deliver", "wait")
    grouped = GroupedProducer(pretended, SECRET)
    for key in (b"a", b"b", b"c", b"d"):
        grouped.produce("topic", b"", key)
    with pytest.raises(BrokerAway, match="2 records are not delivered to Kafka: Message too large") as caught:
        grouped.flush()
    assert caught.value.unconfirmed == (1, 3)
    with pytest.raises(BrokerAway, match="1 records are not delivered to Kafka: no answer within") as caught:
        grouped.flush()
    assert caught.value.unconfirmed == (3,)


def test_a_full_queue_is_waited_for_and_then_said() -> None:
    soon: Any = Pretended("full", "full", "deliver")
    grouped = GroupedProducer(soon, SECRET, seconds=1.0)
    grouped.produce("topic", b"", b"key")
    grouped.flush()
    never: Any = Pretended(*["full"] * 10)
    with pytest.raises(BrokerAway, match="queue was full for 1 s"):
        GroupedProducer(never, SECRET, seconds=1.0).produce("topic", b"", b"key")


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="secret"):
        GroupingPartitioner()
    with pytest.raises(BrokerError, match="without partitions"):
        GroupingPartitioner(SECRET)(b"key", [], [])
    with pytest.raises(TypeError, match="bytes, str or int"):
        GroupingPartitioner(SECRET).partition_for(1.5, 4)  # type: ignore[arg-type]


def test_a_missing_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kafka.partitioner", None)
    with pytest.raises(MissingExtra, match=r"pip install 'levada\[kafka\]'"):
        kafka_python_partitioner(SECRET)


def test_the_example_prints_what_was_recorded() -> None:
    done = subprocess.run([sys.executable, EXAMPLES / "kafka.py"], capture_output=True, text=True, check=True)
    assert done.stdout == (EXAMPLES / "kafka.txt").read_text(encoding="utf-8")
