"""What pages say of others by linking to them, counted when somebody searches.

Ranking tells apart by doublings, up to a thousand pages and some dozen links with one text: the texts of the links to
an address are those of the first `_MOST_LOOKED_AT` pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from levada.search.opensearch.mapping import link_to
from levada.search.opensearch.queries import term
from levada.search.opensearch.words import Answers
from levada.search.ranking import LinkFacts

_MOST_LOOKED_AT = 1_024
_MOST_TEXTS = 8


def link_facts(answers: Answers, urls: Sequence[str]) -> Mapping[str, LinkFacts]:
    """How many pages link to each address, and what they call it."""
    terms = {url: link_to(url) for url in urls}
    filters = {url: term("links", link) for url, link in terms.items()}
    (answer,) = answers([{"size": 0, "track_total_hits": False, "aggs": {"links": {"filters": {"filters": filters}}}}])
    buckets = answer.get("aggregations", {}).get("links", {}).get("buckets", {})
    pages = {url: bucket["doc_count"] for url, bucket in buckets.items() if bucket["doc_count"]}
    if not pages:  # most pages of many collections
        return {}
    texts = answers([_texts_of(terms[url]) for url in pages])
    return {url: LinkFacts(count, _texts(each)) for (url, count), each in zip(pages.items(), texts, strict=True)}


def _texts_of(link: str) -> dict[str, Any]:
    texts = {
        "field": "anchors",
        "include": f"{link} .*",
        "size": _MOST_TEXTS,
        "execution_hint": "map",  # the texts of few pages are read: no order of all texts is made for them
    }
    return {
        "size": 0,
        "track_total_hits": False,
        "terminate_after": _MOST_LOOKED_AT,
        "query": {"bool": {"filter": [term("links", link)]}},
        "aggs": {"texts": {"terms": texts}},
    }


def _texts(answer: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    buckets = answer.get("aggregations", {}).get("texts", {}).get("buckets", ())
    return tuple((each["key"].partition(" ")[2], each["doc_count"]) for each in buckets)
