"""Words of a page, and its language from its declaration and its text.

Words are UTF-8 bytes without punctuation, with ASCII letters in lower case. Other letters keep their case: folding
them would double the cost, and a page hardly ever changes by their case alone. All operations work on the whole
text, because every word of every page passes here.

The text tells the language (`levada.pages.language_model`). The declaration decides where the text is not sure, which
is where it is short or where two languages are close to each other.
"""

from __future__ import annotations

import re
from itertools import filterfalse
from operator import add
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple
from zlib import crc32

from levada.pages.change import sketch_of
from levada.pages.folding import WideReplacement
from levada.pages.language_model import COMMON, STEPS, UNKNOWN, LanguageModel, language_model, plain_words, samples_of

UNSPACED = 16  # characters per word on average: a script without spaces between words
MAX_UNSPACED = 200_000  # characters of such a text that are read
_MARKS = bytes(code for code in range(128) if not chr(code).isalnum())
_PLAIN = bytes.maketrans(_MARKS + ascii_uppercase.encode(), b" " * len(_MARKS) + ascii_lowercase.encode())
# ASCII, Arabic-Indic, Persian and Devanagari digits, in UTF-8.
_HAS_DIGIT = re.compile(rb"[0-9]|\xd9[\xa0-\xa9]|\xdb[\xb0-\xb9]|\xe0\xa5[\xa6-\xaf]").search
_without_wide_marks = WideReplacement(dict.fromkeys("“”‘’«»„…–—·•،؛؟。、，！？：；（）「」『』", b" "))


class Profile(NamedTuple):
    words: int  # in running text
    distinct: int
    sketch: bytes


NO_WORDS = Profile(0, 0, b"")


def profile_of(text: bytes) -> Profile:
    """Count and sketch the words of a text in UTF-8."""
    plain = text if text.isascii() else _without_wide_marks(text)
    words = plain.translate(_PLAIN).split()
    if words and len(text) > UNSPACED * len(words):
        words = _pairs_if_unspaced(text.decode("utf-8", "replace"), words)
    vocabulary = set(words)
    return Profile(len(words), len(vocabulary), sketch_of(vocabulary))


def gist_of(text: bytes) -> int:
    """A checksum of what stands in a text between its white space, without what has a digit in it, in any order.

    So it is the same for an offer at another price and an empty month of another year. What is not a word counts:
    the manual of one operator may differ from that of another by nothing else.
    """
    words = set(text.split())
    numbered = filter(_HAS_DIGIT, filterfalse(bytes.isalpha, words))  # most are plain letters, and soon told
    return (sum(map(crc32, words)) - sum(map(crc32, numbered))) & 0xFFFF_FFFF


def _pairs_if_unspaced(text: str, words: list[bytes]) -> list[bytes]:
    """Pairs of neighbouring characters, as the words of a script without spaces."""
    if len(text) <= UNSPACED * len(words):
        return words
    letters = "".join(text[:MAX_UNSPACED].split())
    return [pair.encode("utf-8", "replace") for pair in map(add, letters, letters[1:] or letters)]


LEAST = 12  # letters of a text that can tell its language
# Logarithms of odds, as the model counts them.
SURE = 1 * STEPS  # against the second language, that a text without a declaration needs
SURE_OF_RARE = 4 * STEPS  # the same, where few pages on the web are in that language
CLEAR = 10 * STEPS  # with which no more of the text is read
MOST_LEAD = 16 * STEPS  # of a place where a text is in another language than elsewhere
TRUST = 8 * STEPS  # for the declared language: a template may claim any
_CODE = re.compile(r"([A-Za-z]{2,3})(?:[-_][A-Za-z0-9]+)*$")
# Written by mistake: the codes of countries, and those of former times.
_MISTAKEN = {
    "cn": "zh",
    "cz": "cs",
    "dk": "da",
    "fil": "tl",
    "gr": "el",
    "in": "id",
    "iw": "he",
    "ji": "yi",
    "jp": "ja",
}
_MISTAKEN |= {"kr": "ko", "ua": "uk"}
# Languages that the model does not tell from another one, which stands for them.
_STANDS_FOR = {"bs": "hr", "ms": "id", "nb": "no", "nn": "no", "sh": "hr"}
# ISO 639-1, and what of 639-3 the model knows.
_KNOWN_CODES = """
    aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es
    et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki
    kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no
    nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw ta
    te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu ckb
"""
CODES = frozenset(_KNOWN_CODES.split())


def language_of(declared: str, text: bytes) -> str:
    """ISO 639-1 code from what the page declares and its text in UTF-8; "" if unsure."""
    claim = claimed(declared)
    samples = samples_of(text)
    read = [plain_words(first) for first, _ in samples]
    if sum(map(len, read)) < LEAST:
        return claim
    model = language_model()
    stands_for = _STANDS_FOR.get(claim, claim)
    if claim and stands_for not in model.places:
        return claim  # what the model does not know, it cannot contradict
    trusted = model.places[stands_for] if claim else None
    places = list(map(model.weigh, read))
    found, lead = _most_likely(model, places, trusted)
    if lead < CLEAR and samples[0][1]:
        more = [model.weigh(plain_words(rest)) for _, rest in samples]
        found, lead = _most_likely(model, list(map(add, places, more)), trusted)
    is_sure = lead >= (SURE if found in COMMON else SURE_OF_RARE) and found not in (UNKNOWN, stands_for)
    return found if is_sure else claim


def _most_likely(model: LanguageModel, places: list[int], trusted: int | None) -> tuple[str, int]:
    """The language of most places, and how far it is before the second.

    Where places differ, none counts more than `MOST_LEAD`: the odds of a few words in another script are long.
    """
    each = list(map(model.odds, places))
    whole = list(model.odds(sum(places)))
    found = whole.index(max(whole))
    others = {odds.index(max(odds)) for odds in each} - {found}
    if any(odds[found] - odds[other] > MOST_LEAD for odds in each for other in others):
        capped = [
            [max(0, one - best + MOST_LEAD) for one in odds] for odds, best in zip(each, map(max, each), strict=True)
        ]
        whole = list(map(sum, zip(*capped, strict=True)))
    if trusted is not None:
        whole[trusted] += TRUST
    best = max(whole)
    place = whole.index(best)
    whole[place] = -1
    return model.languages[place], best - max(whole)


def claimed(declared: str) -> str:
    """The code that a `lang` attribute names; "" if that is none."""
    written = _CODE.match(declared[:35].strip())
    code = written[1].lower() if written else ""
    code = _MISTAKEN.get(code, code)
    return code if code in CODES else ""
