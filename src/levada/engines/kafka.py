"""Kafka partitioner by a grouping.

`GroupingPartitioner` supports the Python clients: aiokafka and kafka-python 2 call it with a key and the
partitions; kafka-python 3 calls its `partition`; confluent-kafka takes no callable, so `GroupedProducer` sets the
partition of each record. Records without a key go to the partitions in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from levada.core.clock import SystemClock
from levada.core.errors import BrokerAway, BrokerError, MissingExtra
from levada.core.protocols import Clock
from levada.engines.sender import GroupingSender, MakeGrouping, chosen_grouping
from levada.grouping import Key

if TYPE_CHECKING:
    from confluent_kafka import Producer

_MOST_SENDERS = 1024  # pairs of topic and number of partitions
_METADATA_AGE = 300.0
_PAUSE = 0.1


class GroupingPartitioner:
    """One sender per topic, if the client names the topic, and per number of partitions.

    `secret` is the same bytes at every producer, unknown outside; `make` returns another method for a number of
    workers. A topic that grows starts with new counts; keys hash as before, so few of them move.
    """

    def __init__(self, secret: bytes = b"", make: MakeGrouping | None = None, *, clock: Clock | None = None) -> None:
        self._make = chosen_grouping(secret, make)
        self._clock = clock
        self._senders: dict[tuple[str, int], GroupingSender] = {}

    def __call__(
        self, key: bytes | None, all_partitions: Sequence[int], available: Sequence[int], topic: str = ""
    ) -> int:
        """The partition: by the grouping, reachable or not; for a record without a key, an available one."""
        if key is None and available:
            return available[self._sender(topic, len(all_partitions)).next_of(len(available))]
        return sorted(all_partitions)[self.partition_for(key, len(all_partitions), topic)]

    def partition(self, topic: str, key: Any, serialized_key: bytes | None, *rest: Any) -> int:
        """The partition for kafka-python 3, whose last argument is the cluster metadata."""
        cluster = rest[-1]
        return self(
            serialized_key,
            list(cluster.partitions_for_topic(topic) or ()),
            sorted(cluster.available_partitions_for_topic(topic) or ()),
            topic,
        )

    def partition_for(self, key: Key | None, partitions: int, topic: str = "") -> int:
        """The number, from 0, for a topic with this many partitions."""
        return self._sender(topic, partitions).place_of(key)

    def _sender(self, topic: str, partitions: int) -> GroupingSender:
        if partitions < 1:
            raise BrokerError(f"a topic without partitions: {topic or 'unnamed'}")
        sender = self._senders.get((topic, partitions))
        if sender is None:
            if len(self._senders) >= _MOST_SENDERS:
                self._senders.clear()
            sender = self._senders[topic, partitions] = GroupingSender(self._make, partitions, self._clock)
        return sender


def kafka_python_partitioner(secret: bytes = b"", make: MakeGrouping | None = None) -> GroupingPartitioner:
    """A `GroupingPartitioner` that is registered as a kafka-python partitioner, as version 3 requires."""
    try:
        known = import_module("kafka.partitioner")
    except ImportError:
        raise MissingExtra("kafka-python", "kafka") from None
    base = getattr(known, "Partitioner", None)
    if base is not None:
        base.register(GroupingPartitioner)
    return GroupingPartitioner(secret, make)


class GroupedProducer:
    """A confluent-kafka producer that sets the partition of each record by the grouping.

    Records are numbered from 0; the next `flush` names those that were not delivered. A record waits up to
    `seconds` if the queue of the producer is full.
    """

    def __init__(
        self,
        producer: Producer,
        secret: bytes = b"",
        make: MakeGrouping | None = None,
        *,
        seconds: float = 10.0,
        clock: Clock | None = None,
    ) -> None:
        self._producer = producer
        self._clock = clock or SystemClock()
        self._partitioner = GroupingPartitioner(secret, make, clock=self._clock)
        self._seconds = seconds
        self._partitions: dict[str, tuple[int, float]] = {}
        self._count = 0
        self._open: dict[int, str] = {}  # not delivered yet, or not at all: why

    def produce(self, topic: str, value: bytes | str | None = None, key: bytes | str | None = None, **rest: Any) -> int:
        """Send a record; returns its partition. `rest` goes to the producer: headers, timestamp, on_delivery."""
        partition = self._partitioner.partition_for(key, self.partitions_of(topic), topic)
        report = self._report(self._count, rest.pop("on_delivery", None) or rest.pop("callback", None))
        for _ in range(max(1, int(self._seconds / _PAUSE))):
            try:
                self._producer.produce(topic, value, key, partition, on_delivery=report, **rest)
            except BufferError:
                self._producer.poll(_PAUSE)
            else:
                self._open[self._count] = ""
                self._count += 1
                self._producer.poll(0)
                return partition
        raise BrokerAway(f"the producer's queue was full for {self._seconds:g} s: is Kafka running?", [self._count])

    def flush(self) -> None:
        """Return when all records are delivered; `BrokerAway` names the others."""
        self._producer.flush(self._seconds)
        missing = self._open
        if missing:
            self._open = {number: why for number, why in missing.items() if not why}
            why = max(missing.values()) or f"no answer within {self._seconds:g} s"
            raise BrokerAway(f"{len(missing)} records are not delivered to Kafka: {why}", sorted(missing))

    def partitions_of(self, topic: str) -> int:
        known, since = self._partitions.get(topic, (0, 0.0))
        now = self._clock.monotonic()
        if not known or now - since > _METADATA_AGE:
            known = self._described(topic)
            self._partitions[topic] = (known, now)
        return known

    def _described(self, topic: str) -> int:
        from confluent_kafka import KafkaException

        try:
            described = self._producer.list_topics(topic, timeout=self._seconds).topics[topic]
        except KafkaException as error:
            raise BrokerAway(f"Kafka does not describe the topic {topic}: {error.args[0].str()}") from error
        if described.error is not None:
            raise BrokerError(f"Kafka has no topic {topic}: {described.error.str()}")
        return len(described.partitions)

    def _report(self, number: int, listener: Callable[[Any, Any], None] | None) -> Callable[[Any, Any], None]:
        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self._open.pop(number, None)
            else:
                self._open[number] = error.str()
            if listener is not None:
                listener(error, message)

        return delivered
