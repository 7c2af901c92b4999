"""Words of a page, and language detection from its declaration and its words.

Words are UTF-8 bytes without punctuation, with ASCII letters in lower case. Other letters keep their case: folding
them would double the cost, and a page hardly ever changes by their case alone. All operations work on the whole
text, because every word of every page passes here.

A language is known by a few dozen of its most frequent short words. A page of a hundred words has many of its own
language and hardly any of another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Set
from operator import add
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from levada.pages.change import sketch_of
from levada.pages.folding import WideReplacement

UNSPACED = 16  # characters per word on average: a script without spaces between words
MAX_UNSPACED = 200_000  # characters of such a text that are read
_MARKS = bytes(code for code in range(128) if not chr(code).isalnum())
_PLAIN = bytes.maketrans(_MARKS + ascii_uppercase.encode(), b" " * len(_MARKS) + ascii_lowercase.encode())
_without_wide_marks = WideReplacement(dict.fromkeys("“”‘’«»„…–—·•،؛؟。、，！？：；（）「」『』", b" "))


class Profile(NamedTuple):
    words: int  # in running text
    distinct: int
    sketch: bytes
    vocabulary: set[bytes] | frozenset[bytes]


NO_WORDS = Profile(0, 0, b"", frozenset())


def profile_of(text: bytes) -> Profile:
    """Count and sketch the words of a text in UTF-8."""
    plain = text if text.isascii() else _without_wide_marks(text)
    words = plain.translate(_PLAIN).split()
    if words and len(text) > UNSPACED * len(words):
        words = _pairs_if_unspaced(text.decode("utf-8", "replace"), words)
    vocabulary = set(words)
    return Profile(len(words), len(vocabulary), sketch_of(vocabulary), vocabulary)


def _pairs_if_unspaced(text: str, words: list[bytes]) -> list[bytes]:
    """Pairs of neighbouring characters, as the words of a script without spaces."""
    if len(text) <= UNSPACED * len(words):
        return words
    letters = "".join(text[:MAX_UNSPACED].split())
    return [pair.encode("utf-8", "replace") for pair in map(add, letters, letters[1:] or letters)]


PLAIN = 12  # stop words that confirm the declared language
SURE = 4  # stop words that a page without a declaration needs
LEAD = 1.3  # times as many as the second language has
OWN = 2  # words that the second language lacks, and three times as many as it has of its own
CONTRADICTION = 8  # stop words of another language that overrule the declaration
_CODE = re.compile(r"([A-Za-z]{2})(?:[-_][A-Za-z0-9]+)*$")
_WORDS = {
    "tr": "ve bir bu için ile da de çok daha olarak olan gibi sonra kadar ne var ama ancak göre ise en her "
    "şey değil oldu olduğu yeni iki mi o ya veya tarafından üzerinde büyük ilk",
    "en": "the of and to in is that for it as was with be by on not are this at from or have an they which "
    "you were their has but its will more been would can than",
    "de": "der die und das den von zu mit sich des auf für ist im dem nicht ein eine als auch es an werden "
    "aus er hat dass sie nach wird bei einer um am sind noch wie",
    "fr": "le la les de des et un une du en est que pour qui dans par sur au plus pas avec ce il sont ne se "
    "aux son cette ou mais comme nous vous été leur",
    "es": "el la los las de y en que un una por con para del se es no al lo como más su o pero sus le ha este "
    "sí porque esta entre cuando muy sin sobre",
    "it": "il la che di e un una per del in non con della sono si da gli le dei alla nel anche come più ma al "
    "delle ha questo è nella dal lo ed",
    "pt": "o a os as de do da e em um uma que para com não por mais dos no na se ao como das mas foi ele seu "
    "sua ou é pela são à também",
    "nl": "de het een en van in is dat op te voor met zijn niet aan er om ook als bij door naar maar uit dan "
    "nog wordt werd heeft deze over worden wat",
    "sv": "och det att i en jag som på är av för med till den har de inte om ett han men var sig från vi så "
    "kan när eller hade skulle nu",
    "da": "og det at i en som på er af for med til den har de ikke om et han men var sig fra vi så kan når "
    "eller havde skulle nu blev efter",
    "no": "og det at i en som på er av for med til den har de ikke om et han men var seg fra vi så kan når "
    "eller hadde skulle nå ble etter",
    "fi": "ja on ei se että hän oli mutta myös kun tai niin kuin ovat joka mukaan vain sen sekä jos ole hänen "
    "nyt jo kanssa",
    "pl": "i w na z do nie się to że o jest jak po od za co ale przez dla są tym był oraz tak czy może jego "
    "jej tego ich być które",
    "cs": "a v na se je že s z do o to i pro ve by ale jako za po jsou od byl jeho které který podle nebo "
    "také jen při však",
    "ro": "și în de la a cu pe că o nu un din care este mai se pentru sunt fost au prin după ca sau lui ale dar",
    "hu": "a az és hogy nem is egy ez volt de meg csak már mint azt vagy el még ha ki fel minden lehet után szerint",
    "ru": "и в на не что с по как а это к он из за для от но его все так у было бы же она мы о или при также был",
    "uk": "і в на не що з та як а це до він за для від але його все так у було б ж вона ми або при також був є",
    "el": "και το να του η της με που για την στο ο οι από τα σε των είναι δεν θα ότι τον μια αυτό στην ή",
    "ar": "في من على إلى أن هذا التي عن مع ما هذه الذي لا كان بعد كما قد بين أو كل غير ذلك قبل",
    "fa": "و در به از که این را با است برای آن یک خود تا بر هم نیز می شود ها یا اما",
}
LANGUAGES = {code: frozenset(words.encode().split()) for code, words in _WORDS.items()}
_LANGUAGES_OF: dict[bytes, list[str]] = {}
for _code, _stop in LANGUAGES.items():
    for _word in _stop:
        _LANGUAGES_OF.setdefault(_word, []).append(_code)
_ALL_WORDS = frozenset(_LANGUAGES_OF)


def language_of(declared: str, words: Set[bytes]) -> str:
    """ISO 639-1 code from the `lang` attribute and the distinct words of the page; "" if unsure."""
    found = _CODE.match(declared[:35].strip())
    claim = found[1].lower() if found else ""
    own = len(LANGUAGES[claim] & words) if claim in LANGUAGES else 0
    if own >= PLAIN:
        return claim
    (best, code), (second, other) = _two_best(words)
    clear = best >= SURE and (best >= LEAD * second or _has_more_own(code, other, words))
    if not claim:
        return code if clear else ""
    # A declared language without a word list cannot be contradicted.
    return code if clear and best >= max(CONTRADICTION, 3 * own) and claim in LANGUAGES else claim


def _has_more_own(code: str, other: str, words: Set[bytes]) -> bool:
    """Compare by the words that only one of two languages has: Danish and Norwegian share most of theirs."""
    own, others = LANGUAGES[code] - LANGUAGES[other], LANGUAGES[other] - LANGUAGES[code]
    return len(own & words) >= max(OWN, 3 * len(others & words))


def _two_best(words: Set[bytes]) -> list[tuple[int, str]]:
    """The two languages with the most stop words on the page, and how many."""
    met = Counter(code for word in _ALL_WORDS & words for code in _LANGUAGES_OF[word])
    return sorted(((n, code) for code, n in (*met.items(), ("", 0), ("", 0))), reverse=True)[:2]
