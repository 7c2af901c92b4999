"""Which workers has a crawl on one machine, stage by stage?"""

from __future__ import annotations

from collections.abc import Sequence

from levada.adapters.parser_pool import ParserPool
from levada.flow.settings import StagesSettings
from levada.flow.staffing import Post
from levada.flow.stage_rules import stage_rule
from levada.ports import Workforce
from levada.records import Settled

__all__ = ["changed_documents", "staff"]


def staff(
    settings: StagesSettings, parser: ParserPool, indexer: Workforce, counter: Workforce | None = None
) -> list[Post]:
    """The stages behind the fetching, in the order in which a page passes them."""
    posts = [
        Post("parse", parser, stage_rule("parse", settings, parser.most), settings.idle),
        Post("index", indexer, stage_rule("index", settings, 1), settings.idle),
    ]
    if counter is not None:
        posts.append(Post("count", counter, stage_rule("count", settings, 1), settings.idle))
    return posts


def changed_documents(visits: Sequence[Settled]) -> int:
    """How many of these give the index and the counts something to do."""
    return sum(_changes_document(each) for each in visits)


def _changes_document(settled: Settled) -> bool:
    page = settled.lease.page
    return settled.version is not None or (page.version > 0 and settled.state is not page.state)
