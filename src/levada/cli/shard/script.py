"""`levada shard script`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote, urlsplit

import typer

from levada.cli.app import make_family
from levada.cli.options import JsonOption, print_json, print_result, split_names
from levada.cli.shard.advise import read_placement
from levada.core.errors import LevadaError, UsageError
from levada.core.files import whole_file
from levada.sharding.placement import KeyPart, Placement

if TYPE_CHECKING:
    from levada.sharding.scripts.postgresql import Server

PlacementArgument = Annotated[
    Path, typer.Argument(metavar="PLACEMENT", help="A file that `levada shard advise --keep` wrote.")
]


def script() -> None:
    """Writes what a database must be told to shard by an advised key. Nothing is run.

    Examples:

    ```
    levada shard advise queries.jsonl ads.jsonl --shards 3 --keep advised.json
    levada shard script mongodb advised.json --shard rs0 --shard rs1 --shard rs2 > shard.js
    ```
    """


def mongodb(
    placement: PlacementArgument,
    shard: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A shard of the cluster; once for each.")
    ] = None,
    current: Annotated[
        str, typer.Option(metavar="KEY", help="The present key, such as category_id:hashed,region_id.")
    ] = "",
    collection: Annotated[
        str | None, typer.Option(metavar="DB.NAME", help="Default: the one that was advised on.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Prints a script for mongosh: the key, first chunks, zones for hot values, and the server's own check of it.

    Where the present key is the beginning of the new one, it is refined and nothing moves.

    Examples:

    ```
    levada shard script mongodb advised.json --shard rs0 --shard rs1 --shard rs2 > shard.js
    levada shard script mongodb advised.json --current category_id:hashed --json
    ```
    """
    from levada.sharding.scripts.mongodb import mongodb_script

    kept = read_placement(placement)
    count = kept.placement.shards
    names = list(shard or (f"shard{number}" for number in range(count)))
    if len(names) != count:
        raise UsageError(f"--shard: the placement has {count} shards, and {len(names)} were named")
    name = collection or kept.collection
    if "." not in name.strip("."):
        raise UsageError(f"--collection: a database and a name are needed, such as shop.ads, not {name[:50]!r}")
    present = tuple(
        KeyPart(part.removesuffix(":hashed"), hashed=part.endswith(":hashed")) for part in split_names(current)
    )
    made = mongodb_script(name, kept.placement, names, present)
    print_result(json, {"collection": name, "shards": names, "script": made}, sys.stdout.write, made)


def postgresql(
    placement: PlacementArgument,
    server: Annotated[list[str], typer.Option(metavar="URL", help="postgresql://user@host:port/name, once for each.")],
    columns: Annotated[str, typer.Option(metavar="SQL", help="As in CREATE TABLE: 'id bigint, site text'.")],
    table: Annotated[str | None, typer.Option(metavar="NAME", help="Default: the one that was advised on.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Files there, one for each server, instead of text.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Prints SQL for each server and a coordinator: declarative partitions, kept on the servers by postgres_fdw.

    Examples:

    ```
    levada shard script postgresql advised.json --columns 'id bigint, category_id int' \\
        --server postgresql://a@db0/ads --server postgresql://a@db1/ads --out scripts
    ```
    """
    from levada.sharding.scripts.postgresql import postgresql_script

    kept = read_placement(placement)
    count = kept.placement.shards
    if len(server) != count:
        raise UsageError(f"--server: the placement has {count} shards, and {len(server)} were named")
    servers = [_server(each) for each in server]
    _check_columns(columns, kept.placement)
    name = table or kept.collection
    made = postgresql_script(name, columns, kept.placement, servers, kept.values)
    files = {f"server{number}.sql": text for number, text in enumerate(made.shards)}
    files["coordinator.sql"] = made.coordinator
    if out is not None:
        for file, text in files.items():
            _write(out / file, text)
    if json:
        print_json({"table": name, "scripts": files, "folder": None if out is None else str(out)})
    elif out is None:
        sys.stdout.write("".join(f"-- {file}\n{text}" for file, text in files.items()))


def _server(typed: str) -> Server:
    from levada.sharding.scripts.postgresql import Server

    try:
        parts = urlsplit(typed)
        port = parts.port or 5432
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme not in ("postgresql", "postgres") or not parts.hostname:
        raise UsageError("--server: an address is needed, such as postgresql://user@host:5432/database")
    database = unquote(parts.path.strip("/")) or "postgres"
    return Server(parts.hostname, port, database, unquote(parts.username or "postgres"))


def _check_columns(columns: str, placement: Placement) -> None:
    """Check that the columns of the key exist: the script names them in quotes."""
    from levada.core.suggestions import near_names
    from levada.sharding.scripts.postgresql import column_names

    known = column_names(columns)
    needed = filter(None, (*placement.key.fields, placement.directory))
    missing = next((field for field in needed if known is not None and field not in known), None)
    if known is None or missing is None:
        return
    unquoted = missing.lower() in known
    hint = "write it in double quotes, or it is small" if unquoted else near_names(missing, known)
    raise UsageError(f"--columns: the key needs a column {missing[:50]!r}; {hint}")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LevadaError(f"cannot write {path}: {error.strerror or error}") from None
    with whole_file(path, force=True) as out:
        out.write(text.encode())


family = make_family(script, mongodb, postgresql, no_args_is_help=True)
