"""Balance of the count workers: the load of each, and over how many of them a term is spread.

Loads are exact. Workers per term is an average over distinct terms: over all of them, or over a sample by term
number once there are too many. The busiest terms are always kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import nlargest
from math import sqrt

import msgspec

_MOST_TERMS = 1 << 16
_BUSIEST = 64
_MUCH = 2_000  # a term with more than one record in 2,000 is kept, sampled or not


class HotTerm(msgspec.Struct, frozen=True):
    """One of the busiest terms, and how many workers it went to."""

    term: str
    records: int
    workers: int


class MethodLoad(msgspec.Struct, frozen=True):
    """How evenly one grouping method spread the stream."""

    method: str
    loads: tuple[int, ...]  # records per worker
    deviation_percent: float  # standard deviation over workers of each worker's share of records
    max_over_mean: float  # load of the fullest worker
    distribution_cost: float  # workers per distinct term
    hot: tuple[HotTerm, ...] = ()  # the busiest terms


class CountReport(msgspec.Struct, frozen=True):
    """What a run of the count stage did. `balance` starts with the method that really counted."""

    position: int = 0
    changes: int = 0  # entries of the change log that were counted
    records: int = 0  # sent to the workers
    rounds: int = 0
    terms: int = 0  # distinct terms, counted in each round by itself
    most_held: int = 0  # the most partial counts that all workers together held at a barrier
    memory_bytes: int = 0  # of those counts
    balance: tuple[MethodLoad, ...] = ()


class LoadMeter:
    """Measures the load and the spread that one grouping method causes."""

    def __init__(self, method: str, workers: int) -> None:
        self.method = method
        self._loads = [0] * workers
        self._spread: dict[int, int] = {}  # term -> the workers it was sent to, as bits
        self._records: dict[int, int] = {}
        self._draw = 0  # the sample has the terms in whose number these bits are 0

    def observe(self, terms: Sequence[int], chosen: Sequence[int]) -> None:
        """Count one record per term, each sent to the worker at the same position of `chosen`."""
        spread, records = self._spread, self._records
        much = len(terms) // _MUCH
        for (term, worker), count in Counter(zip(terms, chosen, strict=True)).items():
            self._loads[worker] += count
            if not term & self._draw or term in spread or count > much:
                spread[term] = spread.get(term, 0) | 1 << worker
                records[term] = records.get(term, 0) + count
        while len(self._spread) > _MOST_TERMS:
            self._halve()

    def load(self, words: dict[int, str], hot: int = 0) -> MethodLoad:
        total, workers = max(1, sum(self._loads)), len(self._loads)
        shares = [load / total for load in self._loads]
        busiest = nlargest(hot, self._records.items(), key=lambda item: (item[1], item[0]))
        drawn = [mask.bit_count() for term, mask in self._spread.items() if not term & self._draw]
        return MethodLoad(
            self.method,
            tuple(self._loads),
            100.0 * sqrt(sum((share - 1 / workers) ** 2 for share in shares) / workers) if any(shares) else 0.0,
            max(shares) * workers,
            sum(drawn) / len(drawn) if drawn else 0.0,
            tuple(HotTerm(words.get(term, ""), n, self._spread[term].bit_count()) for term, n in busiest),
        )

    def _halve(self) -> None:
        self._draw = self._draw << 1 | 1
        busiest = set(nlargest(_BUSIEST, self._records, key=self._records.__getitem__))
        self._records = {t: n for t, n in self._records.items() if not t & self._draw or t in busiest}
        self._spread = {term: self._spread[term] for term in self._records}
