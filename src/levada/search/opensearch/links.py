"""What pages say of others by linking to them, counted when somebody searches.

Ranking tells apart by doublings, up to a thousand pages and some dozen links with one text: of an address that more
pages link to, the first `_MOST_LOOKED_AT` are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from levada.search.opensearch.mapping import anchor_start
from levada.search.opensearch.queries import begins
from levada.search.opensearch.words import Answers
from levada.search.ranking import LinkFacts

_MOST_LOOKED_AT = 1_024
_MOST_TEXTS = 8


def link_facts(answers: Answers, urls: Sequence[str]) -> Mapping[str, LinkFacts]:
    """How many pages link to each address, and what they call it."""
    starts = [anchor_start(url) for url in urls]
    facts: dict[str, LinkFacts] = {}
    for url, start, answer in zip(urls, starts, answers(list(map(_asked, starts))), strict=True):
        if pages := answer["hits"]["total"]["value"]:
            texts = answer["aggregations"]["texts"]["buckets"]
            facts[url] = LinkFacts(pages, tuple((each["key"][len(start) :], each["doc_count"]) for each in texts))
    return facts


def _asked(start: str) -> dict[str, Any]:
    texts = {
        "field": "anchors",
        "include": f"{re.escape(start.rstrip())} .*",
        "size": _MOST_TEXTS,
        "execution_hint": "map",  # the texts of few pages are read: no order of all texts is made for them
    }
    return {
        "size": 0,
        "track_total_hits": True,
        "terminate_after": _MOST_LOOKED_AT,
        "query": {"bool": {"filter": [begins("anchors", start)]}},
        "aggs": {"texts": {"terms": texts}},
    }
