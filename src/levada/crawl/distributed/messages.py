"""Messages between the scheduler and workers on other machines: MessagePack, bounded.

A message is only a hint. It carries leases, and its results are committed under their write fence or not at all; so
it may arrive twice, late or never. Messages that are too long, of another format or of another collection are not
read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from levada.core.reasons import Reason
from levada.core.records import Lease, Response
from levada.core.site_rules.visit import VisitRule
from levada.crawl.visits import Visited

log = logging.getLogger(__name__)

FORMAT = 2
MOST_BYTES = 16 << 20
MOST_PAGES = 1_000

_Many = Meta(max_length=MOST_PAGES)


class _Message(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    format: int = FORMAT
    collection: Annotated[str, Meta(max_length=100)]


class ToFetch(_Message, frozen=True, array_like=True, kw_only=True):
    """Pages to fetch now."""

    leases: Annotated[tuple[Lease, ...], _Many]
    rules: dict[int, VisitRule] = {}  # by token, of those that the rules of their site say something about
    answers: Annotated[str, Meta(max_length=200)] = ""  # the queue of the scheduler; "": that of the collection
    until: float = 0.0  # none of them is fetched later: the scheduler may not own their sites then; 0: never mind


class ToStore(_Message, frozen=True, array_like=True, kw_only=True):
    """Visits without an outcome yet; without bodies, which are in the parsed pages."""

    visits: Annotated[tuple[Visited, ...], _Many]


class FetchAnswer(msgspec.Struct, frozen=True, array_like=True):
    """How a site answered, for the scheduler's politeness; `at` is None if it was not fetched."""

    token: int
    at: float | None
    status: int = 0
    reason: Reason | None = None
    retry_after: Annotated[str, Meta(max_length=200)] = ""
    here: float = 0.0  # the worker's time, of a page that it gives back


class FetchAnswers(_Message, frozen=True, array_like=True, kw_only=True):
    answers: Annotated[tuple[FetchAnswer, ...], _Many]


class QueueNames(msgspec.Struct, frozen=True):
    """The queues of one collection."""

    collection: str

    @property
    def fetch(self) -> str:
        return f"levada.{self.collection}.fetch"

    @property
    def catalog(self) -> str:
        return f"levada.{self.collection}.catalog"

    @property
    def answers(self) -> str:
        return f"levada.{self.collection}.answers"

    def answers_to(self, scheduler: str) -> str:
        """Where the answers for one of several schedulers go."""
        return f"{self.answers}.{scheduler}"


M = TypeVar("M", bound=_Message)
_decoders: dict[type[Any], msgspec.msgpack.Decoder[Any]] = {
    kind: msgspec.msgpack.Decoder(kind) for kind in (ToFetch, ToStore, FetchAnswers)
}
_encode = msgspec.msgpack.Encoder().encode


def read_message(kind: type[M], body: bytes, collection: str) -> M | None:
    """The message; None, with a warning, if it is not of this kind or not for this collection."""
    try:
        message: M | None = _decoders[kind].decode(body) if len(body) <= MOST_BYTES else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        message = None
    if message is not None and message.format == FORMAT and message.collection == collection:
        return message
    log.warning("a message that is not of this collection and format was dropped")
    return None


def pack(collection: str, visits: Iterable[Visited]) -> Iterator[bytes]:
    """These visits in as few messages as possible; a visit too large for any becomes a refusal."""
    part: list[Visited] = []
    size = 0
    for visited in visits:
        weight = len(_encode(visited))
        if weight > MOST_BYTES - 1_000:
            too_large = Response(visited.fetched.lease.page.url, 0, reason=Reason.BYTES)
            visited, weight = Visited(msgspec.structs.replace(visited.fetched, response=too_large)), 10_000
        if part and (size + weight > MOST_BYTES // 2 or len(part) == MOST_PAGES):
            yield _encode(ToStore(collection=collection, visits=tuple(part)))
            part, size = [], 0
        part.append(visited)
        size += weight
    if part:
        yield _encode(ToStore(collection=collection, visits=tuple(part)))


def without_body(visited: Visited) -> Visited:
    response = visited.fetched.response
    if response is None or not response.body:
        return visited
    fetched = msgspec.structs.replace(visited.fetched, response=msgspec.structs.replace(response, body=b""))
    return msgspec.structs.replace(visited, fetched=fetched)
