"""Fair leasing: the pure decision which pages of which sites go into one lease.

Sites come in the order in which their turn is due. Each gives its fair share of the batch. What small sites leave
over goes to large ones, so a single site still fills a batch. Within a site, pages never visited and pages due
again alternate in a fixed proportion that continues from lease to lease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from math import ceil

import msgspec

from levada.store.base import StoreLimits

Peek = Callable[[int, int], tuple[Sequence[int], Sequence[int]]]
"""At most n page ids of a site that may be leased, in order: those never visited, and those due again."""


class SiteTurn(msgspec.Struct, frozen=True):
    """A site whose turn has come."""

    id: int
    delay: float
    taken: int = 0  # pages leased from it so far


class Portion(msgspec.Struct, frozen=True):
    """The pages that one site gives to a lease, and whether it could give more now."""

    site: SiteTurn
    pages: list[int]
    more: bool

    def next_turn(self, now: float) -> float:
        """The earliest time by which the leased pages can have been fetched politely."""
        return now + len(self.pages) * self.site.delay


def first_portions(
    sites_from: Callable[[int], Sequence[SiteTurn]], peek: Peek, limits: StoreLimits, limit: int, seconds: float
) -> list[Portion]:
    """Take portions from the sites in order, `limit` sites at a time, until one has a page or no site is left.

    A site whose turn has come may have no page that was due early enough; the sites behind it must not wait for it.
    """
    tried: list[Portion] = []
    while sites := sites_from(len(tried)):
        portions = hand_out(sites, peek, limits, limit, seconds)
        tried += portions
        if len(sites) < limit or any(portion.pages for portion in portions):
            break
    return tried


def hand_out(sites: Sequence[SiteTurn], peek: Peek, limits: StoreLimits, limit: int, seconds: float) -> list[Portion]:
    """One portion for each site tried, at most `limit` pages in all."""
    portions: list[Portion] = []
    left = limit
    for site in sites:
        if left <= 0:
            break
        count = min(left, _quota(site, limits, limit, seconds, len(sites)))
        portions.append(_portion(site, peek, limits, count))
        left -= len(portions[-1].pages)
    for place, portion in enumerate(portions):
        had = len(portion.pages)
        count = min(had + left, _ceiling(portion.site, limit, seconds))
        if portion.more and count > had:
            portions[place] = _portion(portion.site, peek, limits, count)
            left -= len(portions[place].pages) - had
    return portions


def mix(new: Sequence[int], due: Sequence[int], position: int, share: float, count: int) -> list[int]:
    """At most `count` pages in which the kinds alternate by `share`; where one kind ends, the other fills up. A
    shorter mix is a prefix of a longer one."""
    ahead = {True: iter(new), False: iter(due)}
    mixed: list[int] = []
    while len(mixed) < count:
        step = position + len(mixed)
        wanted = ceil((step + 1) * share) > ceil(step * share)
        page = next(ahead[wanted], None)
        if page is None:
            mixed.extend(islice(ahead[not wanted], count - len(mixed)))
            break
        mixed.append(page)
    return mixed


def _portion(site: SiteTurn, peek: Peek, limits: StoreLimits, count: int) -> Portion:
    new, due = peek(site.id, count + 1)
    pages = mix(new, due, site.taken, limits.new_share, count)
    return Portion(site, pages, len(new) + len(due) > len(pages))


def _quota(site: SiteTurn, limits: StoreLimits, limit: int, seconds: float, sites: int) -> int:
    fair = ceil(limit / sites)
    return max(fair, limits.run) if site.delay <= 0 else min(fair, _ceiling(site, limit, seconds))


def _ceiling(site: SiteTurn, limit: int, seconds: float) -> int:
    """The number of pages that can be fetched politely before the lease ends."""
    return limit if site.delay <= 0 else max(1, min(limit, int(seconds / site.delay)))
