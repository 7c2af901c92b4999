"""Everything that speaks for a page's next visit, for a program."""

from __future__ import annotations

from typing import Any

from levada.assemble.reading import Collection
from levada.flow.sitebook import is_dropped
from levada.records import Outcome, PageRecord, Said, Visit
from levada.telling.addresses import url_of
from levada.telling.believed import Believed, believed_of
from levada.telling.duration import iso
from levada.telling.reckoning import account, last_step, sentence
from levada.telling.why_site import as_planned, site_notes

__all__ = ["page_facts"]

_DAY = 86_400.0


def page_facts(collection: Collection, page: PageRecord) -> dict[str, Any]:
    now = collection.clock.now()
    site = collection.store.site(page.site)
    page = as_planned(page, site)
    believed = believed_of(collection, page, now)
    revisit = collection.settings.revisit
    because = account(page, revisit, now, believed.rate)
    step = last_step(page, revisit)
    return {
        "url": page.url,
        "site": page.site,
        "kind": page.kind,
        "state": page.state,
        "reason": page.reason,
        "leads_to": page.leads_to,
        "how": page.how,
        "found_at": iso(page.found_at),
        "found_on": url_of(collection, page.found_on) if page.found_on is not None else None,
        "depth": page.depth,
        "now": iso(now),
        "visits": page.visits,
        "history": [_visit(visit) for visit in page.history],
        "failures": page.failures,
        "policy": revisit.policy,
        "sentence": sentence(because),
        "because": because,
        "interval": page.interval,
        "previous_interval": step.before if step else None,
        "previous_interval_exact": step.exact if step else None,
        "next_visit": iso(page.next_visit),
        "next_visit_in": None if page.next_visit is None else page.next_visit - now,
        **_belief_facts(page, believed, learned=revisit.policy == "learned"),
        "versions": [each.version for each in collection.store.versions(page.url)],
        "site_dropped": site is not None and is_dropped(site),
        "site_rests_until": iso(site.rest_until) if site and site.rest_until > now else None,
        "site_notes": site_notes(collection, page, now),
    }


def _belief_facts(page: PageRecord, believed: Believed, *, learned: bool) -> dict[str, Any]:
    rate, paper = believed.rate, believed.paper_interval
    return {
        "rate_per_day": _DAY / rate.median,
        "rate_low": _DAY / rate.high,
        "rate_high": _DAY / rate.low,
        "chance_static": rate.static,
        "believed_current": believed.current,
        "rates": [
            {"per_day": _DAY * each, "chance": chance} for each, chance in zip(rate.rates, rate.belief, strict=True)
        ],
        "price_seconds": believed.price if learned else None,
        "common_price_seconds": believed.common_price if learned else None,
        "interval_at_price": believed.interval if learned else None,
        "importance": believed.importance,
        "budget_per_hour": believed.visits_per_hour if learned else None,
        "hearsay": believed.heard,
        "foretold": believed.foretold,
        "told": _words(page.told),
        "paper_interval": paper,
        "paper_interval_exact": None if paper is None else page.history[0].outcome is Outcome.FIRST,
        "paper_next_visit": None if paper is None else iso(page.history[-1].at + paper),
    }


def _visit(visit: Visit) -> dict[str, Any]:
    met = {"at": iso(visit.at), "outcome": visit.outcome.name.lower(), "similarity": visit.similarity}
    return met | {"said": _words(visit.said)}


def _words(said: Said) -> list[str]:
    return [str(each.name).lower().replace("_", "-") for each in said]
