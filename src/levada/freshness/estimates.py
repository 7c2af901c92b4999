"""Estimates of the change rates, for each page and for all pages together.

The evidence of a page is kept with the page (`PageRecord.memory`): two bytes per rate, 32 with 16 rates, then the
row of the rule in use, then 33 bytes more if its server dates it, and three if it is in the page sample. This sample,
all pages while they are few, is in memory with its sums. So any number of pages needs the same memory, and a crawler
that restarts reads its sample from the store.

Each page of the sample has a share in the sums of all pages and in those of its site: the probabilities of its
rates, and the visits per second that it is worth at each price. After a visit, its new share replaces the old one,
so the cost per visit does not depend on the number of pages. The first part of the sums gives the prior (empirical
Bayes: the average of the estimates), the second the price at which the pages together need as many visits as the
budget has.

A plan and a statement need different priors. A plan that takes every rate for as likely visits new pages soon, and so
learns which ones change; but as a statement that would be false, because most pages of the web change slowly. So each
page of the sample has two rows of probabilities: one for the plan, and a `calibrated` one for everything that is
shown, each with a prior of its own.

The functions work on plain rows of floats in place, so that the laboratory can compile them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, MutableSequence, Sequence
from operator import mul

import msgspec

from levada.core.hashing import drawn
from levada.core.records import Outcome, PageKind, PageRecord, Signals, Visit
from levada.freshness.activity import Activity
from levada.freshness.rates import (
    RATES,
    WORST,
    observe,
    observe_cautiously,
    observe_first,
    observe_first_cautiously,
    posterior,
)
from levada.freshness.signals import MANY, SignalSource, is_small, noise, tally, trust, unannounced
from levada.freshness.value import Scale, profile

_EVIDENCE = struct.Struct(f"<{len(RATES)}e")


_CAUTIOUS = b"c"  # after the cautious evidence, at the end of a page's memory
_EXPECTED = struct.Struct("<ec")  # how likely a change was, and what marks it: after everything else
_MARK = b"p"


class Evidence(msgspec.Struct, eq=False):
    """What the visits of a page say about each rate: for the plan, and for what is said about the page.

    Both are the same list while no date tells them apart.
    """

    plan: list[float]
    cautious: list[float]
    expected: float | None = None  # how likely a change was, before the last visit to a page of the sample

    @staticmethod
    def none() -> Evidence:
        nothing = [0.0] * len(RATES)
        return Evidence(nothing, nothing)

    @staticmethod
    def of(memory: bytes) -> Evidence:
        """The stored evidence; zeros if there is none or another version of Levada stored it."""
        if len(memory) < _EVIDENCE.size:
            return Evidence.none()
        expected, memory = _expected_at_end(memory)
        plan = _evidence_at(memory, 0)
        return Evidence(plan, _evidence_at(memory, _end(memory)) if _is_cautious(memory) else plan, expected)

    def packed(self, row: Sequence[float] = ()) -> bytes:
        memory = _EVIDENCE.pack(*self.plan) + struct.pack(f"<{len(row)}d", *row)
        if self.cautious is not self.plan:
            memory += _EVIDENCE.pack(*self.cautious) + _CAUTIOUS
        return memory if self.expected is None else memory + _EXPECTED.pack(self.expected, _MARK)


def _evidence_at(memory: bytes, place: int) -> list[float]:
    found = _EVIDENCE.unpack_from(memory, place)
    return [max(WORST, min(0.0, value)) for value in found]  # in this order also for nan


def _expected_at_end(memory: bytes) -> tuple[float | None, bytes]:
    """How likely a change was before the last visit, and the memory without it."""
    place = len(memory) - _EXPECTED.size
    if place < _EVIDENCE.size or place % 8 > 1 or not memory.endswith(_MARK):
        return None, memory
    expected: float = _EXPECTED.unpack_from(memory, place)[0]
    return (expected if 0.0 <= expected <= 1.0 else None), memory[:place]


def _is_cautious(memory: bytes) -> bool:
    return len(memory) % 8 == 1 and len(memory) > 2 * _EVIDENCE.size  # everything else is in eights


def _end(memory: bytes) -> int:
    """Where the row of a rule ends."""
    return len(memory) - (_EVIDENCE.size + len(_CAUTIOUS) if _is_cautious(memory) else 0)


def row_of(memory: bytes, width: int) -> list[float] | None:
    """The stored row of a rule of this width; None if another rule stored it."""
    _, memory = _expected_at_end(memory)
    if _end(memory) != _EVIDENCE.size + 8 * width:
        return None
    return list(struct.unpack_from(f"<{width}d", memory, _EVIDENCE.size))


# Tuned on seeds from 101 on of the laboratory's worlds; the results are flat around these values.
KEEP = 0.97  # of a page's evidence, at each visit
PAGES_BEFORE = 10.0  # the weight of the initial prior for the web, in pages
PAGES_HERE = 10.0  # the weight of the web in the prior for a site, in pages
EAGER = 1.25  # planned visits per possible visit: a page is always due, and no fetch is left over


def imagined(rates: Sequence[float]) -> list[float]:
    """The initial prior of the plan: every rate is as likely, so that new pages are soon visited again."""
    return [0.3, *(0.7 / (len(rates) - 1) for _ in rates[1:])]


# Before any visit: a third of the pages never change, the others most likely once in some twenty days, give or take a
# factor of ten. So one visit is not enough to show that a page changes every few minutes.
_NEVER, _USUAL, _TENFOLD = 0.35, 1 / (20 * 86400.0), 2.3


def usual(rates: Sequence[float]) -> list[float]:
    """The initial prior of what is said about a page: what pages of the web are like before the first visit."""
    weights = [math.exp(-0.5 * (math.log(rate / _USUAL) / _TENFOLD) ** 2) for rate in rates[1:]]
    return [_NEVER, *((1.0 - _NEVER) * weight / sum(weights) for weight in weights)]


def write_prior(
    prior: MutableSequence[float],
    everywhere: Sequence[float],
    here: Sequence[float],
    imagined: Sequence[float],
) -> None:
    """Write the prior of a page of a site."""
    total = PAGES_BEFORE
    at_site = PAGES_HERE
    for k in range(len(prior)):
        total += everywhere[k]
        at_site += max(here[k], 0.0)
    for k in range(len(prior)):
        of_web = (PAGES_BEFORE * imagined[k] + max(everywhere[k], 0.0)) / total
        prior[k] = (PAGES_HERE * of_web + max(here[k], 0.0)) / at_site


def weigh(
    evidence: Sequence[float],
    prior: Sequence[float],
    intervals: Sequence[float],
    worths: Sequence[float],
    prices: Sequence[float],
    importance: float,
    unannounced: float,
    probabilities: MutableSequence[float],
    share: MutableSequence[float],
    everywhere: MutableSequence[float],
    here: MutableSequence[float],
) -> None:
    """Write the probabilities and the demand of a page, and replace its old share in both sums by the new one.

    A page without evidence needs visits like any other, but adds nothing to the prior: it would only repeat it.
    """
    withdraw(share, everywhere, here)
    posterior(evidence, prior, probabilities)
    profile(probabilities, len(prior), intervals, worths, prices, importance, unannounced)
    counts = 0.0
    for k in range(len(prior)):
        if evidence[k] < 0.0:
            counts = 1.0
    for k in range(len(share)):
        share[k] = probabilities[k] if k >= len(prior) else counts * probabilities[k]
        everywhere[k] += share[k]
        here[k] += share[k]


def withdraw(share: MutableSequence[float], everywhere: MutableSequence[float], here: MutableSequence[float]) -> None:
    """Remove the share of a page from both sums."""
    for k in range(len(share)):
        everywhere[k] -= share[k]
        here[k] -= share[k]
        share[k] = 0.0


def price_for(sums: Sequence[float], kinds: int, prices: Sequence[float], visits: float) -> float:
    """The price at which the pages together are worth `visits` per second: the more visits, the lower."""
    last = len(prices) - 1
    if visits >= sums[kinds]:
        return prices[0]
    if visits <= sums[kinds + last]:
        return prices[last]
    at = 1
    while sums[kinds + at] > visits:
        at += 1
    more, less = sums[kinds + at - 1], sums[kinds + at]
    part = (more - visits) / (more - less)
    return prices[at - 1] * math.exp(part * math.log(prices[at] / prices[at - 1]))


_ANOTHER_EVERY = 2  # visits: after this many, another page of the sample is weighed again, in turn
_ROUNDS = 10  # through the sample at the start: then the prior and the estimates agree within a point
_NEW_ALIKE = 16  # new pages of a site that share one computation
_STEPS = 32  # of elapsed time per doubling, in the table of chances
_FRESHLY_MADE = 60.0  # seconds: a younger page was generated for the request, and its date says nothing
_COMPARED = (Outcome.FIRST, Outcome.UNCHANGED, Outcome.CHANGED)


class SiteSums(msgspec.Struct, eq=False):
    """The sums over the sample's pages of one site."""

    sums: list[float]
    calibrated: list[float]
    counts: list[int] = msgspec.field(default_factory=lambda: [0] * MANY)
    members: int = 0
    unannounced: float = 1.0  # the share of changes without a hint
    new_page: list[float] = []  # the probabilities of the last page without evidence
    alike: int = 0  # how many more pages without evidence get the same

    def count(self, new: Sequence[int], old: Sequence[int]) -> None:
        self.counts = [total + more - less for total, more, less in zip(self.counts, new, old, strict=True)]
        self.unannounced = unannounced(self.counts)


class Member(msgspec.Struct, eq=False):
    """A page of the sample: the probabilities of its rates, then the visits per second at each price."""

    site: SiteSums
    importance: float
    place: int
    probabilities: list[float]
    share: list[float]
    calibrated: list[float]  # what is said about the page
    counted: bool = False  # whether `calibrated` is in the sums
    evidence: Evidence = msgspec.field(default_factory=Evidence.none)
    counts: list[int] = msgspec.field(default_factory=lambda: [0] * MANY)
    at: float = 0.0
    hinted: float = 0.0  # the probability that it changed since, by a hint


class PageEstimates:
    """The estimates of the page sample. `importance` gives the weight of a page by its URL; 1 is normal."""

    def __init__(self, scale: Scale, importance: Callable[[str], float] = lambda url: 1.0, size: int = 2_000) -> None:
        self.scale = scale
        self.importance = importance
        self.one_in = 1
        self._size = size
        self._imagined = imagined(scale.rates)
        self._usual = usual(scale.rates)
        self.kinds = len(scale.rates)
        self._width = self.kinds + len(scale.prices)
        self.sums = [0.0] * self._width
        self._calibrated = [0.0] * self.kinds  # the sums of what is said about pages
        self.activity = Activity()
        self._unchanged: dict[int, list[float]] = {}  # by the step of the elapsed time, for each rate
        self._sites: dict[str, SiteSums] = {}
        self._members: dict[int, Member] = {}
        self._ring: list[int] = []
        self._turn = 0

    @property
    def pages(self) -> int:
        """About how many pages the sample represents."""
        return len(self._ring) * self.one_in

    def site(self, site: str) -> SiteSums:
        """The sums of a site; empty ones if the sample has no page of it."""
        return self._sites.get(site) or self._no_pages()

    def _no_pages(self) -> SiteSums:
        return SiteSums([0.0] * self._width, [0.0] * self.kinds)

    def members(self) -> Iterable[Member]:
        return self._members.values()

    def sites(self) -> Iterable[tuple[str, SiteSums]]:
        return self._sites.items()

    def trust(self, page: PageRecord, signal_source: SignalSource) -> float:
        """The trust in a source, from the site's pages in the sample or else from this page."""
        site = self._sites.get(page.site)
        return trust(site.counts if site and site.members else tally(page.history), signal_source)

    def of(self, page: PageRecord) -> list[float]:
        """The probability of each rate for the plan of this page."""
        probabilities = [0.0] * self.kinds
        posterior(Evidence.of(page.memory).plan, self._prior(page.site), probabilities)
        return probabilities

    def calibrated(self, page: PageRecord) -> list[float]:
        """The probability of each rate, as it is said about this page."""
        probabilities = [0.0] * self.kinds
        posterior(Evidence.of(page.memory).cautious, self._calibrated_prior(self.site(page.site)), probabilities)
        return probabilities

    def seen(self, page: PageRecord, visit: Visit, modified: float | None) -> tuple[Evidence, list[float]]:
        """Add a visit; returns the evidence of the page and the probability of each rate for its plan."""
        evidence = self._evidence(page, visit, modified)
        evidence.expected = self._compare(page, visit)
        is_blank = not page.history and not any(evidence.plan)
        if page.kind is PageKind.PAGE and drawn(page.id, self.one_in):
            probabilities = (
                self._add_member(page, visit, evidence) if is_blank else self._weigh_member(page, visit, evidence)
            )
        elif is_blank and self.site(page.site).alike > 0:
            probabilities = self._like_last_new(page.site)
        else:
            probabilities = [0.0] * self.kinds
            posterior(evidence.plan, self._prior(page.site), probabilities)
        if page.visits % _ANOTHER_EVERY:
            self._weigh_another()
        return evidence, probabilities

    def learn(self, pages: Iterable[PageRecord], one_in: int) -> None:
        """Start from these pages, a sample of one in `one_in`; a second pass uses the sums of the first."""
        self.one_in = one_in
        known = []
        for page in pages:
            compared = [visit for visit in page.history if visit.outcome in _COMPARED]
            if compared and drawn(page.id, self.one_in):
                evidence = Evidence.of(page.memory)
                self._weigh_member(page, compared[-1], evidence, before=compared[:-1])
                if page.told:
                    self.hinted(page, page.told)
                if evidence.expected is not None and len(compared) > 1:
                    before, last = compared[-2:]
                    known.append((last.at, evidence.expected, self._changed(page, last), last.at - before.at))
        for _, expected, changed, elapsed in sorted(known):
            self.activity.add(expected, changed, elapsed, len(self._ring))
        for _ in self._ring[:]:
            self._weigh_another()
        self._settle()

    def _compare(self, page: PageRecord, visit: Visit) -> float | None:
        """Count what a visit found beside what was expected; None if nothing was, or a hint brought the visit."""
        member = self._members.get(page.id)
        if member is None or member.hinted or visit.outcome is Outcome.FIRST or visit.said & Signals.EARLY:
            return None
        elapsed = max(1.0, visit.at - member.at)
        unchanged = self._chances(member.site.unannounced * elapsed)
        expected: float = max(0.0, 1.0 - sum(map(mul, unchanged, member.calibrated)))
        self.activity.add(expected, self._changed(page, visit), elapsed, len(self._ring))
        return expected

    def _changed(self, page: PageRecord, visit: Visit) -> float:
        """How likely it is that the page changed, after a visit: a small difference may be noise."""
        if visit.outcome is not Outcome.CHANGED:
            return 0.0
        return 1.0 - noise(self.site(page.site).counts) if is_small(visit) else 1.0

    def forget(self, page: PageRecord) -> None:
        member = self._members.pop(page.id, None)
        if member is not None:
            self._drop(member)

    def share(self, now: float) -> float | None:
        if not self._ring:
            return None
        current, activity = 0.0, self.activity.ratio
        for member in self._members.values():
            silence = 1.0 if member.hinted else member.site.unannounced
            unchanged = self._chances(activity * silence * (now - member.at))
            current += (1.0 - member.hinted) * sum(map(mul, unchanged, member.calibrated))
        return current / len(self._ring)

    def _chances(self, elapsed: float) -> list[float]:
        """For each rate, the probability that a page has not changed for these seconds, rounded to two per cent.

        The share is needed once a second, and pages are many: so each row is computed once.
        """
        step = round(_STEPS * math.log2(elapsed)) if elapsed > 1.0 else 0
        row = self._unchanged.get(step)
        if row is None:
            elapsed = 2.0 ** (step / _STEPS) if step else 0.0
            row = self._unchanged[step] = [math.exp(-rate * elapsed) for rate in self.scale.rates]
        return row

    def hinted(self, page: PageRecord, signals: Signals) -> float:
        """Take a hint; returns the probability that the page changed since its last visit."""
        hinted = max(
            self.trust(page, SignalSource.SITEMAP) if signals & Signals.SITEMAP else 0.0,
            self.trust(page, SignalSource.FEED) if signals & Signals.FEED else 0.0,
        )
        if member := self._members.get(page.id):
            member.hinted = hinted
        return hinted

    def _evidence(self, page: PageRecord, visit: Visit, modified: float | None) -> Evidence:
        rates = self.scale.rates
        age = -1.0 if modified is None or modified > visit.at else visit.at - modified
        before = next((each for each in reversed(page.history) if each.outcome in _COMPARED), None)
        dated = self.trust(page, SignalSource.DATE)
        if visit.outcome is Outcome.FIRST or before is None or not page.memory:
            evidence = Evidence.none()
            if age >= _FRESHLY_MADE:
                evidence.cautious = list(evidence.plan)
                observe_first(evidence.plan, rates, age, dated)
                observe_first_cautiously(evidence.cautious, rates, age, dated)
            return evidence
        evidence = Evidence.of(page.memory)
        changed = visit.outcome is Outcome.CHANGED
        elapsed = max(1.0, visit.at - before.at)  # even if the clock was put back
        if visit.said & Signals.EARLY and changed:
            # The visit came because the page had changed: once in this time, not at least once.
            age, dated = elapsed, 1.0
        blur = noise(self.site(page.site).counts) if is_small(visit) else 0.0
        if changed and 0.0 <= age <= elapsed:
            cautious = list(evidence.cautious)
            observe_cautiously(cautious, rates, elapsed, KEEP, age, dated, blur)
            observe(evidence.plan, rates, elapsed, changed, KEEP, age, dated, blur)
            return Evidence(evidence.plan, cautious)
        if evidence.cautious is not evidence.plan:
            observe(evidence.cautious, rates, elapsed, changed, KEEP, age, dated, blur)
        observe(evidence.plan, rates, elapsed, changed, KEEP, age, dated, blur)
        return evidence

    def _weigh_member(
        self, page: PageRecord, visit: Visit, evidence: Evidence, before: Sequence[Visit] | None = None
    ) -> list[float]:
        member = self._members.get(page.id) or self._join(page)
        member.evidence = evidence
        member.at = visit.at
        history = page.history if before is None else before
        counts = tally((*history[-9:], visit))
        member.site.count(counts, member.counts)
        member.counts = counts
        member.hinted = 0.0
        self._weigh(member)
        if len(self._ring) > self._size:
            self._thin_out()
        return member.probabilities

    def _add_member(self, page: PageRecord, visit: Visit, evidence: Evidence) -> list[float]:
        """Add a page without evidence: it is like the last such page of its site."""
        if page.id in self._members:
            return self._weigh_member(page, visit, evidence)
        member = self._join(page)
        site = member.site
        if site.alike <= 0 or member.importance != 1.0:
            probabilities = self._weigh_member(page, visit, evidence)
            if member.importance == 1.0:
                site.new_page, site.alike = list(probabilities), _NEW_ALIKE
            return probabilities
        member.evidence, member.at = evidence, visit.at
        member.probabilities = list(self._like_last_new(page.site))
        member.calibrated = self._calibrated_prior(site)
        for place in range(self.kinds, self._width):
            demand = member.share[place] = member.probabilities[place]
            self.sums[place] += demand
            site.sums[place] += demand
        if len(self._ring) > self._size:
            self._thin_out()
        return member.probabilities

    def _like_last_new(self, site: str) -> list[float]:
        sums = self._sites[site]
        sums.alike -= 1
        return sums.new_page

    def _weigh_another(self) -> None:
        if self._ring:
            self._turn = (self._turn + 1) % len(self._ring)
            self._weigh(self._members[self._ring[self._turn]])

    def _weigh(self, member: Member) -> None:
        scale = self.scale
        prior = [0.0] * self.kinds
        write_prior(prior, self.sums, member.site.sums, self._imagined)
        weigh(
            member.evidence.plan,
            prior,
            scale.intervals,
            scale.worths,
            scale.prices,
            member.importance,
            member.site.unannounced,
            member.probabilities,
            member.share,
            self.sums,
            member.site.sums,
        )
        self._calibrate(member)

    def _calibrate(self, member: Member) -> None:
        """Write what is said about a page; a page without evidence adds nothing to the prior."""
        self._leave(member)
        row = member.calibrated
        posterior(member.evidence.cautious, self._calibrated_prior(member.site), row)
        member.counted = any(member.evidence.cautious)
        if member.counted:
            everywhere, here = self._calibrated, member.site.calibrated
            for k, chance in enumerate(row):
                everywhere[k] += chance
                here[k] += chance

    def _leave(self, member: Member) -> None:
        if member.counted:
            everywhere, here = self._calibrated, member.site.calibrated
            for k, chance in enumerate(member.calibrated):
                everywhere[k] -= chance
                here[k] -= chance
            member.counted = False

    def _calibrated_prior(self, site: SiteSums) -> list[float]:
        prior = [0.0] * self.kinds
        write_prior(prior, self._calibrated, site.calibrated, self._usual)
        return prior

    def _settle(self) -> None:
        """Let the calibrated prior and the rows agree, as they come to do during a crawl."""
        for _ in range(_ROUNDS):
            for member in self._members.values():
                self._calibrate(member)

    def _prior(self, site: str) -> list[float]:
        prior = [0.0] * self.kinds
        write_prior(prior, self.sums, self.site(site).sums, self._imagined)
        return prior

    def _join(self, page: PageRecord) -> Member:
        site = self._sites.get(page.site)
        if site is None:
            site = self._sites[page.site] = self._no_pages()
        site.members += 1
        width, importance = self._width, self.importance(page.url)
        member = Member(site, importance, len(self._ring), [0.0] * width, [0.0] * width, [0.0] * self.kinds)
        self._members[page.id] = member
        self._ring.append(page.id)
        return member

    def _drop(self, member: Member) -> None:
        """Remove a page from the sums and the ring; the last of the ring takes its place."""
        withdraw(member.share, self.sums, member.site.sums)
        self._leave(member)
        member.site.count([0] * MANY, member.counts)
        member.site.members -= 1
        last = self._ring.pop()
        if member.place < len(self._ring):
            self._ring[member.place] = last
            self._members[last].place = member.place

    def _thin_out(self) -> None:
        self.one_in *= 2
        for page_id in [each for each in self._members if not drawn(each, self.one_in)]:
            self._drop(self._members.pop(page_id))
        self._sites = {name: sums for name, sums in self._sites.items() if sums.members}
