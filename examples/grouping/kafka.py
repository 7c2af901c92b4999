"""A skewed stream over the partitions of a Kafka topic: by key, and levelled.

python examples/grouping/kafka.py [localhost:9092]

Without an address it runs on the mock cluster inside librdkafka, whose topics have four partitions.
"""

from __future__ import annotations

import sys

from confluent_kafka import KafkaError, Message, Producer
from skewed import SECRET, print_table, skewed_keys

from levada.engines.kafka import GroupedProducer
from levada.engines.sender import MakeGrouping
from levada.grouping import KeyGrouping

TOPICS: dict[str, MakeGrouping | None] = {"levada-example-key": KeyGrouping, "levada-example-levelled": None}


def share_out(producer: Producer, topic: str, keys: list[str], make: MakeGrouping | None) -> list[tuple[str, int]]:
    """Each record's key, and the partition that it arrived in."""
    arrived: list[tuple[str, int]] = []

    def report(error: KafkaError | None, message: Message) -> None:
        if error is None:
            arrived.append(((message.key() or b"").decode(), message.partition() or 0))

    grouped = GroupedProducer(producer, SECRET, make)
    for key in keys:
        grouped.produce(topic, b"1", key, on_delivery=report)
    grouped.flush()
    return arrived


def main(server: str | None) -> None:
    where = {"bootstrap.servers": server} if server else {"test.mock.num.brokers": 1, "log_level": 0}
    producer = Producer(where)
    keys = skewed_keys(20_000)
    shared = {topic.rpartition("-")[2]: share_out(producer, topic, keys, make) for topic, make in TOPICS.items()}
    print_table(GroupedProducer(producer, SECRET).partitions_of(next(iter(TOPICS))), shared)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
