"""The shards of the collection: where pages lie, and which key would suit what is asked."""

from __future__ import annotations

import msgspec

from levada.assemble.own_shards import LEAST_ASKED, OwnAdvice, OwnShards, own_advice, own_shards
from levada.dashboard.operations import Nothing, Operation
from levada.dashboard.view import View

__all__ = ["SHARDS"]

_SECONDS = 30.0


class ShardsAnswer(msgspec.Struct, frozen=True):
    shards: OwnShards
    advice: OwnAdvice | None
    capturing: bool  # what is asked here is written down, so that a key can be advised
    asked_for_advice: int  # questions that are needed


def _shards(view: View, _ask: Nothing) -> ShardsAnswer:
    collection = view.collection()
    advice = view.remembered("advice", _SECONDS, lambda: (own_advice(collection, view.folder.queries),))[0]
    return ShardsAnswer(own_shards(collection), advice, view.capturing, LEAST_ASKED)


SHARDS = [
    Operation(
        method="GET",
        path="/shards",
        summary="Where pages lie, and which key would suit what is asked",
        handle=_shards,
        answer=ShardsAnswer,
        errors=(404,),
        slow=True,
    )
]
