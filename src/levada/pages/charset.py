"""Character encoding of a page: by byte order mark, header, declaration, then the bytes themselves.

UTF-16 without a mark is told by the zero bytes that its markup and spaces have, whatever the page declares: no other
encoding has any.

Source: the labels of the Encoding standard, as `webencodings` lists them. Any other label is ignored, so none can
name a codec that is not a character encoding. The declaration is looked for as the HTML standard's prescan does, but
in the whole head and not only in its first kilobyte. Bytes without a declaration that are not UTF-8 are judged by
chardetng, the detector of Firefox, with the page's language or the country of its address as a hint.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from functools import lru_cache
from typing import NamedTuple

from webencodings import PYTHON_NAMES
from webencodings.labels import LABELS

PRESCAN = 1024  # bytes in which a declaration counts even in the body, or in a script that writes it
MAX_HEAD = 262_144  # bytes of a head in which one is looked for
JUDGED = 16_384  # bytes that a guess is based on
UNREAD = "\ufffd"  # replaces bytes that are invalid in the encoding
MAX_WRONG = 0.1  # share of the letters outside ASCII that may be invalid before another encoding is assumed

LOOK = 1024  # bytes in which zeros are counted
_LEAST_ZEROS, _ZEROS, _MOST_OTHERS = 8, 0.1, 0.5  # how many; share of the letters; share of them in the other byte
_CONTROLS = frozenset(map(chr, (*range(0x09), 0x0B, *range(0x0E, 0x20), *range(0x7F, 0xA0), 0xFFFE, 0xFFFF)))
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_MARKS = tuple(mark for mark, _ in _BOMS)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,>]+)", re.IGNORECASE)
_XML = re.compile(rb"^\s*<\?xml\b[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:\-]+)", re.IGNORECASE)
_LANGUAGE = re.compile(rb"<html\b[^>]{0,400}?\blang\s*=\s*[\"']?([a-z]{2})(-[a-z]{2})?\b", re.IGNORECASE)
# No quantifier gives anything back, and a quote that nothing closes is a letter: a head is read once.
_TAG = re.compile(rb"<(/?[a-z][^\s/>]{0,30}+)((?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?+)*+)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"([^\s=>/\"']++)\s*+(?:=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>]*+)))?+")
_NO_MARKUP = frozenset((b"script", b"style", b"title", b"textarea", b"xmp", b"noframes", b"iframe"))
_JAPANESE = re.compile(rb"\x1b(?:\$[@B]|\([IJ])")  # the escapes of ISO-2022-JP
_TOP_LEVEL = re.compile(r"[a-z]+://[^/?#]*\.([a-z][a-z0-9-]{1,23})(?::\d+)?(?:[/?#]|$)")
# The country whose pages are mostly in a language, where the two are not called the same.
_COUNTRIES = {
    "ar": "sa", "be": "by", "ca": "es", "cs": "cz", "da": "dk", "el": "gr", "en": "com", "et": "ee", "fa": "ir",
    "he": "il", "hy": "am", "ja": "jp", "ka": "ge", "kk": "kz", "ko": "kr", "nb": "no", "nn": "no", "sl": "si",
    "sq": "al", "sr": "rs", "sv": "se", "uk": "ua", "vi": "vn", "yi": "il", "zh": "cn", "zh-hk": "hk", "zh-tw": "tw",
}  # fmt: skip

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


def decode(body: bytes, content_type: str = "", url: str = "") -> Decoded:
    """The text in UTF-8, and the encoding that it came in; `url` helps where nothing says it."""
    for mark, marked in _BOMS:
        if body.startswith(mark):
            return _convert(body[len(mark) :], marked)
    codec = unmarked_utf16(body) or declared(body, content_type)
    if codec in ("utf-16-le", "utf-16-be", "iso-2022-jp"):
        return _convert(body, codec)
    if body.isascii():
        if codec is None and _JAPANESE.search(body):
            return _convert(body, "iso-2022-jp")
        return Decoded(body, _NAMES[codec or "utf-8"])
    return _decode_declared(body, codec, url)


def says_utf8(body: bytes, content_type: str = "") -> bool:
    """Whether the bytes are declared as UTF-8, whether or not they are."""
    return declared(body, content_type) == "utf-8" and not body.startswith(_MARKS) and unmarked_utf16(body) is None


def unmarked_utf16(body: bytes) -> str | None:
    """The codec, if the bytes begin as UTF-16 without a mark does; None for anything else.

    Markup, spaces and line ends have a zero in one byte of two, always the same one; few letters have one in the
    other. Other data with as many zeros has control characters too.
    """
    start = body[:LOOK]
    if b"\0" not in start:
        return None
    zeros = (start[::2].count(0), start[1::2].count(0))
    most = max(zeros)
    if most < max(_LEAST_ZEROS, _ZEROS * len(start) / 2) or min(zeros) > _MOST_OTHERS * most:
        return None
    codec = "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    try:
        text = getincrementaldecoder(codec)().decode(start)  # its end may be half a letter
    except UnicodeDecodeError:
        return None
    return codec if _CONTROLS.isdisjoint(text) else None


def declared(body: bytes, content_type: str) -> str | None:
    """The codec that the header names, or else the page itself."""
    if (codec := _named_by(content_type)) is not None:
        return codec
    return _declared_inside(body)


@lru_cache(maxsize=256)
def _named_by(content_type: str) -> str | None:
    found = _CHARSET.search(content_type)
    return codec_of(found[1]) if found else None


def _declared_inside(body: bytes) -> str | None:
    if (found := _XML.match(body)) is not None and (codec := codec_of(found[1].decode("ascii"))) is not None:
        return _in_ascii(codec)
    at, end = 0, min(len(body), MAX_HEAD)
    while (at := body.find(b"<", at, end)) >= 0:
        if body.startswith(b"<!--", at):
            at = body.find(b"-->", at + 2, end)
            if at < 0:
                return None
        elif (tag := _TAG.match(body, at, end)) is not None:
            at, name = tag.end(), tag[1].lower()
            if name == b"meta" and (codec := _of_meta(tag[2])) is not None:
                return _in_ascii(codec)
            if name in (b"/head", b"body"):
                end = min(end, max(at, PRESCAN))
            if name in _NO_MARKUP and at > PRESCAN:
                closed = re.compile(rb"</" + name + rb"(?=[\s/>])", re.IGNORECASE).search(body, at, end)
                if closed is None:
                    return None
                at = closed.start()
        elif body[at + 1 : at + 2].isalpha():  # a tag without an end
            return None
        else:
            at += 1
    return None


def _in_ascii(codec: str) -> str:
    # In UTF-16 these bytes would not be ASCII, so the declaration is wrong.
    return "utf-8" if codec in ("utf-16-le", "utf-16-be") else codec


def _of_meta(written: bytes) -> str | None:
    attributes: dict[bytes, str] = {}
    for name, *values in _ATTRIBUTE.findall(written):
        attributes.setdefault(name.lower(), b"".join(values).decode("ascii", "replace"))
    if (label := attributes.get(b"charset")) is not None:
        return codec_of(label)
    if attributes.get(b"http-equiv", "").lower() == "content-type":
        return _named_by(attributes.get(b"content", ""))
    return None


def _decode_declared(body: bytes, codec: str | None, url: str) -> Decoded:
    if codec is None or codec == "utf-8" or codec in _SINGLE_BYTE:
        # Text in a one-byte encoding is never valid UTF-8 by chance: then the declaration is wrong.
        try:
            body.decode()
        except UnicodeDecodeError:
            pass
        else:
            return Decoded(body, "utf-8")
    if codec is None:
        return _convert(body, _guess(body, url))
    if codec in _SINGLE_BYTE:
        return _convert(body, codec)
    read = _convert(body, codec)
    return read if not read.damaged or _is_mostly_right(read.utf8) else _decode_falsely_declared(body, codec, url)


def _is_mostly_right(utf8: bytes) -> bool:
    text = utf8.decode()
    outside = len(text) - len(text.encode("ascii", "ignore"))
    return text.count(UNREAD) <= MAX_WRONG * outside


def _decode_falsely_declared(body: bytes, codec: str, url: str) -> Decoded:
    """By what the page itself says, if the header says something else, or by the bytes."""
    inside = _declared_inside(body)
    return _convert(body, inside if inside not in (None, codec, "utf-8") else _guess(body, url))


def _guess(body: bytes, url: str) -> str:
    from chardetng_py import EncodingDetector  # hardly any page needs it

    judge = EncodingDetector()
    # Markup is ASCII in every encoding, so pieces of text are enough; none of their letters contains the byte of a <.
    size = 0
    for piece in body.split(b"<"):
        if not piece.isascii():
            judge.feed(b"<" + piece[: JUDGED - size], last=False)
            size += len(piece)
            if size >= JUDGED:
                break
    judge.feed(b"", last=True)
    codec = str(judge.guess(tld=_hint(body, url), allow_utf8=False)).lower()
    codec = _CODECS.get(codec, codec)
    return codec if codec in _NAMES else "windows-1252"


def _hint(body: bytes, url: str) -> bytes | None:
    """The top-level domain of pages in this page's language, or else its own."""
    if (found := _LANGUAGE.search(body[:PRESCAN])) is not None:
        language, region = found[1].decode().lower(), (found[2] or b"").decode().lower()
        return _COUNTRIES.get(language + region, _COUNTRIES.get(language, language)).encode()
    own = _TOP_LEVEL.match(url)
    return own[1].encode() if own else None


def _convert(body: bytes, codec: str) -> Decoded:
    text = body.decode(codec, "replace")
    if codec.startswith("utf-16"):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return Decoded(text.encode("utf-8", "replace"), _NAMES[codec], UNREAD in text)
