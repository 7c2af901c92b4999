"""What do we believe of each page, and of all together?

A panel of pages, all of them while they are few and a sample later, is kept in memory with its sums (`panel`); what
is known of one page is kept with the page (`memory`). So any number of pages costs the same memory, and a crawler
that starts again reads its panel from the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from levada.freshness.hearsay import MANY, Speaker, is_small, noise, tally, trust, unsaid
from levada.freshness.memory import evidence_of
from levada.freshness.panel import KEEP, imagined, weigh, withdraw, write_prior
from levada.freshness.rates import chance_unchanged, observe, observe_first, posterior
from levada.freshness.worth import Scale
from levada.hashing import drawn
from levada.records import Outcome, PageKind, PageRecord, Said, Visit

__all__ = ["Member", "PageBeliefs", "SiteSums"]

_ANOTHER_EVERY = 2  # visits after the first: so often one more page of the panel is weighed anew, in turn
_NEWCOMERS_ALIKE = 16
_FEW = 500  # pages whose chances average to that of all within a per cent
_FRESHLY_MADE = 60.0  # seconds: a page dated younger than this was made for us, and its date says nothing
_COMPARED = (Outcome.FIRST, Outcome.UNCHANGED, Outcome.CHANGED)


class SiteSums:
    """What the panel's pages of one site say together."""

    __slots__ = ("alike", "counts", "members", "newcomer", "sums", "unsaid")

    def __init__(self, width: int) -> None:
        self.sums = [0.0] * width
        self.counts = [0] * MANY
        self.members = 0
        self.unsaid = 1.0  # the share of changes that nobody tells of
        self.newcomer: list[float] = []  # what was believed of the last page of which nothing was known
        self.alike = 0  # so many more are taken to be like it

    def count(self, new: Sequence[int], old: Sequence[int]) -> None:
        self.counts = [total + more - less for total, more, less in zip(self.counts, new, old, strict=True)]
        self.unsaid = unsaid(self.counts)


class Member:
    """A page of the panel: its belief over the rates, then the visits per second it is worth at each price."""

    __slots__ = ("at", "belief", "counts", "evidence", "importance", "place", "share", "site", "told")

    def __init__(self, site: SiteSums, importance: float, width: int, place: int) -> None:
        self.site = site
        self.importance = importance
        self.place = place
        self.evidence: Sequence[float] = ()
        self.belief = [0.0] * width
        self.share = [0.0] * width
        self.counts = [0] * MANY
        self.at = 0.0
        self.told = 0.0  # the chance that it changed since, as somebody told


class PageBeliefs:
    """The panel. `importance` tells by its address what a page's freshness counts, beside 1."""

    def __init__(
        self, scale: Scale, importance: Callable[[str], float] = lambda url: 1.0, size: int = 2_000
    ) -> None:
        self.scale = scale
        self.importance = importance
        self.one_in = 1
        self._size = size
        self._imagined = imagined(scale.rates)
        self.kinds = len(scale.rates)
        self._width = self.kinds + len(scale.prices)
        self.sums = [0.0] * self._width
        self._sites: dict[str, SiteSums] = {}
        self._members: dict[int, Member] = {}
        self._ring: list[int] = []
        self._turn = 0

    @property
    def pages(self) -> int:
        """About how many pages the panel stands for."""
        return len(self._ring) * self.one_in

    def site(self, site: str) -> SiteSums:
        """The sums of a site; empty ones if the panel has no page of it."""
        return self._sites.get(site) or SiteSums(self._width)

    def members(self) -> Iterable[Member]:
        return self._members.values()

    def sites(self) -> Iterable[tuple[str, SiteSums]]:
        return self._sites.items()

    def trust(self, page: PageRecord, speaker: Speaker) -> float:
        """From the visits of the site's pages in the panel, or of this one page."""
        site = self._sites.get(page.site)
        return trust(site.counts if site and site.members else tally(page.history), speaker)

    def of(self, page: PageRecord) -> list[float]:
        """How likely each rate is for this page, as far as its visits so far tell."""
        belief = [0.0] * self.kinds
        posterior(evidence_of(page.memory), self._prior(page.site), belief)
        return belief

    def seen(self, page: PageRecord, visit: Visit, modified: float | None) -> tuple[list[float], list[float]]:
        """Take in a visit: the page's evidence, and how likely each rate is now."""
        evidence = self._evidence(page, visit, modified)
        is_blank = not page.history and not any(evidence)
        if page.kind is PageKind.PAGE and drawn(page.id, self.one_in):
            belief = self._welcome(page, visit, evidence) if is_blank else self._weigh_member(page, visit, evidence)
        elif is_blank and self.site(page.site).alike > 0:
            belief = self._like_the_last(page.site)
        else:
            belief = [0.0] * self.kinds
            posterior(evidence, self._prior(page.site), belief)
        if page.visits % _ANOTHER_EVERY:
            self._weigh_another()
        return evidence, belief

    def learn(self, pages: Iterable[PageRecord], one_in: int) -> None:
        """Start from these pages, a sample of one in so many. The second look knows what the first one learnt."""
        self.one_in = one_in
        for page in pages:
            compared = [visit for visit in page.history if visit.outcome in _COMPARED]
            if compared and drawn(page.id, self.one_in):
                self._weigh_member(page, compared[-1], evidence_of(page.memory), before=compared[:-1])
                if page.told:
                    self.told(page, page.told)
        for _ in self._ring[:]:
            self._weigh_another()

    def forget(self, page: PageRecord) -> None:
        member = self._members.pop(page.id, None)
        if member is not None:
            self._drop(member)

    def share(self, now: float) -> float | None:
        if not self._ring:
            return None
        rates, kinds = self.scale.rates, self.kinds
        asked = self._few()
        current = 0.0
        for member in map(self._members.__getitem__, asked):
            silence = 1.0 if member.told else member.site.unsaid
            elapsed = silence * max(0.0, now - member.at)
            current += (1.0 - member.told) * chance_unchanged(member.belief[:kinds], rates, elapsed)
        return current / len(asked)

    def told(self, page: PageRecord, said: Said) -> float:
        """The chance that a page changed since its last visit, now that somebody says so."""
        told = max(
            self.trust(page, Speaker.SITEMAP) if said & Said.SITEMAP else 0.0,
            self.trust(page, Speaker.FEED) if said & Said.FEED else 0.0,
        )
        if member := self._members.get(page.id):
            member.told = told
        return told

    def _few(self) -> list[int]:
        """The panel, or a sample of it: what they say together is asked for several times a second."""
        one_in = self.one_in
        while len(self._ring) * self.one_in > _FEW * one_in:
            one_in *= 2
        return [page_id for page_id in self._ring if drawn(page_id, one_in)] or self._ring

    def _evidence(self, page: PageRecord, visit: Visit, modified: float | None) -> list[float]:
        rates = self.scale.rates
        age = -1.0 if modified is None or modified > visit.at else visit.at - modified
        before = next((each for each in reversed(page.history) if each.outcome in _COMPARED), None)
        if visit.outcome is Outcome.FIRST or before is None or not page.memory:
            evidence = [0.0] * self.kinds
            if age >= _FRESHLY_MADE:
                observe_first(evidence, rates, age, self.trust(page, Speaker.DATE))
            return evidence
        evidence, dated = evidence_of(page.memory), self.trust(page, Speaker.DATE)
        elapsed = max(1.0, visit.at - before.at)  # a clock that was put back has not made the page any older
        if visit.said & Said.EARLY and visit.outcome is Outcome.CHANGED:
            # We came because it had changed: that says once in this time, not at least once.
            age, dated = elapsed, 1.0
        blur = noise(self.site(page.site).counts) if is_small(visit) else 0.0
        observe(evidence, rates, elapsed, visit.outcome is Outcome.CHANGED, KEEP, age, dated, blur)
        return evidence

    def _weigh_member(
        self, page: PageRecord, visit: Visit, evidence: Sequence[float], before: Sequence[Visit] | None = None
    ) -> list[float]:
        member = self._members.get(page.id) or self._join(page)
        member.evidence = evidence
        member.at = visit.at
        history = page.history if before is None else before
        counts = tally((*history[-9:], visit))
        member.site.count(counts, member.counts)
        member.counts = counts
        member.told = 0.0
        self._weigh(member)
        if len(self._ring) > self._size:
            self._thin_out()
        return member.belief

    def _welcome(self, page: PageRecord, visit: Visit, evidence: Sequence[float]) -> list[float]:
        """A page of which nothing is known yet is like the last of its site of which nothing was."""
        if page.id in self._members:
            return self._weigh_member(page, visit, evidence)
        member = self._join(page)
        site = member.site
        if site.alike <= 0 or member.importance != 1.0:
            belief = self._weigh_member(page, visit, evidence)
            if member.importance == 1.0:
                site.newcomer, site.alike = list(belief), _NEWCOMERS_ALIKE
            return belief
        member.evidence, member.at = evidence, visit.at
        member.belief = list(self._like_the_last(page.site))
        for place in range(self.kinds, self._width):
            demand = member.share[place] = member.belief[place]
            self.sums[place] += demand
            site.sums[place] += demand
        if len(self._ring) > self._size:
            self._thin_out()
        return member.belief

    def _like_the_last(self, site: str) -> list[float]:
        sums = self._sites[site]
        sums.alike -= 1
        return sums.newcomer

    def _weigh_another(self) -> None:
        if self._ring:
            self._turn = (self._turn + 1) % len(self._ring)
            self._weigh(self._members[self._ring[self._turn]])

    def _weigh(self, member: Member) -> None:
        scale = self.scale
        prior = [0.0] * self.kinds
        write_prior(prior, self.sums, member.site.sums, self._imagined)
        weigh(
            member.evidence,
            prior,
            scale.intervals,
            scale.worths,
            scale.prices,
            member.importance,
            member.site.unsaid,
            member.belief,
            member.share,
            self.sums,
            member.site.sums,
        )

    def _prior(self, site: str) -> list[float]:
        prior = [0.0] * self.kinds
        write_prior(prior, self.sums, self.site(site).sums, self._imagined)
        return prior

    def _join(self, page: PageRecord) -> Member:
        site = self._sites.get(page.site)
        if site is None:
            site = self._sites[page.site] = SiteSums(self._width)
        site.members += 1
        member = Member(site, self.importance(page.url), self._width, len(self._ring))
        self._members[page.id] = member
        self._ring.append(page.id)
        return member

    def _drop(self, member: Member) -> None:
        """Out of the sums and the ring; the last of the ring takes its place."""
        withdraw(member.share, self.sums, member.site.sums)
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
