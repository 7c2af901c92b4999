"""`levada shard advise`: which key splits these documents the way they are asked for?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from levada.cli.options import JsonOption, print_json
from levada.cli.shard_options import (
    CollectionOption,
    IdOption,
    ImmutableOption,
    LogArgument,
    MutableOption,
    SampleArgument,
    check_changes,
)
from levada.errors import LevadaError, UsageError

__all__ = ["register"]

_MOST_SHARDS = 1_000


def register(app: typer.Typer) -> None:
    app.command()(advise)


def advise(
    log: LogArgument,
    sample: SampleArgument,
    shards: Annotated[int, typer.Option("--shards", metavar="K", help="How many there will be.")],
    collection: CollectionOption = None,
    id_field: IdOption = None,
    mutable: MutableOption = None,
    immutable: ImmutableOption = None,
    queries: Annotated[
        int, typer.Option("--queries", metavar="N", help="Try keys on so many queries at most.")
    ] = 200_000,
    documents: Annotated[
        int, typer.Option("--documents", metavar="N", help="Keep so many documents at most.")
    ] = 200_000,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw the candidates: .svg.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="FILE", help="Write the advised placement, for `shard script`.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Tries shard keys on a log of queries and a sample of documents, ranks them, and says why.

    Beside ours stand the paper's method (fields by their share, the id last) and the hashed id. No field that
    writes change is in a key of ours; a log that has no writes cannot tell, so say `--mutable`. Nothing is changed
    anywhere.

    Examples:

    ```
    levada shard advise queries.jsonl documents.jsonl --shards 8
    levada shard advise queries.jsonl ads.parquet --shards 3 --mutable status --picture keys.svg
    levada shard advise queries.jsonl ads.csv --shards 8 --collection board.ads --keep advised.json --json
    ```
    """
    _check(log, shards, queries, documents, picture, keep)
    check_changes(mutable, immutable)
    from levada.cli.shard_advise_run import Asked, run

    asked = Asked(log, sample, shards, collection, id_field, queries, documents)
    result = run(asked, mutable or (), immutable or (), quiet=json)
    if keep:
        from levada.cli.shard_advise_keep import write_placement

        write_placement(keep, result.collection, result.advice.chosen.placement, result.values)
    if picture:
        from levada.cli.shard_advise_picture import draw

        draw(result.advice, picture)
    if json:
        print_json(result.facts())
    else:
        from levada.cli.shard_advise_print import show

        show(result)


def _check(log: Path, shards: int, queries: int, documents: int, picture: Path | None, keep: Path | None) -> None:
    if shards < 2:
        raise UsageError("--shards must be at least 2: with one shard every document is on it, whatever the key")
    if shards > _MOST_SHARDS:
        raise UsageError(f"--shards must be at most {_MOST_SHARDS}, not {shards}")
    if min(queries, documents) < 1:
        raise UsageError("--queries and --documents must be at least 1")
    if picture is not None and picture.suffix.lower() != ".svg":
        raise UsageError(f"--picture: the name must end in .svg, not {picture.name!r}")
    for option, path in (("--picture", picture), ("--keep", keep)):
        if path is not None and not path.absolute().parent.is_dir():
            raise LevadaError(f"{option}: there is no folder {path.parent}")
    if not log.is_file():
        raise LevadaError(f"there is no log of queries {log}")
