"""How every benchmark prints: a table for people, one object for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def show(name: str, rows: Sequence[Mapping[str, Any]], ratios: Mapping[str, float], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"name": name, "rows": list(rows), "ratios": dict(ratios)}))
        return
    columns = list(rows[0])
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for line in [columns, *cells]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    for ratio, value in ratios.items():
        print(f"{ratio}: {value:.2f}")


def _cell(value: Any) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else str(value)
