"""What do workers on several machines tell each other? MessagePack, with a format, a collection and bounds.

A message is only a hint. It carries leases, and what it leads to is committed under their fence or not at all; so
it may come twice, late or never. Bytes that are too many, of another format or of another collection are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from levada.flow.parse import Visited
from levada.reasons import Reason
from levada.records import Lease, Response

__all__ = [
    "MOST_PAGES",
    "Answer",
    "Answers",
    "QueueNames",
    "ToFetch",
    "ToStore",
    "pack",
    "read_message",
    "without_body",
]

FORMAT = 1
MOST_BYTES = 16 << 20
MOST_PAGES = 1_000

_Many = Meta(max_length=MOST_PAGES)


class _Message(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    format: int = FORMAT
    collection: Annotated[str, Meta(max_length=100)]


class ToFetch(_Message, frozen=True, array_like=True, kw_only=True):
    """Pages whose sites may be asked now."""

    leases: Annotated[tuple[Lease, ...], _Many]


class ToStore(_Message, frozen=True, array_like=True, kw_only=True):
    """Visits before anything was decided; without their bodies, which the parsed pages hold."""

    visits: Annotated[tuple[Visited, ...], _Many]


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """How a site answered, for whoever decides when it is asked next; `at` is None if it was not asked."""

    token: int
    at: float | None
    status: int = 0
    reason: Reason | None = None
    retry_after: Annotated[str, Meta(max_length=200)] = ""


class Answers(_Message, frozen=True, array_like=True, kw_only=True):
    answers: Annotated[tuple[Answer, ...], _Many]


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


M = TypeVar("M", bound=_Message)
_decoders: dict[type[Any], msgspec.msgpack.Decoder[Any]] = {
    kind: msgspec.msgpack.Decoder(kind) for kind in (ToFetch, ToStore, Answers)
}
_encode = msgspec.msgpack.Encoder().encode


def read_message(kind: type[M], body: bytes, collection: str) -> M | None:
    """None if this is not a message of this kind, for this collection."""
    if len(body) > MOST_BYTES:
        return None
    try:
        message: M = _decoders[kind].decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return message if message.format == FORMAT and message.collection == collection else None


def pack(collection: str, visits: Iterable[Visited]) -> Iterator[bytes]:
    """As few messages as hold these visits; one that is too large for any is told as such."""
    part: list[Visited] = []
    size = 0
    for visited in visits:
        weight = len(_encode(visited))
        if weight > MOST_BYTES - 1_000:
            visited, weight = _too_large(visited), 10_000
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


def _too_large(visited: Visited) -> Visited:
    response = Response(visited.fetched.lease.page.url, 0, reason=Reason.BYTES)
    return Visited(msgspec.structs.replace(visited.fetched, response=response))
