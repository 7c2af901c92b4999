"""WARC 1.1 export: each page as the response of its server.

Bodies are stored decoded, so the headers about the transfer (length, encoding, chunks) are replaced by those of the
stored bytes; the originals stay as `x-levada-original-*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from levada import __version__
from levada.core.errors import MissingExtra
from levada.core.files import ExportContext
from levada.core.records import Document
from levada.export.rows import utc

_INFO = {
    "software": f"levada/{__version__}",
    "format": "WARC File Format 1.1",
    "description": "stored pages, bodies decoded",
}
_WIRE = frozenset({"content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive", "trailer"})
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_ASCII = "".join(map(chr, range(0x20, 0x7F)))
_BREAKS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]+")


class WarcExporter:
    """WARC 1.1, compressed if the file's name ends in .gz."""

    suffix = ".warc"

    def export(self, documents: Iterable[Document], out: Path, context: ExportContext) -> int:
        with context.open(out) as file:
            try:
                from warcio.statusandheaders import StatusAndHeaders
                from warcio.warcwriter import WARCWriter
            except ImportError:
                raise MissingExtra("warcio", "warc") from None
            writer = WARCWriter(file, gzip=out.suffix == ".gz", warc_version="1.1")
            writer.write_record(writer.create_warcinfo_record("levada.warc", _INFO))
            for document in documents:
                http = StatusAndHeaders(_status(document.status), _headers(document), protocol="HTTP/1.1")
                writer.write_record(_record(writer, document, http))
            return file.written


def _record(writer: Any, document: Document, http: Any) -> Any:
    when = utc(document.fetched_at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    # The same version of a page has the same id in every export.
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
        if _TOKEN.fullmatch(name):
            one_line = _BREAKS.sub(" ", value).encode("latin-1", "replace").decode("latin-1").strip()
            one_line = quote(one_line, safe=_ASCII)  # warcio does so, but fails on some
            kept.append((f"x-levada-original-{name}" if name.lower() in _WIRE else name, one_line))
    return [*kept, ("content-length", str(len(document.body)))]
