"""Whose turn is it? Which pages of which sites go into one lease, decided without touching any.

Sites come in the order in which their turn is due. Each gives its fair share of the batch; what the small ones
leave over goes to the large ones, so that a single site still fills a batch. Within a site, pages never visited
and pages due again alternate in a fixed proportion that goes on from lease to lease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from math import ceil

import msgspec

from levada.adapters.limits import StoreLimits

__all__ = ["Peek", "Portion", "SiteTurn", "first_portions", "hand_out", "mix"]

Peek = Callable[[int, int], tuple[Sequence[int], Sequence[int]]]
"""At most n page ids of a site that may be leased: never visited, and due again; each in order."""


class SiteTurn(msgspec.Struct, frozen=True):
    id: int
    delay: float
    taken: int = 0  # pages leased from it so far


class Portion(msgspec.Struct, frozen=True):
    """What one site gives to a lease, and whether it could give more at once."""

    site: SiteTurn
    pages: list[int]
    more: bool

    def next_turn(self, now: float) -> float:
        """Not before the pages handed out can have been fetched politely."""
        return now + len(self.pages) * self.site.delay


def first_portions(
    sites_from: Callable[[int], Sequence[SiteTurn]], peek: Peek, limits: StoreLimits, limit: int, seconds: float
) -> list[Portion]:
    """Portions of the sites in order, `limit` sites at a time, until there is a page in one or no site is left.

    Sites whose turn has come may have nothing that was due early enough; those behind them must not wait for it.
    """
    looked: list[Portion] = []
    while sites := sites_from(len(looked)):
        portions = hand_out(sites, peek, limits, limit, seconds)
        looked += portions
        if len(sites) < limit or any(portion.pages for portion in portions):
            break
    return looked


def hand_out(
    sites: Sequence[SiteTurn], peek: Peek, limits: StoreLimits, limit: int, seconds: float
) -> list[Portion]:
    """One portion for each site that was looked at, `limit` pages at most in all."""
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
    """At most `count` pages in which kinds alternate by `share`; where one kind ends, the other fills up.

    The first pages of a longer mix are those of a shorter one.
    """
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
    """No more pages than can be fetched politely before the lease ends."""
    return limit if site.delay <= 0 else max(1, min(limit, int(seconds / site.delay)))
