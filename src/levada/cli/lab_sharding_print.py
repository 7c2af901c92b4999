"""How is a run of the sharding laboratory shown to a person?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from levada.cli.lab_tables import figures_table, print_sections, wide_printer

if TYPE_CHECKING:
    from levada.cli.lab_sharding_run import Result
    from levada.lab.sharding.comparison import Entry

__all__ = ["show"]

_SHOWN = ("hashed-id", "paper", "ours")
_COLUMNS = ("shards", "key", "shards/query", "one shard", "load", "inserts", "capacity", "by the paper's")


def show(result: Result) -> None:
    out = wide_printer()
    if result.key is not None:
        _show_key(result)
    print_sections(out, result.sections)
    for active in dict.fromkeys(entry.active for entry in result.entries):
        out.print(Text(f"\n{active:.0%} of the ads active; load, inserts: max/mean; one node is 1", style="bold"))
        out.print(_table([entry for entry in result.entries if entry.active == active]))


def _show_key(result: Result) -> None:
    from levada.lab.sharding.tables import PRINTED_KEY

    out = wide_printer()
    same = "the same" if result.key_text == PRINTED_KEY else "not the same"
    out.print(f"The paper's key from its table: {result.key_text}   printed: {PRINTED_KEY}   ({same})")
    for dropped in result.key.dropped if result.key else ():
        out.print(f"  dropped {dropped.field}: {dropped.reason}")


def _table(entries: Sequence[Entry]) -> Table:
    table = figures_table(_COLUMNS)
    papers = {entry.shards: entry.figures.capacity for entry in entries if entry.scheme == "paper"}
    for entry in entries:
        if entry.scheme not in _SHOWN:
            continue
        figures = entry.figures
        table.add_row(
            str(entry.shards),
            entry.scheme,
            f"{figures.shards_per_query:.2f}",
            f"{figures.single_shard:.0%}",
            f"{figures.load_max_mean:.2f}",
            f"{figures.insert_max_mean:.2f}",
            f"{figures.capacity:.2f}",
            f"{figures.capacity / papers[entry.shards]:.2f}",
            style="bold" if entry.scheme == "ours" else None,
        )
    return table
