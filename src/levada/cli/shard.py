"""`levada shard`: where should documents live, by what is really asked?"""

from __future__ import annotations

import typer

from levada.cli import shard_advise, shard_apply, shard_capture, shard_replay, shard_script, shard_warm_up
from levada.cli.family import Family

__all__ = ["register"]

_MEMBERS = (shard_capture, shard_advise, shard_script, shard_apply, shard_replay, shard_warm_up)


def register(app: typer.Typer) -> None:
    family = typer.Typer(name="shard", cls=Family, no_args_is_help=True)
    family.callback()(shard)
    for member in _MEMBERS:
        member.register(family)
    app.add_typer(family)


def shard() -> None:
    """Captures what a store is asked, and finds the key that splits its documents the way they are asked for.

    Examples:

    ```
    levada shard advise queries.jsonl ads.jsonl --shards 8 --keep advised.json
    levada shard script mongodb advised.json > shard.js
    levada shard apply --shards 4 --data news
    ```
    """
