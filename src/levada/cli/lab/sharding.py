"""`levada lab sharding`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from levada.cli.lab.tables import check_picture, chosen_parts, print_sections, records_table, require, wide_printer
from levada.cli.options import JsonOption, check_range, print_result
from levada.cli.terminal import progress_bar
from levada.core.errors import UsageError
from levada.sharding.paper import PaperKey

if TYPE_CHECKING:
    from levada.lab.reference import Section
    from levada.lab.sharding.comparison import KeyEntry

_SHOWN = ("hashed-id", "paper", "ours")
_COLUMNS: Mapping[str, Callable[[KeyEntry], str]] = {
    "shards": lambda entry: str(entry.shards),
    "key": lambda entry: entry.scheme,
    "shards/query": lambda entry: f"{entry.figures.shards_per_query:.2f}",
    "one shard": lambda entry: f"{entry.figures.single_shard:.0%}",
    "load": lambda entry: f"{entry.figures.load_max_mean:.2f}",
    "inserts": lambda entry: f"{entry.figures.insert_max_mean:.2f}",
    "capacity": lambda entry: f"{entry.figures.capacity:.2f}",
}


def show(result: ShardingLabResult) -> None:
    from levada.lab.sharding.comparison import PRINTED_KEY

    out = wide_printer()
    if result.key is not None:
        same = "the same" if result.key_text == PRINTED_KEY else "not the same"
        out.print(f"The paper's key from its table: {result.key_text}   printed: {PRINTED_KEY}   ({same})")
        for dropped in result.key.dropped:
            out.print(f"  dropped {dropped.field}: {dropped.reason}")
    print_sections(out, result.sections)
    for active in dict.fromkeys(entry.active for entry in result.entries):
        out.print(Text(f"\n{active:.0%} of the ads active; load, inserts: max/mean; one node is 1", style="bold"))
        out.print(_table([entry for entry in result.entries if entry.active == active]))


def _table(entries: Sequence[KeyEntry]) -> Table:
    def by_papers(entry: KeyEntry) -> str:
        return f"{entry.figures.capacity / papers[entry.shards]:.2f}"

    papers = {entry.shards: entry.figures.capacity for entry in entries if entry.scheme == "paper"}
    shown = [entry for entry in entries if entry.scheme in _SHOWN]
    columns = {**_COLUMNS, "by the paper's": by_papers}
    return records_table(columns, shown, lambda entry: "bold" if entry.scheme == "ours" else None)


_COUNTS = (2, 3, 4, 8, 16, 32, 64)
_MODEL_COUNTS = (2, 3, 4, 8)
_ACTIVES = (0.35, 0.9)


@dataclass(slots=True)
class ShardingLabResult:
    key: PaperKey | None = None
    key_text: str = ""
    sections: list[Section] = field(default_factory=list)
    entries: list[KeyEntry] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        claims = [claim for section in self.sections for claim in section.claims]
        return {"key": self.key_text, "method": self.key, "claims": claims, "comparison": self.entries}


def run(parts: Sequence[str], size: int, seed: int, *, quiet: bool) -> ShardingLabResult:
    from levada.lab.sharding import comparison

    result = ShardingLabResult()
    if "key" in parts:
        result.key = comparison.key_of_table()
        result.key_text = result.key.text(comparison.printed_document())
        result.sections.append(comparison.key_section())
    if "comparison" in parts:
        with progress_bar(quiet) as progress:
            result.entries = comparison.compare(_ACTIVES, _COUNTS, size, seed, progress)
    if "model" in parts:
        result.sections += _model(result, size, seed, quiet)
    return result


def _model(result: ShardingLabResult, size: int, seed: int, quiet: bool) -> list[Section]:
    from levada.lab.sharding import comparison
    from levada.lab.sharding.ads import AdsModel

    entries = [each for each in result.entries if each.active == _ACTIVES[0] and each.shards in _MODEL_COUNTS]
    if not entries:
        with progress_bar(quiet) as progress:
            entries = comparison.compare(_ACTIVES[:1], _MODEL_COUNTS, size, seed, progress)
    board = comparison.Board(AdsModel(_ACTIVES[0], size, size, seed=seed))
    eight = [each for each in entries if each.shards == 8]
    return [comparison.shares_section(board), comparison.model_section(eight), comparison.runs_section(entries)]


_PARTS = ("key", "model", "comparison")


def sharding(
    only: Annotated[str | None, typer.Option(metavar="A,B", help="Of key, model and comparison.")] = None,
    size: Annotated[int, typer.Option(metavar="N", help="Ads that are made, and as many queries.")] = 30_000,
    seed: Annotated[int, typer.Option(metavar="S", help="Another seed, other ads.")] = 1,
    picture: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw capacity by shards: .svg or .png.")] = None,
    json: JsonOption = False,
) -> None:
    """Builds the paper's key from its printed table; makes ads and queries of those shares; compares keys on them.

    Printed figures stand beside ours: the key, the shares, a model of it at 8 shards, the three runs as ratios.
    Then hashed id, the paper's key and ours from 2 to 64 shards, with 35% and with 90% of the ads active. Keys are
    advised from one draw of ads and queries, and measured on another.

    Examples:

    ```
    levada lab sharding
    levada lab sharding --only key
    levada lab sharding --size 20000 --picture sharding.svg --json
    ```
    """
    if picture:
        require("matplotlib")
    check_picture(picture)
    parts = chosen_parts(only, _PARTS)
    check_range("--size", size, 1_000, 2_000_000)
    check_range("--seed", seed, 0, (1 << 32) - 1)
    if picture and "comparison" not in parts:
        raise UsageError("--picture draws the comparison: add it to --only")

    result = run(parts, size, seed, quiet=json)
    if picture:
        from levada.lab.sharding.comparison import draw_comparison

        draw_comparison(result.entries, picture)
    print_result(json, result.facts(), show, result)
