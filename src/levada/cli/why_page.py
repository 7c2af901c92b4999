"""Everything that speaks for a page's next visit, for a person: a sentence, a picture and what they rest on."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from levada.assemble.reading import Collection
from levada.cli.pictures import belief_bars, time_line
from levada.cli.printing import command_for, line, plural, printer
from levada.records import Outcome, PageRecord, Said
from levada.telling.addresses import url_of
from levada.telling.believed import Believed, Heard, believed_of
from levada.telling.duration import duration, relative
from levada.telling.reckoning import account, sentence
from levada.telling.why_site import as_planned, site_notes

__all__ = ["show"]

_WIDTH = 68  # of the pictures, beside what names them: 80 columns are enough
_STYLES = {"●": "bold yellow", "○": "green", "+": "cyan", "▷": "bold"}


def show(collection: Collection, page: PageRecord) -> None:
    out = printer()
    now = collection.clock.now()
    page = as_planned(page, collection.store.site(page.site))
    believed = believed_of(collection, page, now)
    kept = collection.store.versions(page.url)
    if kept:
        out.print(line(kept[0].title) or "(no title)", style="bold")
    out.print(page.url)
    out.print(sentence(account(page, collection.settings.revisit, now, believed.rate)))
    rows = [
        ("state", Text(_state(page))),
        ("found", Text(_found(collection, page, now))),
        *(("visits", each) for each in _visits(page, now)),
        *(("changes", each) for each in _changes(page, believed)),
        *(("others", each) for each in _others(page, believed)),
        *(("price", each) for each in _price(collection, page, believed)),
        *(("paper", each) for each in _paper(collection, page, believed, now)),
        ("versions", Text(_versions(collection, page, [each.version for each in kept]))),
        *(("site", Text(each)) for each in site_notes(collection, page, now)),
    ]
    before = ""
    for name, told in rows:
        out.print(Text.assemble((f"{name if name != before else '':>9}  ", "dim"), told))
        before = name


def _state(page: PageRecord) -> str:
    kind = "" if page.kind == "page" else f" ({page.kind})"
    because = f": {page.reason}" if page.reason and str(page.reason) != str(page.state) else ""
    return f"{page.state}{kind}{because}"


def _found(collection: Collection, page: PageRecord, now: float) -> str:
    how = {"seed": "given by the user", "front": "front page of a site that was linked"}.get(page.how, page.how)
    on = url_of(collection, page.found_on) if page.found_on is not None else None
    source = f" on {on}" if on else ""
    return f"{relative(page.found_at, now)}, {how}{source}, depth {page.depth}"


def _visits(page: PageRecord, now: float) -> Iterable[Text]:
    """The line of visits, its labels, and the count."""
    if not page.history:
        yield Text("none yet" if not page.visits else f"{page.visits:,}, none of which met a page")
        return
    next_visit = page.next_visit
    ahead = "" if next_visit is None or next_visit <= now else relative(next_visit, now)
    marked = "now" if next_visit is None or next_visit > now else "now, and due"
    drawn, labels = time_line(
        page.history, now, next_visit, _WIDTH, (relative(page.history[0].at, now), marked, ahead)
    )
    picture = Text(drawn, style="dim")
    for place, mark in enumerate(drawn):
        if mark in _STYLES:
            picture.stylize(f"not dim {_STYLES[mark]}", place, place + 1)
    yield picture
    yield Text(labels, style="dim")
    met = [sum(visit.outcome is each for visit in page.history) for each in (Outcome.CHANGED, Outcome.UNCHANGED)]
    known = f"; the last {len(page.history)}" if page.visits > len(page.history) else ""
    yield Text(f"{page.visits:,} in all{known}: {met[0]} met a change (●), {met[1]} met none (○)")


def _changes(page: PageRecord, believed: Believed) -> Iterable[Text]:
    if not page.history:
        return
    rate = believed.rate
    bars, scale = belief_bars(rate.belief, rate.rates)
    yield Text(bars, style="cyan")
    yield Text(scale, style="dim")
    current = (
        "" if believed.current is None else f"; the stored copy is current with a chance of {believed.current:.0%}"
    )
    yield Text(f"how likely each interval between changes is{current}")


def _others(page: PageRecord, believed: Believed) -> Iterable[Text]:
    told = {"sitemap": Said.SITEMAP, "feed": Said.FEED}
    for heard in believed.heard:
        now = bool(page.told & told.get(heard.who, Said.NOTHING))
        if heard.said or now:
            since = "; tells of a change since the last visit" if now else ""
            yield Text(f"{heard.who}: {_spoken(heard)}{since}")
    if believed.foretold > 0.005:
        yield Text(
            f"{believed.foretold:.0%} of the changes on this site are foretold, so that silence says something"
        )


def _spoken(heard: Heard) -> str:
    checked = heard.right + heard.wrong
    proof = (
        f"right {heard.right} of {plural(checked, 'time')} on this site" if checked else "not put to the test yet"
    )
    return f"spoke at {plural(heard.said, 'visit')}; {proof}, believed {heard.trust:.0%}"


def _price(collection: Collection, page: PageRecord, believed: Believed) -> Iterable[Text]:
    if collection.settings.revisit.policy != "learned" or not page.history:
        return
    pace = believed.spent_per_hour
    spent = f"{pace:,.{1 if pace < 9.95 else 0}f} fetches per hour on {plural(believed.pages, 'page')}"
    yield Text(f"a visit must be worth {duration(believed.price)}: that spends {spent}")
    if believed.price > 1.001 * believed.common_price:
        yield Text(f"elsewhere {duration(believed.common_price)} are enough: this site cannot be asked more often")
    if believed.importance != 1.0:
        yield Text(f"its freshness counts {believed.importance:g} times (revisit.importance)")
    if believed.interval and page.interval and abs(believed.interval / page.interval - 1.0) > 0.1:
        yield Text(f"as things stand by now, that would be after {duration(believed.interval)}")


def _paper(collection: Collection, page: PageRecord, believed: Believed, now: float) -> Iterable[Text]:
    if collection.settings.revisit.policy == "ema" or believed.paper_interval is None:
        return
    at = page.history[-1].at + believed.paper_interval
    about = "" if page.history[0].outcome is Outcome.FIRST else "about "
    if at > now:
        yield Text(f"the paper's rule would come back in {about}{duration(at - now)}")
    else:
        yield Text(f"the paper's rule would have come back {about}{duration(now - at)} ago")


def _versions(collection: Collection, page: PageRecord, kept: list[int]) -> str:
    if not kept:
        return "none stored"
    if len(kept) == 1:
        return f"version {kept[0]} is stored"
    return f"{kept[-1]} to {kept[0]} are stored; {command_for('diff', page.url, collection.folder.path)}"
