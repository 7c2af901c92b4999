"""Pages read like pages, and their versions like an editor's."""

from __future__ import annotations

import difflib
import re
from functools import cache
from itertools import pairwise
from string import Formatter

import pytest

from levada.demo.prose import LANGUAGES, capital, slug, words_of
from levada.demo.sites import render
from levada.demo.world import CATEGORIES, DemoWorld, Dynamics

_SLOTS = {"topic", "place", "actor", "adj", "when", "n", "percent", "digit", "rate"}
_FIGURES = {"money", "count", "rate", "rate2", "n", "percent"}


@cache
def the_world() -> DemoWorld:
    return DemoWorld.build(seed=1)


def _slots(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("category", CATEGORIES.values())
def test_every_template_names_only_words_that_exist(language: str, category: str) -> None:
    words = words_of(language, category)
    for template in words.sentences + words.headlines:
        assert _slots(template) <= _SLOTS
    assert _slots(words.figure) <= _FIGURES
    assert _slots(words.update) == {"clock", "sentence"}
    assert all(_slots(voice) <= {"sentence", "name", "code"} for voice in words.voices)


def test_turkish_capitals_keep_their_dots() -> None:
    assert capital("istanbul", "tr") == "İstanbul"
    assert capital("ışık", "tr") == "Işık"
    assert capital("in time", "en") == "In time"


def test_a_slug_is_plain_ascii() -> None:
    assert slug("İstanbul'da ığdır ŞÖLENİ, Straße") == "istanbul-da-igdir-soleni-strasse"


def test_the_web_speaks_three_languages_and_names_turkish_cities() -> None:
    world = the_world()
    assert {page.language for page in world.pages} == set(LANGUAGES)
    turkish = b"".join(render(world, page, 1) for page in world.sites[0].pages)
    assert "İstanbul".encode() in turkish
    assert "Diyarbakır".encode() in turkish


def test_a_rendered_page_is_the_same_bytes_each_time() -> None:
    page = the_world().pages[30]
    assert render(the_world(), page, 1) == render(DemoWorld.build(seed=1), page, 1)


def test_each_version_differs_from_all_before_and_most_of_the_page_stays() -> None:
    world = the_world()
    for page in [page for page in world.pages if page.dynamics is Dynamics.HIGH][::6]:
        versions = [render(world, page, version).decode() for version in range(1, 40)]
        assert len(set(versions)) == len(versions)
        for before, after in pairwise(versions):
            alike = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).ratio()
            assert alike > 0.5


def _words(html: bytes) -> set[str]:
    return set(re.findall(r"\w+", re.sub(r"<[^>]*>", " ", html.decode())))


def test_two_pages_of_one_site_are_not_near_duplicates() -> None:
    world = DemoWorld.build(seed=1, page_bytes=30_000)
    for site in world.sites[::4]:
        first, second = (_words(render(world, page, 1)) for page in site.items[:2])
        assert len(first & second) / len(first | second) < 0.6


@pytest.mark.parametrize("size", [3_000, 6_000, 30_000])
def test_pages_are_about_as_large_as_asked_for(size: int) -> None:
    world = DemoWorld.build(seed=1, page_bytes=size)
    sizes = [len(render(world, page, 1)) for page in world.pages[::40]]
    assert 0.7 * size < sum(sizes) / len(sizes) < 1.3 * size
