"""`levada lab grouping`: do the thesis's tables come out again, and how does ours compare?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from levada.cli.lab_extra import check_picture, chosen_parts, require
from levada.cli.options import JsonOption, print_json
from levada.errors import UsageError

__all__ = ["register"]

_PARTS = ("thesis", "growth", "comparison")


def register(app: typer.Typer) -> None:
    app.command()(grouping)


def grouping(
    only: Annotated[
        str | None, typer.Option("--only", metavar="A,B", help="Of thesis, growth and comparison.")
    ] = None,
    seeds: Annotated[int, typer.Option("--runs", metavar="N", help="Seeds 1 to N in the comparison.")] = 3,
    records: Annotated[
        int, typer.Option("--records", metavar="K", help="Records per cell of the comparison.")
    ] = 1_000_000,
    thesis_records: Annotated[
        int, typer.Option("--thesis-records", metavar="K", help="Records of the thesis's sets, 10 million there.")
    ] = 10_000_000,
    streams: Annotated[
        str | None, typer.Option("--streams", metavar="A,B", help="Compare on these real streams instead.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw it too: .svg or .png.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Reruns tables 8, 9 and 12 of the Dynamic Key Grouping thesis in virtual time, follows a key that is hot for
    half of a stream, and compares every method at every skew and number of workers.

    About five minutes on two cores.

    Examples:

    ```
    levada lab grouping
    levada lab grouping --only growth,comparison --picture grouping.svg
    levada lab grouping --only comparison --runs 10 --records 10000000 --json
    ```
    """
    require("numpy", "numba", *(["matplotlib"] if picture else []))
    parts = chosen_parts(only, _PARTS)
    _check(seeds, records, thesis_records)
    check_picture(picture)
    names = tuple(name.strip() for name in (streams or "").split(",") if name.strip())
    _check_streams(names, parts)
    from levada.cli.lab_grouping_run import run

    result = run(parts, range(1, seeds + 1), records, thesis_records, names, quiet=json)
    if picture:
        from levada.lab.grouping.picture import draw

        draw(result.growths, result.cells, picture)
    if json:
        print_json(result.facts())
    else:
        from levada.cli.lab_grouping_print import show

        show(result)


def _check(seeds: int, records: int, thesis_records: int) -> None:
    if not 1 <= seeds <= 1_000:
        raise UsageError(f"--runs must be between 1 and 1000, not {seeds}")
    if min(records, thesis_records) < 1_000 or max(records, thesis_records) > 200_000_000:
        raise UsageError("--records and --thesis-records must be between 1000 and 200000000")


def _check_streams(names: Sequence[str], parts: Sequence[str]) -> None:
    """Each is read once here: one that cannot be had is found before minutes of work."""
    if names and "comparison" not in parts:
        raise UsageError("--streams are for the comparison: name it in --only, or leave --streams out")
    from levada.lab.grouping.real_streams import REAL_STREAMS, real_stream

    for name in sorted(names, key=REAL_STREAMS.__contains__):  # a mistake first, before what is not installed
        real_stream(name)
