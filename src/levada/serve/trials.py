"""Trials of rules over HTTP: what a rule would keep of a page."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec

from levada.collection.diff import Hunk
from levada.collection.site_rules.trials import READING_KEYS, EntryTrial, tried
from levada.serve.operations import Operations
from levada.serve.pages import Url
from levada.serve.view import View

TRYING = Operations()
_Entries = Annotated[
    list[Annotated[str, msgspec.Meta(max_length=2_000)]],
    msgspec.Meta(max_length=50, description="As in [[site]]; null: as the rules in force have it; []: none."),
]


class TrialAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: Url
    select: _Entries | None = None
    remove: _Entries | None = None
    ignore: _Entries | None = None
    trigger: _Entries | None = None
    stored: bool = True
    live: bool = True
    anew: Annotated[bool, msgspec.Meta(description="Fetch the live page even if it was fetched a minute ago.")] = False


class ReadingAnswer(msgspec.Struct, frozen=True):
    url: str  # where a redirect led, if there was one
    fetched_at: str
    version: int  # 0: the live page
    title: str
    text: str  # what would be stored
    compared: str  # what of it would be compared
    reason: str | None  # why nothing would be stored
    entries: list[EntryTrial]


class TrialAnswer(msgspec.Struct, frozen=True):
    url: str
    match: str
    rule: dict[str, list[str]]  # what was tried
    stored: ReadingAnswer | None
    live: ReadingAnswer | None
    why_not_stored: str
    why_not_live: str
    changed: bool | None  # whether the live page is a new version
    told: bool | None  # and whether that is told
    hunks: list[Hunk]


@TRYING.add(
    "POST", "/page/try", "What a rule would keep of a page, as it is stored and as it is now", errors=(404, 409)
)
def _try(view: View, ask: TrialAsk) -> TrialAnswer:
    reader = view.collection_now()
    keys = {key: getattr(ask, key) for key in READING_KEYS}
    fetch = view.live_pages.fetch(anew=ask.anew)
    trial = asyncio.run(tried(ask.url, keys, reader.settings, reader, stored=ask.stored, live=ask.live, fetch=fetch))
    return msgspec.convert(trial.facts(), TrialAnswer, from_attributes=True)
