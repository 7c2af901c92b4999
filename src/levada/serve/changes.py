"""Change feed over HTTP: JSON pages, events and Atom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from levada.collection.change_facts import ChangeDigest, Period, digests_of, facts_of_changes
from levada.collection.changes import ChangesPage, FeedChange, change_filter, moment_since
from levada.core.durations import iso
from levada.core.errors import LevadaError
from levada.core.records import ChangeFacts, ChangeSelection
from levada.serve.atom import atom_of_changes, atom_of_digests
from levada.serve.operations import API, ASKED_AT, Operations, query_of
from levada.serve.responses import refusal_answer, refusal_of, tagged_answer
from levada.serve.streaming import EventStreams
from levada.serve.view import View

CHANGES = Operations()
_TICK = 0.5  # seconds between two looks at the log, for each listener
_KEEP_ALIVE = 15.0  # seconds: a proxy closes what is silent
_IN_ATOM = 50
_IN_DIGESTS = 500  # changes

Site = Annotated[str, msgspec.Meta(max_length=300, description="Only this host, or one below it.")]
Words = Annotated[str, msgspec.Meta(max_length=500, description="Only pages on which all of these stand.")]
Least = Annotated[float, msgspec.Meta(ge=0, le=1, description="Share of the words that must have changed.")]
Kinds = Annotated[str, msgspec.Meta(max_length=100, description="Only new, changed, gone, back; several by commas.")]
WithDiff = Annotated[bool, msgspec.Meta(description="False: leave out what came and went, which is quicker.")]
Before = Annotated[str, msgspec.Meta(max_length=500, description="The 'older' of an earlier answer.")]
Since = Annotated[str, msgspec.Meta(max_length=50, description="How far back: 90m, 24h, 7d, 2026-01-31.")]
After = Annotated[str, msgspec.Meta(max_length=500, description="The 'next' of an earlier answer.")]


class ChangesAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    after: After = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    site: Site = ""
    words: Words = ""
    least: Least = 0.0
    kind: Kinds = ""
    diff: WithDiff = True

    @property
    def wanted(self) -> ChangeSelection:
        return change_filter(self.site, self.words, self.least, self.kind)


class LatestAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    before: Before = ""
    since: Since = ""
    site: Site = ""
    words: Words = ""
    least: Least = 0.0
    kind: Kinds = ""
    diff: WithDiff = True


class AtomAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    site: Site = ""
    q: Words = ""
    least: Least = 0.0
    kind: Kinds = ""
    digest: Annotated[Period | None, msgspec.Meta(description="One entry per hour or day that is over.")] = None


class DigestsAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    period: Period = "daily"
    site: Site = ""
    words: Words = ""
    least: Least = 0.0
    kind: Kinds = ""


class DigestFacts(msgspec.Struct, frozen=True):
    start: str
    end: str
    summary: str  # how many of each kind, in words
    changes: tuple[ChangeFacts, ...]  # the newest first


class DigestsAnswer(msgspec.Struct, frozen=True):
    digests: list[DigestFacts]  # the newest first


class ChangesAnswer(msgspec.Struct, frozen=True):
    changes: list[ChangeFacts]
    next: str  # to be given as `after`
    more: bool  # there is more already


class LatestAnswer(msgspec.Struct, frozen=True):
    changes: list[ChangeFacts]  # the newest first
    next: str  # to be given as `after` to /changes: where what is newer begins
    older: str  # to be given as `before`: where what is older begins; "": there is nothing older
    more: bool = False


def change_facts(
    view: View, changes: Sequence[FeedChange], diffs: bool = True, asked_at: str = ""
) -> list[ChangeFacts]:
    """The facts of changes, with links to the dashboard at its public address or else where it was asked."""
    collection = view.collection()
    dashboard = collection.settings.notify.dashboard or asked_at or ASKED_AT.get()
    return facts_of_changes(collection.store, [each.event for each in changes], dashboard, diffs=diffs)


def _read(view: View, ask: ChangesAsk) -> ChangesPage:
    return view.changes().read(ask.after, ask.limit, ask.wanted)


@CHANGES.add(
    "GET",
    "/changes/latest",
    "The newest changes, the newest first; 'older' is where to read further back",
    errors=(404,),
)
def _latest(view: View, ask: LatestAsk) -> LatestAnswer:
    changes, now = view.changes(), view.collection().clock.now()
    after = ask.before or changes.newest()  # first: a change that comes meanwhile is given twice rather than never
    wanted = change_filter(ask.site, ask.words, ask.least, ask.kind)
    found = changes.older(ask.before, ask.limit, wanted, moment_since(ask.since, now) if ask.since else None)
    return LatestAnswer(change_facts(view, found.changes, ask.diff), after, found.older)


@CHANGES.add("GET", "/changes", "What changed since", errors=(404,))
def _changes(view: View, ask: ChangesAsk) -> ChangesAnswer:
    page = _read(view, ask)
    return ChangesAnswer(change_facts(view, page.changes, ask.diff), page.next, page.more)


@CHANGES.add("GET", "/changes/digests", "The changes of each hour or day that is over, the newest first", errors=(404,))
def _digested(view: View, ask: DigestsAsk) -> DigestsAnswer:
    wanted = change_filter(ask.site, ask.words, ask.least, ask.kind)
    digests = _digests(view, wanted, ask.period)
    return DigestsAnswer([DigestFacts(str(iso(e.start)), str(iso(e.end)), e.summary, e.changes) for e in digests])


def _described(summary: str, media: str, ask: type[msgspec.Struct]) -> dict[str, Any]:
    fields = msgspec.json.schema_components([ask])[1][ask.__name__]["properties"]
    parameters = [{"name": name, "in": "query", "schema": schema} for name, schema in fields.items()]
    refused = {"description": "Refused; a code and a sentence in JSON", "content": {"application/json": {}}}
    answers = {"200": {"description": "Done", "content": {media: {"schema": {"type": "string"}}}}}
    for status in ("400", "401", "403", "404", "413", "429", "503"):
        answers[status] = refused
    return {"get": {"summary": summary, "parameters": parameters, "responses": answers}}


CHANGE_PATHS = {
    f"{API}/changes/stream": _described("Changes as they come, as events", "text/event-stream", ChangesAsk),
    f"{API}/changes.atom": _described("The latest changes as Atom", "application/atom+xml", AtomAsk),
}


def change_routes(view: View, streams: EventStreams) -> list[Route]:
    async def stream(request: Request) -> Response:
        try:
            ask = query_of(request, ChangesAsk)
            seen = request.headers.get("last-event-id", "")
            start = msgspec.structs.replace(ask, after=seen or ask.after)
            first = msgspec.structs.replace(start, limit=1)
            await asyncio.to_thread(_read, view, first)  # a wrong request is refused before the stream begins
        except LevadaError as error:
            return refusal_answer(refusal_of(error))
        return streams.answer(request, _events(view, start, str(request.base_url)))

    async def atom(request: Request) -> Response:
        try:
            ask = query_of(request, AtomAsk)
            body = await asyncio.to_thread(_atom, view, ask, str(request.url), str(request.base_url))
        except LevadaError as error:
            return refusal_answer(refusal_of(error))
        return tagged_answer(request, body, "application/atom+xml")

    return [Route(f"{API}/changes/stream", stream), Route(f"{API}/changes.atom", atom)]


async def _events(view: View, ask: ChangesAsk, asked_at: str) -> AsyncGenerator[bytes, None]:
    """Changes as events. The id of an event is the marker after it, from which a browser reads on by itself."""
    yield b"retry: 2000\n\n"
    quiet = 0.0
    while True:
        page = await asyncio.to_thread(_read, view, ask)
        facts = await asyncio.to_thread(change_facts, view, page.changes, ask.diff, asked_at)
        for change, told in zip(page.changes, facts, strict=True):
            body = msgspec.json.encode(told).decode()
            yield f"id: {change.marker}\nevent: {change.event.what}\ndata: {body}\n\n".encode()
        ask = msgspec.structs.replace(ask, after=page.next)
        if page.more:
            continue
        quiet = 0.0 if page.changes else quiet + _TICK
        if quiet >= _KEEP_ALIVE:
            quiet = 0.0
            yield b": nothing new\n\n"
        await asyncio.sleep(_TICK)


def _atom(view: View, ask: AtomAsk, address: str, asked_at: str) -> bytes:
    wanted = change_filter(ask.site, ask.q, ask.least, ask.kind)
    about = " ".join(part for part in (ask.site, ask.q) if part)
    if ask.digest is None:
        latest = view.changes().latest(_IN_ATOM, wanted)
        return atom_of_changes(change_facts(view, latest, asked_at=asked_at), about, address)
    dashboard = view.collection().settings.notify.dashboard or asked_at
    return atom_of_digests(_digests(view, wanted, ask.digest, asked_at), about, address, dashboard)


def _digests(view: View, wanted: ChangeSelection, period: Period, asked_at: str = "") -> list[ChangeDigest]:
    """The hours or days that are over. One of which only a part is at hand is left out, unless it is the only one."""
    found = view.changes().latest(_IN_DIGESTS, wanted)
    whole = len(found) < _IN_DIGESTS
    digests = digests_of(change_facts(view, found, asked_at=asked_at), period)
    now = view.collection().clock.now()
    told = digests if whole or len(digests) < 2 else digests[:-1]
    return [each for each in told if each.end <= now]
