"""A skewed stream over four workers in Flink's local mini-cluster: by key, and levelled.

python examples/grouping/flink.py

Four upstream subtasks share the stream, and each decides alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from pyflink.common import Configuration, Encoder, Types
from pyflink.datastream import ProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink
from skewed import SECRET, print_table, skewed_keys

from levada.engines.flink import FlinkGrouping
from levada.grouping import KeyGrouping

WORKERS = 4


class Worker(ProcessFunction):
    """Writes down which worker got which key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.worker = runtime_context.get_index_of_this_subtask()

    def process_element(self, value: str, ctx: ProcessFunction.Context) -> Iterator[str]:
        yield f"{self.worker} {value}"


def share_out(keys: list[str], grouping: FlinkGrouping) -> list[tuple[str, int]]:
    """Each record's key and the worker that wrote it down."""
    settings = Configuration()
    settings.set_string("python.executable", sys.executable)  # the Python that has levada, at the workers too
    environment = StreamExecutionEnvironment.get_execution_environment(settings)
    environment.set_parallelism(WORKERS)
    environment.enable_checkpointing(1_000)  # files are complete from a checkpoint on
    with TemporaryDirectory() as folder:
        stream = environment.from_collection(keys, type_info=Types.STRING())
        # The subtasks of this step are the senders: partition_custom runs beside what comes before it.
        read = stream.rebalance().map(str.strip, output_type=Types.STRING())
        shared = read.partition_custom(grouping, lambda key: key)
        written = FileSink.for_row_format(folder, Encoder.simple_string_encoder()).build()
        shared.process(Worker(), output_type=Types.STRING()).sink_to(written)
        # Not execute_and_collect: PyFlink tells partition_custom the number of partitions only here.
        environment.execute("share out")
        lines = [line.split() for file in Path(folder).rglob("*part-*") for line in file.read_text().splitlines()]
    assert sorted(key for _, key in lines) == sorted(keys), "a record was lost or doubled"
    return [(key, int(worker)) for worker, key in lines]


def main() -> None:
    keys = skewed_keys(20_000)
    by_key = share_out(keys, FlinkGrouping(make=KeyGrouping))
    levelled = share_out(keys, FlinkGrouping(SECRET))
    print_table(WORKERS, {"key": by_key, "levelled": levelled})


if __name__ == "__main__":
    main()
