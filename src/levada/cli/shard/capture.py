"""`levada shard capture`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from levada.cli.app import make_family
from levada.cli.options import STDOUT, JsonOption, OutOption
from levada.cli.shard.options import check_sample, parse_address, parse_size, read_key

ValuesOption = Annotated[
    str, typer.Option("--values", metavar="WHAT", help="What stays of values: keep, hash or drop.")
]
HashKeyOption = Annotated[
    Path | None, typer.Option("--hash-key", metavar="FILE", help="The key of --values hash; else one for this run.")
]
SampleOption = Annotated[
    float, typer.Option("--sample", metavar="R", help="The share of queries to write, drawn by chance.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the file that is there already.")]


def capture() -> None:
    """Writes what a store is asked as clean JSON lines, without touching the application.

    Each line is one query: collection, operation, a tree of conditions, order, the fields that a write changes.
    Values are kept, hashed under a key, or dropped.

    Examples:

    ```
    levada shard capture mongo --listen 27018 --to db.example.org:27017 --out queries.jsonl
    levada shard capture pcap traffic.pcapng --values hash --out queries.jsonl
    levada shard capture log mongod.log --out queries.jsonl
    levada shard capture postgres postgresql://db.example.org/shop --out queries.jsonl
    levada shard capture postgres-log postgresql.csv --out queries.jsonl
    ```
    """


def mongo(
    to: Annotated[str, typer.Option(metavar="HOST:PORT", help="The MongoDB to pass everything on to.")],
    listen: Annotated[
        str, typer.Option(metavar="[HOST:]PORT", help="Where clients connect; of this machine only.")
    ] = "27018",
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where queries go; appended to.")] = Path("queries.jsonl"),
    values: ValuesOption = "keep",
    hash_key: HashKeyOption = None,
    sample: SampleOption = 1.0,
    rotate: Annotated[str | None, typer.Option(metavar="SIZE", help="Begin a new file at this size: 100MB.")] = None,
    keep: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Files before it to keep.")] = 10,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Traffic that may wait to be read; more is not logged.")
    ] = "64MB",
    json: JsonOption = False,
) -> None:
    """Stands between clients and a MongoDB, passes everything on unchanged, and writes down what is asked.

    Let the application connect to this instead. Reading happens in another process, from a copy: if it lags or
    dies, or the disk is full, the traffic flows on, and what was lost is counted and said. Traffic under TLS is
    passed on, and not read. Runs until Ctrl-C.

    Examples:

    ```
    levada shard capture mongo --listen 27018 --to db.example.org:27017 --out queries.jsonl
    levada shard capture mongo --to 10.0.0.5:27017 --sample 0.1 --rotate 100MB --keep 5 --values drop
    ```
    """
    from levada.cli.shard.capture_run import run_proxy

    check_sample(sample)
    key = read_key(values, hash_key)
    run_proxy(
        parse_address(listen, "--listen", "127.0.0.1"),
        parse_address(to, "--to"),
        {
            "out": str(out.absolute()),
            "values": values,
            "key": key,
            "sample": sample,
            "rotate": None if rotate is None else parse_size(rotate, "--rotate"),
            "keep": keep,
            "memory": parse_size(memory, "--memory"),
        },
        json,
    )


def pcap(  # options are repeated because Typer reads them from the signature
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What tshark, dumpcap or tcpdump wrote.")],
    port: Annotated[int, typer.Option(metavar="P", min=1, max=65_535, help="The MongoDB's.")] = 27_017,
    out: OutOption = STDOUT,
    values: ValuesOption = "keep",
    hash_key: HashKeyOption = None,
    sample: SampleOption = 1.0,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Reads what a MongoDB was asked from captured traffic, pcap or pcapng.

    Segments may be repeated, out of order or missing: then reading goes on with the next message that can be
    recognised, and the loss is counted.

    Examples:

    ```
    tshark -i eth0 -f 'tcp port 27017' -w traffic.pcapng
    levada shard capture pcap traffic.pcapng --out queries.jsonl
    levada shard capture pcap traffic.pcapng --port 27018 --values hash --hash-key key.bin | head -n 1
    ```
    """
    from levada.capture.mongodb.conversation import CaptureCounts, CaptureReading, queries_in_pcap
    from levada.cli.shard.capture_run import capturing

    reading = CaptureReading(CaptureCounts())
    with capturing(file, out, values, hash_key, sample, force, json) as (opened, capture):
        capture.write(queries_in_pcap(opened, port, reading))
        capture.tell(
            reading,
            missing=reading.missing,
            cut=reading.damaged,
            unreadable=sum(reading.heard.unreadable.values()),
            encrypted=reading.heard.encrypted,
        )


def log(  # options are repeated because Typer reads them from the signature
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An export of system.profile, or a mongod log.")],
    out: OutOption = STDOUT,
    values: ValuesOption = "keep",
    hash_key: HashKeyOption = None,
    sample: SampleOption = 1.0,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Reads what a MongoDB was asked from its own records.

    Takes `system.profile` as mongoexport (JSON) or mongodump (BSON) writes it, and the structured log of 4.4 and
    later. Which of them it is, is seen from the file.

    Examples:

    ```
    mongoexport --db shop --collection system.profile --out profile.json
    levada shard capture log profile.json --out queries.jsonl
    levada shard capture log mongod.log --values drop --out queries.jsonl
    ```
    """
    from levada.capture.json_documents import JsonReading
    from levada.capture.mongodb.log import MongoLogReading, queries_in_log
    from levada.cli.shard.capture_run import capturing

    reading = MongoLogReading(JsonReading())
    with capturing(file, out, values, hash_key, sample, force, json) as (opened, capture):
        capture.write(queries_in_log(opened, reading))
        capture.tell(reading, damaged=reading.json.damaged, truncated=reading.truncated)


def postgres(
    dsn: Annotated[str, typer.Argument(metavar="DSN", help="postgresql://user@host/database")],
    out: OutOption = STDOUT,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Reads what a PostgreSQL was asked from pg_stat_statements: each statement once, with how often it was asked.

    It keeps no values, so there are none in the log.

    Examples:

    ```
    levada shard capture postgres postgresql://db.example.org/shop --out queries.jsonl
    levada shard capture postgres "host=db.example.org dbname=shop" | head -n 1
    ```
    """
    from levada.capture.postgresql.log import queries_in_statistics
    from levada.capture.postgresql.statements import StatementReading
    from levada.cli.shard.capture_run import writing

    reading = StatementReading()
    with writing(out, "keep", None, 1.0, force, json) as capture:
        capture.write(queries_in_statistics(dsn, reading))
        capture.tell(reading, unparsed=reading.unparsed)


def postgres_log(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A csvlog or jsonlog of PostgreSQL.")],
    out: OutOption = STDOUT,
    values: ValuesOption = "keep",
    hash_key: HashKeyOption = None,
    sample: SampleOption = 1.0,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Reads what a PostgreSQL was asked from its log, written with log_destination = 'csvlog' or 'jsonlog'.

    Statements are in it with log_statement = 'all' or log_min_duration_statement = 0; their parameters too.

    Examples:

    ```
    levada shard capture postgres-log postgresql.csv --out queries.jsonl
    levada shard capture postgres-log postgresql.json --values hash | head -n 1
    ```
    """
    from levada.capture.postgresql.log import PostgresLogReading, queries_in_postgres_log
    from levada.cli.shard.capture_run import capturing

    reading = PostgresLogReading()
    with capturing(file, out, values, hash_key, sample, force, json) as (opened, capture):
        capture.write(queries_in_postgres_log(opened, reading))
        capture.tell(reading, damaged=reading.lines.damaged, unparsed=reading.unparsed)


family = make_family(capture, mongo, pcap, log, postgres, postgres_log, no_args_is_help=True)
