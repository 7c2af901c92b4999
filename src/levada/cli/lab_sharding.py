"""`levada lab sharding`: do the paper's figures come out again, and how does ours compare?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from levada.cli.lab_extra import check_picture, chosen_parts, require
from levada.cli.options import JsonOption, print_json
from levada.errors import UsageError

__all__ = ["register"]

_PARTS = ("key", "model", "comparison")


def register(app: typer.Typer) -> None:
    app.command()(sharding)


def sharding(
    only: Annotated[str | None, typer.Option("--only", metavar="A,B", help="Of key, model and comparison.")] = None,
    size: Annotated[
        int, typer.Option("--size", metavar="N", help="Ads that are made, and as many queries.")
    ] = 30_000,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Another seed, other ads.")] = 1,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw capacity by shards: .svg or .png.")
    ] = None,
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
    if not 1_000 <= size <= 2_000_000:
        raise UsageError(f"--size must be between 1000 and 2000000, not {size}")
    if not 0 <= seed < 1 << 32:
        raise UsageError(f"--seed must be between 0 and {(1 << 32) - 1}, not {seed}")
    if picture and "comparison" not in parts:
        raise UsageError("--picture draws the comparison: add it to --only")
    from levada.cli.lab_sharding_run import run

    result = run(parts, size, seed, quiet=json)
    if picture:
        from levada.lab.sharding.picture import draw_comparison

        draw_comparison(result.entries, picture)
    if json:
        print_json(result.facts())
    else:
        from levada.cli.lab_sharding_print import show

        show(result)
