"""Hostile documents, and reading each in a parser child.

    python -m tests.pages.documents.hostile

prints for each the reason and the seconds, and the largest memory of a child, as JSON.
"""

from __future__ import annotations

import asyncio
import io
import json
import resource
import sys
import time
import zipfile
import zlib

from levada.core.errors import ParserDied
from levada.core.records import RawPage
from levada.parser.pool import ParserPool

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
MEMORY, SECONDS = 1024 * 1024 * 1024, 5.0  # the settings of a crawl


R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def relation(kind: str, target: str) -> bytes:
    """The relations of a part: one, to another part."""
    return f'<Relationships><Relationship Id="a" Type="x/{kind}" Target="{target}"/></Relationships>'.encode()


def book(chapter: bytes, **more: bytes) -> bytes:
    """An e-book of one chapter."""
    container = b'<container><rootfiles><rootfile full-path="book.opf"/></rootfiles></container>'
    package = (
        b'<package><manifest><item id="a" href="one.xhtml" media-type="application/xhtml+xml"/></manifest>'
        b'<spine><itemref idref="a"/></spine></package>'
    )
    parts = {"mimetype": b"application/epub+zip", "META-INF/container.xml": container, "book.opf": package}
    return zipped({**parts, "one.xhtml": chapter, **more})


def zipped(parts: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", packing) as file:
        for name, body in parts.items():
            file.writestr(name, body)
    return packed.getvalue()


def word(document: bytes, **more: bytes) -> bytes:
    return zipped({"word/document.xml": document, **more})


def paragraphs(*texts: str) -> bytes:
    inner = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in texts)
    return f"<w:document {W}><w:body>{inner}</w:body></w:document>".encode()


def zip_bomb(name: str = "word/document.xml", size: int = 100_000_000) -> bytes:
    """A document of one text that goes on and on."""
    head, tail = paragraphs("#").split(b"#")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file, file.open(name, "w") as part:
        part.write(head)
        for _ in range(size // 1_000_000):
            part.write(b" " * 1_000_000)
        part.write(tail)
    return packed.getvalue()


def pdf(*objects: bytes, trailer: bytes = b"") -> bytes:
    """A PDF of these objects; the first is the catalog."""
    body, places = b"%PDF-1.7\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    end = b"trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF" % (size, trailer, len(body))
    return body + b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table) + end


_PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"
_FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"


def spaces(size: int) -> bytes:
    """So many of them, packed without ever holding them."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(b" " * 1_000_000) for _ in range(size // 1_000_000)) + packer.flush()


def stream(content: bytes, filters: int = 0) -> bytes:
    """A stream of an object, packed so many times."""
    named = b"/Filter[%s]" % (b"/FlateDecode" * filters) if filters else b""
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), named, content)


def one_page(content: bytes, filters: int = 0, trailer: bytes = b"") -> bytes:
    pages = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
    catalog = b"<</Type/Catalog/Pages 2 0 R>>"
    return pdf(catalog, pages, _PAGE, stream(content, filters), _FONT, trailer=trailer)


def show(text: str) -> bytes:
    return b"BT /F 12 Tf 50 700 Td (%s) Tj ET" % text.encode("latin-1")


def endless_tree() -> bytes:
    """Pages whose child are they themselves."""
    return pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2000000000/Parent 2 0 R>>")


def hollow_tree(count: int = 60_000) -> bytes:
    """Pages that are not there."""
    kids = b" ".join(b"%d 0 R" % number for number in range(10, count + 10))
    return pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, count))


def lattice(levels: int = 24) -> bytes:
    """A tree each of whose nodes is its parent's child twice: sixteen million pages in a kilobyte."""
    nodes = [b"<</Type/Catalog/Pages 2 0 R>>"]
    for level in range(levels):
        number = level + 3
        nodes.append(b"<</Type/Pages/Kids[%d 0 R %d 0 R]/Count %d>>" % (number, number, 2 ** (levels - level)))
    nodes.append(b"<</Type/Page/MediaBox[0 0 600 800]>>")
    return pdf(*nodes)


def locked_pdf() -> bytes:
    secret = b"00" * 32
    lock = b"/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P -4/O<%s>/U<%s>>>/ID[<00><00>]" % (secret, secret)
    return one_page(show("secret"), trailer=lock)


def entity_bomb() -> bytes:
    lines = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    return f'<!DOCTYPE x [<!ENTITY e0 "ha">{lines}]><x>&e9;</x>'.encode()


def hostile() -> dict[str, tuple[bytes, str]]:
    """Body and content type by name."""
    lock = '<manifest><file-entry full-path="content.xml"><encryption-data/></file-entry></manifest>'
    drm = '<encryption><CipherReference URI="one.xhtml"/></encryption>'
    opendocument = b"application/vnd.oasis.opendocument.text"
    compound = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le")
    whole = one_page(show("The ferry leaves."))
    deep = "<w:p>" * 5_000
    return {
        "a zip bomb": (zip_bomb(), ""),
        "a zip bomb that calls itself a sheet": (
            zip_bomb("xl/workbook.xml"),
            "",
        ),
        "entities in a document": (word(entity_bomb()), ""),
        "entities in XML": (entity_bomb(), "application/xml"),
        "deep XML": (word(f"<w:document {W}>{deep}".encode()), ""),
        "deep JSON": (b"[" * 1_000_000, "application/json"),
        "wide JSON": (b"[" + b"12," * 4_900_000 + b"12]", "application/json"),
        "endless pages": (endless_tree(), "application/pdf"),
        "hollow pages": (hollow_tree(), "application/pdf"),
        "pages without number": (lattice(), "application/pdf"),
        "a bomb in a PDF": (one_page(zlib.compress(spaces(500_000_000), 9), 2), "application/pdf"),
        "a PDF with a password": (locked_pdf(), "application/pdf"),
        "a text with a password": (
            zipped({"mimetype": opendocument, "content.xml": b"?", "META-INF/manifest.xml": lock.encode()}, 0),
            "",
        ),
        "an office file with a password": (compound, "application/octet-stream"),
        "a book that is locked": (book(b"<p>x", **{"META-INF/encryption.xml": drm.encode()}), ""),
        "half a PDF": (whole[: len(whole) // 3], "application/pdf"),
        "half an office file": (
            word(paragraphs("x"))[:-40],
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        "no PDF": (b"<html>Please log in</html>", "application/pdf"),
        "no JSON": (b"{'a': 1}", "application/json"),
        "a page of HTML afterwards": (b"<p>The ferry leaves.</p>", "text/html"),
    }


async def read_all() -> dict[str, object]:
    reasons: dict[str, str] = {}
    seconds: dict[str, float] = {}
    pool = ParserPool(1, memory=MEMORY, cpu_seconds=SECONDS)
    for name, (body, content_type) in hostile().items():
        began = time.perf_counter()
        try:
            reasons[name] = str((await pool.parse(RawPage("http://a.test/", body, content_type))).reason)
        except ParserDied as death:
            reasons[name] = death.cause
        seconds[name] = round(time.perf_counter() - began, 2)
    await pool.close()
    memory = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"reasons": reasons, "seconds": seconds, "memory": memory}


if __name__ == "__main__":
    json.dump(asyncio.run(read_all()), sys.stdout, indent=1)
