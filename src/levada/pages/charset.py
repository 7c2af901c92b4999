"""Character encoding of a page: by byte order mark, header, declaration, then the bytes themselves.

Source: the labels of the Encoding standard, as `webencodings` lists them. Any other label is ignored, so none can
name a codec that is not a character encoding.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from webencodings import PYTHON_NAMES
from webencodings.labels import LABELS

PRESCAN = 2048
UNREAD = "\ufffd"  # replaces bytes that are invalid in the encoding
MAX_WRONG = 0.1  # share of the letters outside ASCII that may be invalid before another encoding is assumed

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_MARKS = tuple(mark for mark, _ in _BOMS)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,>]+)", re.IGNORECASE)
_META = re.compile(rb"<meta\b[^>]{0,400}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:\-]+)", re.IGNORECASE)
_XML = re.compile(rb"^\s*<\?xml\b[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:\-]+)", re.IGNORECASE)
_TURKISH = re.compile(rb"<html\b[^>]{0,400}?\blang\s*=\s*[\"']?tr\b", re.IGNORECASE)

_UNREADABLE = ("replacement", "x-user-defined")  # these decode to nothing, or to private-use letters
# Python knows the standard's names, except these and those that `webencodings` lists. GB 18030 contains GBK.
_PYTHON = PYTHON_NAMES | {"utf-16le": "utf-16-le", "utf-16be": "utf-16-be", "gbk": "gb18030"}
# A dict: `webencodings.lookup` takes 4.5 times as long, and every page needs it.
_CODECS = {label: _PYTHON.get(name, name) for label, name in LABELS.items() if name not in _UNREADABLE}
_CODECS |= {"latin-1": "windows-1252", "latin9": "iso-8859-15", "iso8859-16": "iso-8859-16"}  # no labels, but seen
_NAMES = {codec: codec for codec in _CODECS.values()}
_NAMES |= {codec: name for name, codec in _PYTHON.items() if name not in ("gbk", "iso-8859-8-i")}
_NAMES["iso8859-8"] = "iso-8859-8"
_SINGLE_BYTE = frozenset(
    codec
    for codec, name in _NAMES.items()
    if name.startswith(("windows", "iso-8859", "koi8", "macintosh", "x-mac", "ibm866"))
)


class Decoded(NamedTuple):
    utf8: bytes
    charset: str  # the standard's name
    damaged: bool = False  # some bytes were invalid


def codec_of(label: str) -> str | None:
    """Python's codec for a label of the standard; None for anything else."""
    return _CODECS.get(label.strip().lower())


def decode(body: bytes, content_type: str = "") -> Decoded:
    """The text in UTF-8, and the encoding that it came in."""
    for mark, marked in _BOMS:
        if body.startswith(mark):
            return _convert(body[len(mark) :], marked)
    codec = declared(body, content_type)
    if codec in ("utf-16-le", "utf-16-be", "iso-2022-jp"):
        return _convert(body, codec)
    if body.isascii():
        return Decoded(body, _NAMES[codec or "utf-8"])
    return _decode_declared(body, codec)


def says_utf8(body: bytes, content_type: str = "") -> bool:
    """Whether the bytes are declared as UTF-8, whether or not they are."""
    return declared(body, content_type) == "utf-8" and not body.startswith(_MARKS)


def declared(body: bytes, content_type: str) -> str | None:
    """The codec that the header names, or else the page itself."""
    if (codec := _named_by(content_type)) is not None:
        return codec
    start = body[:PRESCAN]
    meta = _META.search(start) or _XML.search(start)
    codec = codec_of(meta[1].decode("ascii")) if meta else None
    # In UTF-16 these bytes would not be ASCII, so the declaration is wrong.
    return "utf-8" if codec in ("utf-16-le", "utf-16-be") else codec


@lru_cache(maxsize=256)
def _named_by(content_type: str) -> str | None:
    found = _CHARSET.search(content_type)
    return codec_of(found[1]) if found else None


def _decode_declared(body: bytes, codec: str | None) -> Decoded:
    if codec is None or codec == "utf-8" or codec in _SINGLE_BYTE:
        # Text in a one-byte encoding is never valid UTF-8 by chance: then the declaration is wrong.
        try:
            body.decode()
        except UnicodeDecodeError:
            pass
        else:
            return Decoded(body, "utf-8")
    if codec == "utf-8":
        return _decode_false_utf8(body)
    return _convert(body, codec or _one_byte_guess(body))


def _decode_false_utf8(body: bytes) -> Decoded:
    text = body.decode("utf-8", "replace")
    wrong = text.count(UNREAD)
    outside = len(text) - len(text.encode("ascii", "ignore"))
    if wrong <= MAX_WRONG * outside:
        return Decoded(text.encode(), "utf-8", damaged=True)
    meta = _META.search(body[:PRESCAN])
    codec = codec_of(meta[1].decode("ascii")) if meta else None
    return _convert(body, codec if codec and not codec.startswith("utf") else _one_byte_guess(body))


def _one_byte_guess(body: bytes) -> str:
    return "windows-1254" if _TURKISH.search(body[:PRESCAN]) else "windows-1252"


def _convert(body: bytes, codec: str) -> Decoded:
    text = body.decode(codec, "replace")
    if codec.startswith("utf-16"):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return Decoded(text.encode("utf-8", "replace"), _NAMES[codec], UNREAD in text)
