"""Text of a version of a page.

Text follows from (page, version): a headline that lasts some versions, a line with figures that is new in every
one, sentences of which each version rewrites one, and on pages that tell the news a note on top. So two versions
differ as an editor's two versions do, and never not at all. Each page has its own topics and turns of phrase.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from levada.demo.chance import mix

LANGUAGES = ("tr", "en", "de")


class Vocabulary(msgspec.Struct, frozen=True):
    """All that is needed to write pages of one category in one language, by the names of its file."""

    language: str
    places: tuple[str, ...]
    trending: tuple[str, ...]
    when: tuple[str, ...]
    voices: tuple[str, ...]  # who says a sentence, or under which number
    given: tuple[str, ...]
    family_heads: tuple[str, ...]
    family_tails: tuple[str, ...]
    sections: tuple[str, ...]
    actors: tuple[str, ...]
    adjectives: tuple[str, ...]
    topics: tuple[str, ...]
    headlines: tuple[str, ...]
    sentences: tuple[str, ...]  # of the category, then those of the language
    figure: str
    update: str
    related: str
    archive: str
    private: str


@cache
def _file(language: str) -> dict[str, Any]:
    data = files("levada.demo").joinpath("data", f"words.{language}.toml").read_text(encoding="utf-8")
    return tomllib.loads(data)


@cache
def words_of(language: str, category: str) -> Vocabulary:
    shared = _file(language)
    own = shared[category]
    sentences = own["sentences"] + shared["common"]
    return msgspec.convert({**shared, **own, "language": language, "sentences": sentences}, Vocabulary)


_ASCII = str.maketrans("çğıöşüâîûäÇĞİÖŞÜ", "cgiosuaiuacgiosu")
_SENTENCES_PER_PARAGRAPH = 4
_HEADLINE_LASTS = 5  # versions


class Article(NamedTuple):
    headline: str
    figure: str
    notes: tuple[str, ...]  # newest first
    paragraphs: tuple[str, ...]


def slug(text: str) -> str:
    """The text as a piece of a path."""
    return re.sub(r"[^a-z0-9]+", "-", text.translate(_ASCII).replace("ß", "ss").lower()).strip("-")


def capital(text: str, language: str) -> str:
    """The text with a capital first letter; i has a dotted one in Turkish."""
    if language == "tr" and text[:1] == "i":
        return "İ" + text[1:]
    return text[:1].upper() + text[1:]


@lru_cache(maxsize=4096)
def _decimal(number: float, digits: int, language: str) -> str:
    text = f"{number:,.{digits}f}"
    return text if language == "en" else text.translate(str.maketrans(",.", ".,"))


def _fill(template: str, words: Vocabulary, dice: int, focus: int = 0) -> str:
    """A template's slots filled by the digits of one large number: no generator to seed for each sentence."""
    # Squared, so that a page has topics and places that it comes back to, and the rest are rarer.
    topic = (dice & 1023) * (dice & 1023) * len(words.topics) >> 20
    place = (dice >> 10 & 255) * (dice >> 10 & 255) * len(words.places) >> 16
    number = dice >> 18 & 255
    filled = template.format(
        topic=words.topics[(topic + focus) % len(words.topics)],
        place=words.places[(place + (focus >> 8)) % len(words.places)],
        actor=words.actors[(dice >> 26) % len(words.actors)],
        adj=words.adjectives[(dice >> 30) % len(words.adjectives)],
        when=words.when[(dice >> 34) % len(words.when)],
        n=2 + number % 90,
        percent=1 + number % 48,
        digit=2 + number % 8,
        rate=_decimal(10 + number * 0.37, 2, words.language),
    )
    return capital(filled, words.language)


def _name(words: Vocabulary, dice: int) -> str:
    given = words.given[dice % len(words.given)]
    head = words.family_heads[(dice >> 8) % len(words.family_heads)]
    return f"{given} {head}{words.family_tails[(dice >> 16) % len(words.family_tails)]}"


def sentence(words: Vocabulary, dice: int, focus: int = 0) -> str:
    """One sentence; the names and numbers in it make two pages of one site as different as real ones are."""
    said = _fill(words.sentences[(dice >> 40) % len(words.sentences)], words, dice, focus)
    more = mix(dice, 5)
    voice = words.voices[(more >> 24) % len(words.voices)]
    return voice.format(sentence=said, name=_name(words, more), code=1000 + (more >> 32) % 90_000)


@lru_cache(maxsize=200_000)
def headline(language: str, category: str, page_hash: int, edition: int) -> str:
    words = words_of(language, category)
    dice = mix(page_hash, 7_000_000 + edition)
    return _fill(words.headlines[(dice >> 40) % len(words.headlines)], words, dice, page_hash >> 20)


def _figure(words: Vocabulary, page_hash: int, version: int) -> str:
    dice = mix(page_hash, 8_000_000 + version)
    # The last digit is the version's parity, so that neighbours in time never show the same figures.
    cents = 2 * (page_hash % 40_000 + dice % 4_000) + 1_000 + version % 2
    return words.figure.format(
        money=_decimal(cents / 100, 2, words.language),
        count=_decimal(cents, 0, words.language),
        rate=_decimal(cents / 1000, 3, words.language),
        rate2=_decimal((cents + 2 + dice % 50) / 1000, 3, words.language),
        n=1 + (dice >> 16) % 90,
        percent=_decimal((dice >> 24) % 400 / 100, 2, words.language),
    )


def _last_rewritten(version: int, slot: int, slots: int, offset: int) -> int:
    """The version that wrote what stands at this place: each later version rewrites the next place but six."""
    turn = (slot - offset) * pow(7, -1, slots) % slots
    rewritten = version - (version - turn) % slots
    return rewritten if rewritten >= 2 else 1


def story(
    words: Vocabulary,
    category: str,
    page_hash: int,
    version: int,
    clocks: tuple[str, ...],
    trending: str,
    size: int,
) -> Article:
    """The text of this version, about `size` bytes; one note for each of `clocks` (the newest versions' times)."""
    slots = max(7, size // 95)
    slots += slots % 7 == 0  # steps of seven must reach every place
    written = [
        sentence(words, mix(page_hash, slot << 24 | _last_rewritten(version, slot, slots, page_hash)), page_hash >> 20)
        for slot in range(slots)
    ]
    if trending:
        written[0] = f"{written[0]} #{capital(trending, words.language)}"
    notes = [sentence(words, mix(page_hash, 9_000_000 + version - i), page_hash >> 20) for i in range(len(clocks))]
    paragraphs = tuple(
        " ".join(written[i : i + _SENTENCES_PER_PARAGRAPH]) for i in range(0, slots, _SENTENCES_PER_PARAGRAPH)
    )
    return Article(
        headline=headline(words.language, category, page_hash, (version - 1) // _HEADLINE_LASTS),
        figure=_figure(words, page_hash, version),
        notes=tuple(words.update.format(clock=at, sentence=note) for at, note in zip(clocks, notes, strict=True)),
        paragraphs=paragraphs,
    )
