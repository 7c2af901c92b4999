"""The demo's shards: what does a key cost that nobody asks for, and what does the advised one?

A copy of the collection is spread over shards by the hash of each address, as most stores would. A seeded mix of
questions is asked, a key is advised from them, the pages move to where it places them, and the same questions are
asked again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from random import Random

import msgspec

from levada.assemble.folder import DataFolder
from levada.assemble.reading import open_collection
from levada.assemble.resharding import ShardWish, apply_shards
from levada.assemble.searching import open_search
from levada.assemble.stores import plan_of
from levada.pages.folding import words
from levada.searching import Query
from levada.sharding.advice import Advice, advise
from levada.sharding.asked import AllOf, AskedQuery, Condition
from levada.sharding.log_statistics import LogStatistics
from levada.sharding.pages import page_values, site_filter
from levada.sharding.sample import Sample

__all__ = ["Asked", "ShardStory", "shard_story", "told_shards"]

SHARDS = 4
QUESTIONS = 120
_MOST_PAGES = 3_000
_FIELDS = ("site", "section", "url")


class Question(msgspec.Struct, frozen=True):
    """A search, if there is a text; else the page itself is wanted."""

    text: str
    url: str
    named: bool = False  # the search names the page's site


class Asked(msgspec.Struct, frozen=True):
    key: str
    shards_per_query: float
    one_shard: float  # share of the questions that a single shard answers
    pages: tuple[int, ...]


class ShardStory(msgspec.Struct, frozen=True):
    questions: int
    before: Asked
    after: Asked
    why: str
    moved: int
    seconds: float


def shard_story(folder: DataFolder, seed: int) -> ShardStory | None:
    """None where too little is stored to ask for."""
    with tempfile.TemporaryDirectory(prefix="levada-shards-") as scratch:
        copy = DataFolder(Path(scratch))
        shutil.copy(folder.database, copy.database)
        placed = apply_shards(copy, ShardWish(SHARDS, "url"))
        pages, questions = _questions(copy, seed)
        if not questions:
            return None
        before = _ask(copy, questions, "hash(url)", placed.pages)
        advice = _advised(questions, pages)
        moved = apply_shards(copy, ShardWish(placement=advice.chosen.placement))
        after = _ask(copy, questions, str(advice.chosen.placement.key), moved.pages)
    return ShardStory(len(questions), before, after, next(iter(advice.why), ""), moved.moved, moved.seconds)


def told_shards(story: ShardStory) -> str:
    """For a terminal, in one line: how many shards a question is put to, by both keys."""
    before, after = story.before, story.after
    return (
        f"Shards asked: {before.shards_per_query:.2f} of {SHARDS} ({before.key}), advised "
        f"{after.shards_per_query:.2f} ({after.key})."
    )


def _questions(folder: DataFolder, seed: int) -> tuple[list[str], list[Question]]:
    """The stored pages, and what is asked of them."""
    chance = Random(seed)  # noqa: S311
    with open_collection(folder) as collection:
        titles = {each.url: each.title for each in islice(collection.store.scan(), _MOST_PAGES)}
    pages = sorted(titles)
    drawn = [chance.choice(pages) for _ in range(QUESTIONS)] if len(pages) >= SHARDS else []
    return pages, [_question(url, titles[url], chance) for url in drawn]


def _question(url: str, title: str, chance: Random) -> Question:
    """Most name a site, some want a page that is known, a few want words wherever they stand."""
    kind, met = chance.random(), words(title)
    if kind < 0.25 or not met:
        return Question("", url)
    word = chance.choice(met)
    named = kind < 0.85
    return Question(f"{word} site:{page_values(url)['site']}" if named else word, url, named)


def _ask(folder: DataFolder, questions: Sequence[Question], key: str, pages: tuple[int, ...]) -> Asked:
    from levada.adapters.sharded_index import ShardedIndex

    plan = plan_of(folder)
    assert plan is not None
    with open_search(folder) as (collection, index):
        assert isinstance(index, ShardedIndex)
        touched = []
        for each in questions:
            if each.text:
                index.search(Query(each.text, limit=10))
                touched.append(len(index.touched(Query(each.text))))
            else:
                collection.store.document(each.url)
                touched.append(len(plan.read().plan.places(each.url)))
    plan.close()
    return Asked(key, sum(touched) / len(touched), touched.count(1) / len(touched), pages)


def _advised(questions: Sequence[Question], pages: Sequence[str]) -> Advice:
    asked = [_as_asked(each) for each in questions]
    sample = Sample([page_values(url) for url in pages], _FIELDS, "url")
    return advise(asked, LogStatistics.of(asked), sample, SHARDS, immutable=_FIELDS)


def _as_asked(question: Question) -> AskedQuery:
    values = page_values(question.url)
    if not question.text:
        by_value = tuple(Condition(field, "eq", (values[field],)) for field in _FIELDS)
        return AskedQuery("levada.pages", "find", source="search", filter=AllOf(by_value))
    named = site_filter([values["site"]]) if question.named else None
    return AskedQuery("levada.pages", "find", source="search", filter=named)
