"""`levada shard`."""

from __future__ import annotations

from levada.cli.app import make_family
from levada.cli.shard.advise import advise
from levada.cli.shard.apply import apply
from levada.cli.shard.capture import family as capture
from levada.cli.shard.replay import replay
from levada.cli.shard.script import family as script
from levada.cli.shard.warm_up import warm_up


def shard() -> None:
    """Captures what a store is asked, and finds the key that splits its documents the way they are asked for.

    Examples:

    ```
    levada shard advise queries.jsonl ads.jsonl --shards 8 --keep advised.json
    levada shard script mongodb advised.json > shard.js
    levada shard apply --shards 4 --data news
    ```
    """


family = make_family(shard, capture, advise, script, apply, replay, warm_up, no_args_is_help=True)
