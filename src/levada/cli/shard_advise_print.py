"""How is an advice shown to a person?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from levada.cli.lab_tables import figures_table, wide_printer
from levada.cli.pictures import bar
from levada.cli.printing import line, plural, shortened

if TYPE_CHECKING:
    from levada.cli.shard_advise_run import Result
    from levada.sharding.advice import Advice
    from levada.sharding.evaluation import Figures
    from levada.sharding.scoring import Tried

__all__ = ["candidates_table", "show"]

_BAR = 24
_MOST_SHARDS_DRAWN = 16
_COLUMNS = ("key", "shards/query", "one shard", "load", "storage", "inserts", "moved", "stuck", "capacity")
_WIDTH = 152
_MOST_TOGETHER = 3


def show(result: Result) -> None:
    out = wide_printer()
    out.width = max(out.width, _WIDTH)
    advice = result.advice
    asked = plural(result.statistics.queries, "query").replace("querys", "queries")
    out.print(line(f"{result.collection}: {asked}, {plural(result.documents, 'document')}, {advice.shards} shards"))
    out.print(_fields(result))
    out.print(line(f"asked together: {_together(result)}"))
    out.print(Text("\nKeys, the advised one first; load, storage, inserts: max/mean; one node is 1", style="bold"))
    out.print(candidates_table(advice.tried))
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


def _fields(result: Result) -> Table:
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


def _together(result: Result) -> str:
    """The sets of fields that are asked for most."""
    total = max(result.statistics.queries, 1)
    common = result.statistics.combinations.most_common(_MOST_TOGETHER)
    return "; ".join(f"{shortened(' + '.join(fields) or 'nothing', 60)} {n / total:.0%}" for fields, n in common)


def candidates_table(tried: Sequence[Tried]) -> Table:
    table = figures_table(_COLUMNS)
    for each in tried:
        figures = each.figures
        table.add_row(
            shortened(line(each.name), 72),
            f"{figures.shards_per_query:.2f}",
            f"{figures.single_shard:.0%}",
            f"{figures.load_max_mean:.2f}",
            f"{figures.storage_max_mean:.2f}",
            f"{figures.insert_max_mean:.2f}",
            f"{figures.moved:.0%}",
            f"{figures.unsplittable:,}",
            f"{figures.capacity:.2f}",
            style="dim" if each.refused else None,
        )
    return table


def _drawn(advice: Advice) -> list[Tried]:
    paper = advice.of_kind("paper")
    return [advice.chosen, *([paper] if paper is not None and paper is not advice.chosen else [])]


def _shards(figures: Figures) -> list[str]:
    most = max(*figures.loads, *figures.storage, 1e-9)
    rows = []
    for number, (load, storage) in enumerate(zip(figures.loads, figures.storage, strict=True)):
        if number == _MOST_SHARDS_DRAWN:
            rows.append(f"... and {len(figures.loads) - number} more")
            break
        bars = f"{bar(load / most, _BAR):{_BAR}}  {storage:6.1%} {bar(storage / most, _BAR)}"
        rows.append(f"{number:3}  {load:6.1%} {bars}".rstrip())
    return rows
