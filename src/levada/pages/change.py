"""Change detection: whether and by how much a page differs from its stored version.

The evidence is in the order of the freshness specification. A 304 means unchanged. Then the same bytes do; their
digest (XXH3, the fastest) need not be collision resistant: it is compared only with the last answer of the same
page, so a forger could only hide a change of his own page. Then the main text decides. Its digest is over tidied
lines, so white space alone is no change. A page with only a new title, a new noindex, or other offers in its
structured data has not changed but is stored again; therefore the digest of a page includes all three.

The rule by which a page is read (`levada.pages.parts`) and the version of the reader that found the main text leave
their mark in the digest: text that another rule or another reader finds is no change of the page.

Similarity is estimated from sketches: Broder, On the resemblance and containment of documents (1997). The 128 bytes
per page give a standard error of at most 0.09, and less near 0 and 1.
"""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache
from struct import pack, unpack
from typing import NamedTuple
from zlib import crc32

import msgspec
from xxhash import xxh3_128_digest

from levada.core.hashing import content_digest
from levada.core.records import Outcome, PageRecord, ParsedPage
from levada.core.site_rules.visit import ReadingRule

SKETCH_SIZE = 32
_CANDIDATES = 3 * SKETCH_SIZE // 2


def sketch_of(vocabulary: Set[bytes]) -> bytes:
    """The `SKETCH_SIZE` smallest hashes of distinct words in UTF-8, big-endian and ascending; b"" for no words.

    An attacker who crafts hashes only makes his pages look alike.
    """
    # Hashes are uniform: a bound that about 48 of them are below saves sorting all of them.
    bound = (_CANDIDATES << 32) // max(len(vocabulary), 1)
    smallest = {number for number in map(crc32, vocabulary) if number < bound}
    if len(smallest) < SKETCH_SIZE:
        smallest = set(map(crc32, vocabulary))
    kept = sorted(smallest)[:SKETCH_SIZE]
    return pack(f">{len(kept)}I", *kept)


def similarity(a: bytes, b: bytes) -> float:
    """Estimated Jaccard similarity: 1.0 for equal sketches (two empty ones too), 0.0 if only one is empty."""
    if a == b:
        return 1.0
    if not a or not b:
        return 0.0
    first, second = _read(a), _read(b)
    # The k smallest of the union are among the k smallest of each.
    union = sorted(first | second)[:SKETCH_SIZE]
    return sum(number in first and number in second for number in union) / len(union) if union else 0.0


def are_alike(a: bytes, b: bytes, least: float) -> bool:
    """Whether the similarity is `least` or more. For most pages of a pattern, a cheap bound says no."""
    first, second = _read(a), _read(b)
    larger = max(len(first), len(second))
    # An upper bound: the union has at least as many hashes as the larger sketch.
    return (not larger or len(first & second) / larger >= least) and similarity(a, b) >= least


def _read(packed: bytes) -> frozenset[int]:
    count = len(packed) // 4
    return frozenset(unpack(f">{count}I", packed[: count * 4]))


NOT_MODIFIED = 304
_TEXT = 16  # bytes of the digest that stand for the text
_MARK = 21  # where the mark of the rule begins
_STATES = _MARK + 8  # where the states of its triggers do
_SELECTS, _IGNORES, _PENDING = 1, 2, 4  # the first byte of a mark; pending: what is stored was read by another rule
_RULE = 0x0F  # the bits of that byte for a rule; the others are the version of the reader
_BY_NOBODY, _BY_ANSWER, _BY_PAGE = b"\0", b"\1", b"\2"  # the byte after them


class Judgement(NamedTuple):
    outcome: Outcome
    similarity: float  # to the stored version: 1 the same words, 0 none in common or nothing stored


def answer_mark(body: bytes) -> bytes:
    """Sixteen bytes that are the same if the body is the same as at the last visit."""
    return xxh3_128_digest(body)


def page_digest(
    text: bytes,
    title: str,
    *,
    asked: bool,
    on_page: bool,
    rule: ReadingRule | None = None,
    reader: int = 0,
    states: bytes = b"",
    offers: bytes = b"",
) -> bytes:
    """The digest of the text, who asks for noindex (`asked`: the answer's headers), a checksum of the title and of the
    mark of the offers on the page, the mark of the rule by which it is read and of the version of the reader (0 to 15),
    and the states of the rule's triggers."""
    noindex = _BY_ANSWER if asked else _BY_PAGE if on_page else _BY_NOBODY
    mark = rule_mark(rule)
    text_digest = content_digest(mark + text if mark else text)
    shown = crc32(offers, crc32(title.encode("utf-8", "replace"))).to_bytes(4, "big")
    return text_digest + noindex + shown + _with_reader(mark, reader) + states


@lru_cache(maxsize=1_000)
def _mark_of(rule: ReadingRule) -> bytes:
    kind = (_SELECTS if rule.select else 0) | (_IGNORES if rule.ignore else 0)
    return bytes((kind,)) + content_digest(msgspec.msgpack.encode(rule))[:7]


def rule_mark(rule: ReadingRule | None) -> bytes:
    """Eight bytes that stand for a rule; none for none."""
    return b"" if rule is None else _mark_of(rule)


def is_read_by(digest: bytes | None, rule: ReadingRule | None) -> bool:
    """Whether the last answer was read by this rule, whatever it found."""
    mark = _rule_in(digest)
    return (mark and bytes((mark[0] & ~_PENDING,)) + mark[1:]) == rule_mark(rule)


def is_read_as_default(digest: bytes | None) -> bool:
    """Whether the built-in reader found the main text, and no rule says what of it counts."""
    return len(_mark_in(digest)) == 1


def with_mark_pending(digest: bytes | None, read: bytes) -> bytes:
    """The digest of a stored page on which a new rule found nothing: what it finds there later is no change."""
    if not digest:
        return read
    mark, new = _mark_in(digest), _mark_in(read)
    if not new[1:] or mark[1:] == new[1:]:
        return digest
    return digest[:_MARK] + bytes((new[0] | _PENDING,)) + new[1:]


def is_other_reading(one: bytes | None, other: bytes | None) -> bool:
    """Whether two digests are those of readings by different rules or versions of the reader."""
    return _mark_in(one) != _mark_in(other)


def trigger_states(digest: bytes | None, rule: ReadingRule, reader: int = 0) -> bytes:
    """The states of the rule's triggers on the stored page; b"" if it was not read by this rule and reader."""
    return states_in(digest) if _mark_in(digest) == _with_reader(rule_mark(rule), reader) else b""


def states_in(digest: bytes | None) -> bytes:
    """The states of the triggers of the rule by which a page was read."""
    return (digest or b"")[_STATES:] if _has_rule(digest) else b""


def with_watch(digest: bytes, watch: bytes) -> bytes:
    """The digest of a page without a rule, and what is known of its unsteady lines (`levada.pages.unsteady`)."""
    return digest.ljust(_STATES, b"\0") + watch if watch else digest


def watch_in(digest: bytes | None) -> bytes:
    """What is known of the unsteady lines of a page; b"" of one with a rule, which says itself what does not count."""
    return b"" if _has_rule(digest) else (digest or b"")[_STATES:]


def is_same_page(one: bytes, other: bytes | None) -> bool:
    """Whether all that is stored of a page is the same, whatever is known of its unsteady lines."""
    return other is not None and _without_watch(one) == _without_watch(other)


def _without_watch(digest: bytes) -> bytes:
    return digest if _has_rule(digest) else digest[: _MARK + 1]


def _has_rule(digest: bytes | None) -> bool:
    return any((digest or b"")[_MARK + 1 : _STATES])


def _mark_in(digest: bytes | None) -> bytes:
    return (digest or b"")[_MARK : _STATES if _has_rule(digest) else _MARK + 1]


def _rule_in(digest: bytes | None) -> bytes:
    """The mark without the version of the reader."""
    mark = _mark_in(digest)
    return bytes((mark[0] & _RULE,)) + mark[1:] if mark[1:] else b""


def _with_reader(mark: bytes, reader: int) -> bytes:
    return bytes(((mark[0] if mark else 0) | reader << 4,)) + mark[1:] if reader else mark


def shows_part(digest: bytes | None) -> bool:
    """Whether the digest is one of selected parts: two pages may well have the same."""
    return bool((digest or b"")[_MARK : _MARK + 1] and (digest or b"")[_MARK] & _SELECTS)


def compares_part(digest: bytes | None) -> bool:
    """Whether not all that is stored counted for the digest, so that equal digests do not make a duplicate."""
    return bool((digest or b"")[_MARK : _MARK + 1] and (digest or b"")[_MARK] & (_SELECTS | _IGNORES))


def text_part(digest: bytes | None) -> bytes:
    """The digest of the text alone, which two pages may share."""
    return (digest or b"")[:_TEXT]


def is_noindex(digest: bytes | None) -> bool:
    """Whether the stored page is noindex."""
    return (digest or b"")[_TEXT : _TEXT + 1] in (_BY_ANSWER, _BY_PAGE)


def was_noindex(digest: bytes | None) -> bool:
    """Whether the headers of the answer ask for noindex, which the bytes of the page do not show."""
    return (digest or b"")[_TEXT : _TEXT + 1] == _BY_ANSWER


def shows_the_same(one: bytes, other: bytes | None) -> bool:
    """Whether two digests have the same title, text and noindex."""
    return other is not None and _shown(one) == _shown(other)


def _shown(digest: bytes) -> tuple[bytes, bytes, bool]:
    return digest[:_TEXT], _without_watch(digest)[_TEXT + 1 :], is_noindex(digest)


def same_bytes(page: PageRecord, status: int, body_digest: bytes | None) -> bool:
    """Whether the answer alone shows that the page is unchanged, so that nothing is parsed."""
    return status == NOT_MODIFIED or (body_digest is not None and body_digest == page.body_digest)


def judge(
    page: PageRecord, status: int, body_digest: bytes | None = None, parsed: ParsedPage | None = None
) -> Judgement:
    """The outcome of an answered visit; `parsed` is needed only if `same_bytes` is False."""
    if same_bytes(page, status, body_digest):
        return Judgement(Outcome.UNCHANGED, 1.0)
    if parsed is None:
        raise ValueError("a page whose bytes are new must be parsed before it is judged")
    if page.text_digest is None:
        return Judgement(Outcome.FIRST, 0.0)
    if text_part(parsed.text_digest) == text_part(page.text_digest):
        return Judgement(Outcome.UNCHANGED, 1.0)
    if page.version and is_other_reading(parsed.text_digest, page.text_digest):
        return Judgement(Outcome.UNCHANGED, 1.0)
    return Judgement(Outcome.CHANGED, similarity(page.sketch or b"", parsed.sketch))
