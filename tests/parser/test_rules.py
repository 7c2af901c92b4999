"""Reading rules in the parser's children: what takes too long ends the child, and nothing else."""

from __future__ import annotations

import pytest

from levada.core.errors import ParserDied
from levada.core.reasons import Reason
from levada.core.records import ParsedPage, RawPage
from levada.core.site_rules.visit import ReadingRule
from levada.pages.compression import unpack_text
from levada.parser.pool import ParserPool
from tests.parser.test_pool import in_pool, outcomes

LARGE = b"<p>" + b"<b>x</b>" * 10_000
ENDLESS = "xpath://*[count(//*[count(//*[count(//b) > 0]) > 0]) > 0]"


def ruled(body: bytes, *select: str) -> RawPage:
    return RawPage("http://a.test/ruled", body, "text/html", rule=ReadingRule(select=select))


def test_a_child_reads_by_the_rule_that_comes_with_the_page() -> None:
    async def work(pool: ParserPool) -> None:
        found = await pool.parse(ruled(b"<h1>One</h1><p class=price>5</p>", ".price", "xpath://h1"))
        assert unpack_text(found.content_zstd) == b"5\nOne"
        assert (await pool.parse(ruled(b"<h1>One</h1>", ".price"))).reason is Reason.NO_MATCH

    in_pool(work, ParserPool)


def test_an_xpath_that_takes_too_long_ends_its_page_and_no_other() -> None:
    async def work(pool: ParserPool) -> None:
        with pytest.raises(ParserDied) as death:
            await pool.parse(ruled(LARGE, ENDLESS))
        assert death.value.cause == Reason.PARSE_SECONDS
        (after,) = await outcomes(pool, "after")
        assert isinstance(after, ParsedPage)

    in_pool(work, lambda: ParserPool(cpu_seconds=0.5))
