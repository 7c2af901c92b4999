"""In which alphabet are these bytes written? Mark, header, declaration, then the bytes themselves.

Source: the Encoding standard's labels, as a list of what we read; anything else is as if nothing was said. No label
can name a codec that is not an alphabet.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = ["UNREAD", "Decoded", "codec_of", "declared", "decode", "says_utf8"]

PRESCAN = 2048
UNREAD = "\ufffd"  # stands for bytes of another alphabet
LIED = 0.1  # share of the letters outside ASCII that may be wrong before we say that it is another alphabet

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_MARKS = tuple(mark for mark, _ in _BOMS)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,>]+)", re.IGNORECASE)
_META = re.compile(rb"<meta\b[^>]{0,400}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:\-]+)", re.IGNORECASE)
_XML = re.compile(rb"^\s*<\?xml\b[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:\-]+)", re.IGNORECASE)
_TURKISH = re.compile(rb"<html\b[^>]{0,400}?\blang\s*=\s*[\"']?tr\b", re.IGNORECASE)

_LABELS = {
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8 x-unicode20utf8 unicode11utf8 unicode20utf8",
    "utf-16-le": "utf-16 utf-16le ucs-2 unicode csunicode iso-10646-ucs-2 unicodefeff",
    "utf-16-be": "utf-16be unicodefffe",
    "cp1252": "windows-1252 cp1252 x-cp1252 iso-8859-1 iso8859-1 iso88591 iso_8859-1 latin1 latin-1 l1 ascii "
    "us-ascii cp819 ibm819 ansi_x3.4-1968 csisolatin1 iso-ir-100",
    "cp1254": "windows-1254 cp1254 x-cp1254 iso-8859-9 iso8859-9 iso88599 iso_8859-9 latin5 l5 csisolatin5 "
    "iso-ir-148",
    "cp1250": "windows-1250 cp1250 x-cp1250",
    "cp1251": "windows-1251 cp1251 x-cp1251",
    "cp1253": "windows-1253 cp1253 x-cp1253",
    "cp1255": "windows-1255 cp1255 x-cp1255",
    "cp1256": "windows-1256 cp1256 x-cp1256",
    "cp1257": "windows-1257 cp1257 x-cp1257",
    "cp1258": "windows-1258 cp1258 x-cp1258",
    "cp874": "windows-874 dos-874 tis-620 iso-8859-11 iso8859-11",
    "cp866": "ibm866 866 cp866 csibm866",
    "iso8859-2": "iso-8859-2 iso8859-2 iso88592 iso_8859-2 latin2 l2 csisolatin2",
    "iso8859-3": "iso-8859-3 iso8859-3 iso88593 latin3 l3",
    "iso8859-4": "iso-8859-4 iso8859-4 iso88594 latin4 l4",
    "iso8859-5": "iso-8859-5 iso8859-5 iso88595 cyrillic csisolatincyrillic",
    "iso8859-6": "iso-8859-6 iso8859-6 iso88596 arabic ecma-114 csisolatinarabic",
    "iso8859-7": "iso-8859-7 iso8859-7 iso88597 greek greek8 ecma-118 elot_928 sun_eu_greek",
    "iso8859-8": "iso-8859-8 iso8859-8 iso88598 hebrew visual iso-8859-8-i logical",
    "iso8859-10": "iso-8859-10 iso8859-10 latin6 l6",
    "iso8859-13": "iso-8859-13 iso8859-13",
    "iso8859-14": "iso-8859-14 iso8859-14",
    "iso8859-15": "iso-8859-15 iso8859-15 l9 latin9 csisolatin9",
    "iso8859-16": "iso-8859-16 iso8859-16",
    "koi8-r": "koi8-r koi koi8 koi8_r cskoi8r",
    "koi8-u": "koi8-u koi8-ru",
    "mac-roman": "macintosh mac x-mac-roman csmacintosh",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "gb18030": "gb18030 gbk gb2312 gb_2312-80 x-gbk chinese csgb2312 iso-ir-58",
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc_jp": "euc-jp x-euc-jp cseucpkdfmtjapanese",
    "cp932": "shift_jis shift-jis sjis x-sjis ms_kanji ms932 windows-31j csshiftjis",
    "iso2022_jp": "iso-2022-jp csiso2022jp",
    "cp949": "euc-kr cseuckr ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 korean windows-949 iso-ir-149",
}
_CODECS = {label: codec for codec, labels in _LABELS.items() for label in labels.split()}
_NAMES = {codec: labels.split()[0] for codec, labels in _LABELS.items()} | {"utf-16-le": "utf-16le"}
_SINGLE_BYTE = frozenset(c for c in _LABELS if c.startswith(("cp125", "iso8859", "koi8", "mac", "cp866", "cp874")))


class Decoded(NamedTuple):
    utf8: bytes
    charset: str  # the standard's name
    damaged: bool = False  # some bytes were not of this alphabet


def codec_of(label: str) -> str | None:
    """Python's codec for a label of the standard; None for anything else."""
    return _CODECS.get(label.strip().lower())


def decode(body: bytes, content_type: str = "") -> Decoded:
    """The same text in UTF-8, and the alphabet that it came in."""
    for mark, marked in _BOMS:
        if body.startswith(mark):
            return _convert(body[len(mark) :], marked)
    codec = declared(body, content_type)
    if codec in ("utf-16-le", "utf-16-be", "iso2022_jp"):
        return _convert(body, codec)
    if body.isascii():
        return Decoded(body, _NAMES[codec or "utf-8"])
    return _decode_declared(body, codec)


def says_utf8(body: bytes, content_type: str = "") -> bool:
    """Whether somebody says that these bytes are UTF-8 as they stand, whatever they are."""
    return declared(body, content_type) == "utf-8" and not body.startswith(_MARKS)


def declared(body: bytes, content_type: str) -> str | None:
    """The codec that the header or, failing that, the page itself names."""
    if (codec := _named_by(content_type)) is not None:
        return codec
    start = body[:PRESCAN]
    meta = _META.search(start) or _XML.search(start)
    codec = codec_of(meta[1].decode("ascii")) if meta else None
    # Had the page been UTF-16, these ASCII bytes could not have been read.
    return "utf-8" if codec in ("utf-16-le", "utf-16-be") else codec


@lru_cache(maxsize=256)
def _named_by(content_type: str) -> str | None:
    found = _CHARSET.search(content_type)
    return codec_of(found[1]) if found else None


def _decode_declared(body: bytes, codec: str | None) -> Decoded:
    if codec is None or codec == "utf-8" or codec in _SINGLE_BYTE:
        # Text of a one-byte alphabet is never valid UTF-8 by chance: then the declaration is wrong.
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
    if wrong <= LIED * outside:
        return Decoded(text.encode(), "utf-8", damaged=True)
    meta = _META.search(body[:PRESCAN])
    codec = codec_of(meta[1].decode("ascii")) if meta else None
    return _convert(body, codec if codec and not codec.startswith("utf") else _one_byte_guess(body))


def _one_byte_guess(body: bytes) -> str:
    return "cp1254" if _TURKISH.search(body[:PRESCAN]) else "cp1252"


def _convert(body: bytes, codec: str) -> Decoded:
    text = body.decode(codec, "replace")
    if codec.startswith("utf-16"):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return Decoded(text.encode("utf-8", "replace"), _NAMES[codec], UNREAD in text)
