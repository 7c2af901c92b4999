"""A WARC 1.1 file: each page as the answer of its server.

Bodies are stored decoded, so the headers that speak of how they came over the wire (their length, their coding,
their chunks) are replaced by what is true of the stored bytes; the originals stay, as `x-levada-original-*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from io import BytesIO
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from levada.adapters.exports.rows import utc
from levada.adapters.exports.whole_file import Output
from levada.errors import MissingExtra
from levada.records import Document

__all__ = ["write_warc"]

_WIRE = frozenset(
    {"content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive", "trailer"}
)
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_BREAKS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]+")


def write_warc(documents: Iterable[Document], out: Output, *, software: str, gzip: bool = False) -> None:
    try:
        from warcio.statusandheaders import StatusAndHeaders
        from warcio.warcwriter import WARCWriter
    except ImportError:
        raise MissingExtra("warcio", "warc") from None
    writer = WARCWriter(out, gzip=gzip, warc_version="1.1")
    info = {"software": software, "format": "WARC File Format 1.1", "description": "stored pages, bodies decoded"}
    writer.write_record(writer.create_warcinfo_record("levada.warc", info))
    for document in documents:
        http = StatusAndHeaders(_status(document.status), _headers(document), protocol="HTTP/1.1")
        writer.write_record(_record(writer, document, http))


def _record(writer: Any, document: Document, http: Any) -> Any:
    when = utc(document.fetched_at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    # The same version of a page has the same name in every export.
    name = uuid5(NAMESPACE_URL, f"{document.url}#{document.version}@{document.fetched_at}")
    return writer.create_warc_record(
        document.url,
        "response",
        payload=BytesIO(document.body),
        length=len(document.body),
        http_headers=http,
        warc_headers_dict={"WARC-Date": when, "WARC-Record-ID": f"<urn:uuid:{name}>"},
    )


def _status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Unknown"


def _headers(document: Document) -> list[tuple[str, str]]:
    kept = []
    for name, value in document.headers:
        if not _TOKEN.fullmatch(name):
            continue
        value = _latin(value)
        kept.append((f"x-levada-original-{name}" if name.lower() in _WIRE else name, value))
    return [*kept, ("content-length", str(len(document.body)))]


def _latin(value: str) -> str:
    """What fits in a header: one line, Latin-1."""
    return _BREAKS.sub(" ", value).encode("latin-1", "replace").decode("latin-1").strip()
