"""`levada shard advise`.

Each key is a row of two bars: capacity (longer is better), and shards per query with the busiest shard's load
marked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from levada.cli.lab.tables import check_folder, check_picture, figures_table, records_table, wide_printer
from levada.cli.options import JsonOption, print_result
from levada.cli.shard.options import (
    CollectionOption,
    IdOption,
    ImmutableOption,
    LogArgument,
    MutableOption,
    SampleArgument,
    check_request,
)
from levada.cli.terminal import bar, progress_bar
from levada.core.errors import LevadaError, UsageError
from levada.core.files import whole_file
from levada.core.words import line, plural, shortened
from levada.sharding.placement import Placement

if TYPE_CHECKING:
    from levada.capture.advice import AdviceResult
    from levada.sharding.advice import Advice
    from levada.sharding.candidates import Tried
    from levada.sharding.evaluation import PlacementFigures


class PlacementFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An advised placement in a file; `values` are those seen in the first field of the key."""

    collection: str
    placement: Placement
    values: tuple[str | int | float | bool | None, ...] = ()


def write_placement(path: Path, collection: str, placement: Placement, values: tuple[Any, ...]) -> None:
    scalars = tuple(value for value in values if isinstance(value, str | int | float | bool | None))
    kept = PlacementFile(collection, placement, scalars)
    with whole_file(path, force=True) as out:
        out.write(msgspec.json.format(msgspec.json.encode(kept)) + b"\n")


def read_placement(path: Path) -> PlacementFile:
    try:
        return msgspec.json.decode(path.read_bytes(), type=PlacementFile)
    except OSError as error:
        raise LevadaError(f"cannot read {path}: {error.strerror or error}") from None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} holds no placement (levada shard advise --keep): {error}") from None


_PICTURE_WIDTH, _LEFT, _ROW, _TOP = 1020, 430, 34, 56
_MOST_ROWS = 12
_OURS, _OTHER, _REFUSED = "#1f6f8b", "#8aa9b5", "#c9a0a0"


def picture_of(advice: Advice) -> str:
    """The picture as SVG."""
    shown = [*advice.tried[:_MOST_ROWS]]
    shown += [each for each in advice.tried[_MOST_ROWS:] if each.kind in ("paper", "hashed-id")]
    height = _TOP + _ROW * len(shown) + 16
    most = max(each.figures.capacity for each in shown) or 1.0
    rows = "".join(_row(number, each, most) for number, each in enumerate(shown))
    title = f"Capacity of {advice.shards} shards by key (one node = 1)"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_PICTURE_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_PICTURE_WIDTH} {height}" font-family="sans-serif" font-size="13">'
        f'<rect width="100%" height="100%" fill="white"/>{_text(16, 28, title, 16)}{rows}</svg>\n'
    )


def _row(number: int, each: Tried, most: float) -> str:
    top = _TOP + _ROW * number
    figures = each.figures
    colour = _OURS if number == 0 else _REFUSED if each.refused else _OTHER  # the advised key is the first
    width = (_PICTURE_WIDTH - _LEFT - 320) * figures.capacity / most
    told = f"{figures.capacity:.2f}: {figures.shards_per_query:.2f} shards/query, busiest {figures.load_max_mean:.2f}x"
    return (
        f"{_text(16, top + 17, shortened(line(each.name), 72), 11)}"
        f'<rect x="{_LEFT}" y="{top + 3}" width="{width:.1f}" height="20" fill="{colour}"/>'
        f"{_text(round(_LEFT + width + 8), top + 17, told, 12)}"
    )


def _text(left: int, top: int, words: str, size: int) -> str:
    return f'<text x="{left}" y="{top}" font-size="{size}">{escape(words)}</text>'


_BAR = 24
_MOST_SHARDS_DRAWN = 16
_COLUMNS: Mapping[str, Callable[[Tried], str]] = {
    "key": lambda each: shortened(line(each.name), 72),
    "shards/query": lambda each: f"{each.figures.shards_per_query:.2f}",
    "one shard": lambda each: f"{each.figures.single_shard:.0%}",
    "load": lambda each: f"{each.figures.load_max_mean:.2f}",
    "storage": lambda each: f"{each.figures.storage_max_mean:.2f}",
    "inserts": lambda each: f"{each.figures.insert_max_mean:.2f}",
    "moved": lambda each: f"{each.figures.moved:.0%}",
    "stuck": lambda each: f"{each.figures.unsplittable:,}",
    "capacity": lambda each: f"{each.figures.capacity:.2f}",
}
_WIDTH = 152
_MOST_TOGETHER = 3


def show(result: AdviceResult) -> None:
    out = wide_printer()
    out.width = max(out.width, _WIDTH)
    advice = result.advice
    asked = plural(result.statistics.queries, "query")
    out.print(line(f"{result.collection}: {asked}, {plural(result.documents, 'document')}, {advice.shards} shards"))
    out.print(_fields(result))
    out.print(line(f"asked together: {_together(result)}"))
    out.print(Text("\nKeys, the advised one first; load, storage, inserts: max/mean; one node is 1", style="bold"))
    out.print(records_table(_COLUMNS, advice.tried, lambda each: "dim" if each.refused else None))
    out.print(Text("\nQueries and documents of each shard, the advised key and the paper's", style="bold"))
    for each in _drawn(advice):
        out.print(f"  {line(each.name)}")
        for row in _shards(each.figures):
            out.print(f"    {row}")
    out.print(Text("\nWhy", style="bold"))
    for words in advice.why:
        out.print(f"  {line(words)}")
    for dropped in advice.dropped:
        out.print(f"  The paper's method drops {line(dropped.field)}: {dropped.reason}.")
    for note in result.notes:
        out.print(Text(line(note), style="yellow"))


def _fields(result: AdviceResult) -> Table:
    table = figures_table(("field", "asked", "by value", "range", "values", "top", "grows", "changed by"))
    facts = {each.field: each for each in result.advice.fields}
    for field, share in result.advice.shares.items():
        if field not in facts:
            continue
        own, use = facts[field], result.statistics.fields[field]
        table.add_row(
            shortened(line(field), 30),
            f"{share:.1%}",
            f"{use.by_value / max(use.asked, 1):.0%}",
            f"{use.operators['range'] / max(use.asked, 1):.0%}",
            f"{own.distinct:,}",
            f"{own.top_share:.1%}",
            f"{own.monotonicity:+.2f}",
            f"{result.statistics.changed[field]:,}",
        )
    return table


def _together(result: AdviceResult) -> str:
    """The sets of fields that are queried most."""
    total = max(result.statistics.queries, 1)
    common = result.statistics.combinations.most_common(_MOST_TOGETHER)
    return "; ".join(f"{shortened(' + '.join(fields) or 'nothing', 60)} {n / total:.0%}" for fields, n in common)


def _drawn(advice: Advice) -> list[Tried]:
    paper = advice.of_kind("paper")
    return [advice.chosen, *([paper] if paper is not None and paper is not advice.chosen else [])]


def _shards(figures: PlacementFigures) -> list[str]:
    most = max(*figures.loads, *figures.storage, 1e-9)
    rows = [
        f"{number:3}  {load:6.1%} {bar(load / most, _BAR):{_BAR}}  {storage:6.1%} {bar(storage / most, _BAR)}".rstrip()
        for number, (load, storage) in enumerate(zip(figures.loads, figures.storage, strict=True))
    ]
    left = len(rows) - _MOST_SHARDS_DRAWN
    return rows if left <= 0 else [*rows[:_MOST_SHARDS_DRAWN], f"... and {left} more"]


_MOST_SHARDS = 1_000


def advise(
    log: LogArgument,
    sample: SampleArgument,
    shards: Annotated[int, typer.Option(metavar="K", help="How many there will be.")],
    collection: CollectionOption = None,
    id_field: IdOption = None,
    mutable: MutableOption = None,
    immutable: ImmutableOption = None,
    queries: Annotated[int, typer.Option(metavar="N", help="Try keys on so many queries at most.")] = 200_000,
    documents: Annotated[int, typer.Option(metavar="N", help="Keep so many documents at most.")] = 200_000,
    picture: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the candidates: .svg.")] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the advised placement, for `shard script`.")
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
    if shards < 2:
        raise UsageError("--shards must be at least 2: with one shard every document is on it, whatever the key")
    if shards > _MOST_SHARDS:
        raise UsageError(f"--shards must be at most {_MOST_SHARDS}, not {shards}")
    if min(queries, documents) < 1:
        raise UsageError("--queries and --documents must be at least 1")
    check_picture(picture, (".svg",))
    check_folder("--keep", keep)
    check_request(log, mutable, immutable)
    from levada.capture.advice import AdviceRequest, run

    asked = AdviceRequest(log, sample, shards, collection, id_field, queries, documents)
    with progress_bar(json) as progress:
        result = run(asked, mutable or (), immutable or (), progress=progress)
    if keep:
        write_placement(keep, result.collection, result.advice.chosen.placement, result.values)
    if picture:
        with whole_file(picture, force=True) as out:
            out.write(picture_of(result.advice).encode())
    print_result(json, result.facts(), show, result)
