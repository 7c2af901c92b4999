"""Parts in memory that only tests use: references that the stored ones must match, and a plan that stays."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from levada.core.commands import ControlCommand, DesiredState
from levada.core.hashing import term_number
from levada.core.search_records import EVERY, CountedRound, FrequencyKey, NewsKey, PageTerms, TermGrowth, TrendQuery
from levada.search.terms import site_names
from levada.store.sharded import ShardPlan

_DAY = 86_400


class FixedPlan:
    """A plan that never changes."""

    def __init__(self, plan: ShardPlan) -> None:
        self._plan = plan

    @contextmanager
    def steady(self) -> Iterator[ShardPlan]:
        yield self._plan

    def close(self) -> None:
        pass


class MemoryCommandQueue:
    """The reference command queue, in memory."""

    def __init__(self) -> None:
        self._given = 0
        self._pending: list[tuple[int, ControlCommand]] = []
        self._desired_state = DesiredState()

    def submit(self, command: ControlCommand) -> int:
        self._given += 1
        self._pending.append((self._given, command))
        return self._given

    def pending(self) -> list[tuple[int, ControlCommand]]:
        return list(self._pending)

    def mark_done(self, number: int, desired_state: DesiredState) -> None:
        self._pending = [(each, command) for each, command in self._pending if each > number]
        self._desired_state = desired_state

    def desired_state(self) -> DesiredState:
        return self._desired_state

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class MemoryTrends:
    """`levada.core.protocols.Trends`, lost when the process ends."""

    def __init__(self) -> None:
        self._position = 0
        self._frequencies: Counter[FrequencyKey] = Counter()
        self._news: Counter[NewsKey] = Counter()
        self._words: dict[int, str] = {EVERY: ""}
        self._pages: dict[int, PageTerms] = {}

    def position(self) -> int:
        return self._position

    def counted(self, page_ids: Sequence[int]) -> dict[int, PageTerms]:
        return {page_id: self._pages[page_id] for page_id in page_ids if page_id in self._pages}

    def commit(self, round: CountedRound) -> bool:
        if round.after != self._position:
            return False
        self._frequencies.update(round.frequencies)
        self._news.update(round.news)
        self._words.update(round.words)
        self._pages.update(round.pages)
        self._position = round.position
        return True

    def frequency(self, term: str, language: str | None = None) -> int:
        number = term_number(term)
        if language is not None:
            return self._frequencies[language, number]
        return sum(count for (_, each), count in self._frequencies.items() if each == number)

    def growth(self, query: TrendQuery) -> list[TermGrowth]:
        now: Counter[FrequencyKey] = Counter()
        past: Counter[FrequencyKey] = Counter()
        sites: defaultdict[FrequencyKey, set[str]] = defaultdict(set)
        for (window, site, language, number), changes in self._news.items():
            if _matches(query, window, site, language) and window >= query.since:
                now[language, number] += changes
                sites[language, number].add(site)
            elif _matches(query, window, site, language):
                past[language, number] += changes
        grown = [
            TermGrowth(self._words[key[1]], key[0], now[key], past[key], len(sites[key]))
            for key in {*now, *past}
            if key[1] == EVERY or now[key] >= query.least
        ]
        return sorted(grown, key=lambda each: (each.language, each.term))

    def tidy(self, oldest: float, rare_before: float, rare: int) -> None:
        added: Counter[tuple[int, str, int]] = Counter()
        for (window, _, language, number), changes in self._news.items():
            added[window // _DAY, language, number] += changes
        for window, site, language, number in list(self._news):
            day = window // _DAY
            closed = (day + 1) * _DAY <= rare_before and number != EVERY
            if window < oldest or (closed and added[day, language, number] < rare):
                del self._news[window, site, language, number]

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _matches(query: TrendQuery, window: int, site: str, language: str) -> bool:
    return (
        query.past <= window < query.until
        and query.language in (None, language)
        and (query.site is None or query.site in site_names(site))
    )
