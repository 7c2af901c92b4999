"""Term counts that hold nothing themselves: those of several shards, read as one, and those of a repeated reading."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from levada.core.errors import StoreError
from levada.core.protocols import Trends
from levada.core.search_records import CountedRound, PageTerms, TermGrowth, TrendQuery


class ShardedTrends:
    """`levada.core.protocols.Trends` for reading. A document lies on one shard, so counts add up. A site counts
    once for a term if its pages lie on one shard, otherwise once for each shard that added it."""

    def __init__(self, shards: Sequence[Trends]) -> None:
        self._shards = shards

    def position(self) -> int:
        """The position of the shard that is furthest behind."""
        return min(shard.position() for shard in self._shards)

    def frequency(self, term: str, language: str | None = None) -> int:
        return sum(shard.frequency(term, language) for shard in self._shards)

    def growth(self, query: TrendQuery) -> list[TermGrowth]:
        every = replace(query, least=1)  # a term that is too rare on each shard may be frequent enough on all
        grown: dict[tuple[str, str], TermGrowth] = {}
        for shard in self._shards:
            for each in shard.growth(every):
                before = grown.get((each.language, each.term))
                grown[each.language, each.term] = _added(before, each) if before else each
        return [each for _, each in sorted(grown.items()) if each.now >= query.least or not each.term]

    def counted(self, page_ids: Sequence[int]) -> dict[int, PageTerms]:
        return {id: terms for shard in self._shards for id, terms in shard.counted(page_ids).items()}

    def commit(self, round: CountedRound) -> bool:
        raise StoreError("counts of several shards are written shard by shard")

    def tidy(self, oldest: float, rare_before: float, rare: int) -> None:
        for shard in self._shards:
            shard.tidy(oldest, rare_before, rare)


def _added(one: TermGrowth, other: TermGrowth) -> TermGrowth:
    return TermGrowth(one.term, one.language, one.now + other.now, one.past + other.past, one.sites + other.sites)


class ForgottenTrends:
    """Takes every round and keeps only the position, to read the stream once more."""

    def __init__(self, position: int = 0) -> None:
        self._position = position

    def position(self) -> int:
        return self._position

    def counted(self, page_ids: Sequence[int]) -> dict[int, PageTerms]:
        return {}

    def commit(self, round: CountedRound) -> bool:
        self._position = round.position
        return True

    def frequency(self, term: str, language: str | None = None) -> int:
        return 0

    def growth(self, query: TrendQuery) -> list[TermGrowth]:
        return []

    def tidy(self, oldest: float, rare_before: float, rare: int) -> None:
        pass
