"""Which words does a site write with? One file of words per language (data/words.*.toml), by category."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["LANGUAGES", "Words", "words_of"]

LANGUAGES = ("tr", "en", "de")


@dataclass(frozen=True, slots=True)
class Words:
    """All that is needed to write pages of one category in one language."""

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
    labels: dict[str, str]  # front, related, archive, private


@cache
def _file(language: str) -> dict[str, Any]:
    data = files("levada.demo").joinpath("data", f"words.{language}.toml").read_text(encoding="utf-8")
    return tomllib.loads(data)


@cache
def words_of(language: str, category: str) -> Words:
    shared = _file(language)
    own = shared[category]
    return Words(
        language=language,
        places=tuple(shared["places"]),
        trending=tuple(shared["trending"]),
        when=tuple(shared["when"]),
        voices=tuple(shared["voices"]),
        given=tuple(shared["given"]),
        family_heads=tuple(shared["family_heads"]),
        family_tails=tuple(shared["family_tails"]),
        sections=tuple(own["sections"]),
        actors=tuple(own["actors"]),
        adjectives=tuple(own["adjectives"]),
        topics=tuple(own["topics"]),
        headlines=tuple(own["headlines"]),
        sentences=tuple(own["sentences"] + shared["common"]),
        figure=own["figure"],
        update=shared["update"],
        labels={name: shared[name] for name in ("front", "related", "archive", "private")},
    )
