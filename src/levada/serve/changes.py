"""Change feed over HTTP: JSON pages, events and Atom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Any
from xml.etree import ElementTree

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from levada.collection.changes import ChangesPage, FeedChange, change_filter
from levada.core.durations import iso
from levada.core.errors import LevadaError
from levada.core.records import ChangeSelection
from levada.serve.operations import API, Operations, query_of
from levada.serve.responses import refusal_answer, refusal_of, tagged_answer
from levada.serve.streaming import EventStreams
from levada.serve.view import View

CHANGES = Operations()
_TICK = 0.5  # seconds between two looks at the log, for each listener
_KEEP_ALIVE = 15.0  # seconds: a proxy closes what is silent
_IN_ATOM = 50
_ATOM = "http://www.w3.org/2005/Atom"
_NOT_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)))

Site = Annotated[str, msgspec.Meta(max_length=300, description="Only this host, or one below it.")]
Words = Annotated[str, msgspec.Meta(max_length=500, description="Only pages on which all of these stand.")]
Least = Annotated[float, msgspec.Meta(ge=0, le=1, description="Share of the words that must have changed.")]
After = Annotated[str, msgspec.Meta(max_length=500, description="The 'next' of an earlier answer.")]


class ChangesAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    after: After = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    site: Site = ""
    words: Words = ""
    least: Least = 0.0

    @property
    def wanted(self) -> ChangeSelection:
        return change_filter(self.site, self.words, self.least)


class LatestAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    site: Site = ""
    words: Words = ""
    least: Least = 0.0


class AtomAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    site: Site = ""
    q: Words = ""
    least: Least = 0.0


class ChangeFacts(msgspec.Struct, frozen=True):
    id: str  # never given to another change
    at: str
    what: str  # new, changed, gone, back
    url: str
    site: str
    title: str
    version: int
    changed: float  # share of the page's words


class ChangesAnswer(msgspec.Struct, frozen=True):
    changes: list[ChangeFacts]
    next: str  # to be given as `after`
    more: bool  # there is more already


def change_facts(change: FeedChange) -> ChangeFacts:
    event = change.event
    at, changed = str(iso(event.at)), round(1.0 - event.similarity, 4)
    return ChangeFacts(change.id, at, event.what, event.url, event.site, event.title, event.version, changed)


def _read(view: View, ask: ChangesAsk) -> ChangesPage:
    return view.changes().read(ask.after, ask.limit, ask.wanted)


@CHANGES.add(
    "GET", "/changes/latest", "The newest changes, the newest first; 'next' is where to read on", errors=(404,)
)
def _latest(view: View, ask: LatestAsk) -> ChangesAnswer:
    changes = view.changes()
    after = changes.newest()  # first: a change that comes meanwhile is given twice rather than never
    found = changes.latest(ask.limit, change_filter(ask.site, ask.words, ask.least))
    return ChangesAnswer(list(map(change_facts, found)), after, False)


@CHANGES.add("GET", "/changes", "What changed since", errors=(404,))
def _changes(view: View, ask: ChangesAsk) -> ChangesAnswer:
    page = _read(view, ask)
    return ChangesAnswer(list(map(change_facts, page.changes)), page.next, page.more)


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
        return streams.answer(request, _events(view, start))

    async def atom(request: Request) -> Response:
        try:
            ask = query_of(request, AtomAsk)
            body = await asyncio.to_thread(_atom, view, ask, str(request.url))
        except LevadaError as error:
            return refusal_answer(refusal_of(error))
        return tagged_answer(request, body, "application/atom+xml")

    return [Route(f"{API}/changes/stream", stream), Route(f"{API}/changes.atom", atom)]


async def _events(view: View, ask: ChangesAsk) -> AsyncGenerator[bytes, None]:
    """Changes as events. The id of an event is the marker after it, from which a browser reads on by itself."""
    yield b"retry: 2000\n\n"
    quiet = 0.0
    while True:
        page = await asyncio.to_thread(_read, view, ask)
        for change in page.changes:
            body = msgspec.json.encode(change_facts(change)).decode()
            yield f"id: {change.marker}\nevent: {change.event.what}\ndata: {body}\n\n".encode()
        ask = msgspec.structs.replace(ask, after=page.next)
        if page.more:
            continue
        quiet = 0.0 if page.changes else quiet + _TICK
        if quiet >= _KEEP_ALIVE:
            quiet = 0.0
            yield b": nothing new\n\n"
        await asyncio.sleep(_TICK)


def _atom(view: View, ask: AtomAsk, address: str) -> bytes:
    latest = view.changes().latest(_IN_ATOM, change_filter(ask.site, ask.q, ask.least))
    feed = ElementTree.Element("feed", xmlns=_ATOM)
    about = " ".join(part for part in (ask.site, ask.q) if part)
    _tell(feed, "title", f"Changes: {about}" if about else "Changes")
    _tell(feed, "id", address)
    ElementTree.SubElement(feed, "link", rel="self", href=address.translate(_NOT_XML))
    _tell(ElementTree.SubElement(feed, "author"), "name", "Levada")
    newest = latest[0].event.at if latest else 0.0
    _tell(feed, "updated", str(iso(newest)))
    for each in latest:
        change = each.event
        entry = ElementTree.SubElement(feed, "entry")
        _tell(entry, "title", change.title or change.url)
        _tell(entry, "id", f"urn:levada:{each.id}")
        _tell(entry, "updated", str(iso(change.at)))
        ElementTree.SubElement(entry, "link", href=change.url.translate(_NOT_XML))
        share = f", {1 - change.similarity:.0%} of the words" if change.what == "changed" else ""
        _tell(entry, "summary", f"{change.what}{share}")
    return bytes(ElementTree.tostring(feed, "utf-8", xml_declaration=True))


def _tell(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, name).text = text.translate(_NOT_XML)
