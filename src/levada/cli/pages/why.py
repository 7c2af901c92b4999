"""`levada why`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from levada.cli.options import DataOption, JsonOption, print_json
from levada.cli.terminal import bar, estimate_bars, printer, time_line
from levada.collection.explain import LEAST_POWER, Forecast, SignalRecord, Why
from levada.core.durations import duration, relative
from levada.core.errors import UsageError
from levada.core.records import Outcome, PageRecord, Signals
from levada.core.words import command_for, line, plural

_WIDTH = 68  # of the pictures, beside what names them: 80 columns are enough
_STYLES = {"●": "bold yellow", "○": "green", "+": "cyan", "▷": "bold"}


def show_page(why: Why, folder: Path) -> None:
    out, page = printer(), why.page
    if why.versions:
        out.print(line(why.title) or "(no title)", style="bold")
    out.print(page.url)
    out.print(str(why))
    rows: dict[str, Iterable[str | Text]] = {
        "state": [_state(page)],
        "found": [_found(why)],
        "visits": _visits(page, why.at),
        "changes": _changes(why),
        "others": _others(why),
        "price": _price(why),
        "paper": _paper(why),
        "versions": [_versions(why, folder)],
        "noise": _noise(why),
        "site": why.site_notes,
    }
    for name, lines in rows.items():
        for number, told in enumerate(lines):
            out.print(Text.assemble((f"{'' if number else name:>9}  ", "dim"), told))


def _state(page: PageRecord) -> str:
    kind = "" if page.kind == "page" else f" ({page.kind})"
    because = f": {page.reason}" if page.reason and str(page.reason) != str(page.state) else ""
    return f"{page.state}{kind}{because}"


def _found(why: Why) -> str:
    page = why.page
    how = {"seed": "given by the user", "front": "front page of a site that was linked"}.get(page.how, page.how)
    source = f" on {why.found_on}" if why.found_on else ""
    return f"{relative(page.found_at, why.at)}, {how}{source}, depth {page.depth}"


def _visits(page: PageRecord, now: float) -> Iterable[Text]:
    """The line of visits, its labels, and the count."""
    if not page.history:
        yield Text("none yet" if not page.visits else f"{page.visits:,}, none of which met a page")
        return
    next_visit = page.next_visit
    ahead = "" if next_visit is None or next_visit <= now else relative(next_visit, now)
    marked = "now" if next_visit is None or next_visit > now else "now, and due"
    drawn, labels = time_line(page.history, now, next_visit, _WIDTH, (relative(page.history[0].at, now), marked, ahead))
    picture = Text(drawn, style="dim")
    for place, mark in enumerate(drawn):
        if mark in _STYLES:
            picture.stylize(f"not dim {_STYLES[mark]}", place, place + 1)
    yield picture
    yield Text(labels, style="dim")
    met = [sum(visit.outcome is each for visit in page.history) for each in (Outcome.CHANGED, Outcome.UNCHANGED)]
    known = f"; the last {len(page.history)}" if page.visits > len(page.history) else ""
    yield Text(f"{page.visits:,} in all{known}: {met[0]} met a change (●), {met[1]} met none (○)")


def _changes(why: Why) -> Iterable[Text]:
    if not why.page.history:
        return
    estimate, rate = why.estimate, why.estimate.rate
    bars, scale = estimate_bars(rate.probabilities, rate.rates)
    yield Text(bars, style="cyan")
    yield Text(scale, style="dim")
    current = (
        "" if estimate.current is None else f"; the stored copy is current with a chance of {estimate.current:.0%}"
    )
    yield Text(f"how likely each interval between changes is{current}")


def _others(why: Why) -> Iterable[Text]:
    page, estimate = why.page, why.estimate
    told = {"sitemap": Signals.SITEMAP, "feed": Signals.FEED}
    for heard in estimate.heard:
        now = bool(page.told & told.get(heard.who, Signals.NOTHING))
        if heard.said or now:
            since = "; tells of a change since the last visit" if now else ""
            yield Text(f"{heard.who}: {_spoken(heard)}{since}")
    if estimate.foretold > 0.005:
        yield Text(f"{estimate.foretold:.0%} of the changes on this site are foretold, so that silence says something")


def _spoken(heard: SignalRecord) -> str:
    checked = heard.right + heard.wrong
    proof = f"right {heard.right} of {plural(checked, 'time')} on this site" if checked else "not put to the test yet"
    return f"spoke at {plural(heard.said, 'visit')}; {proof}, trusted {heard.trust:.0%}"


def _price(why: Why) -> Iterable[Text]:
    page, estimate = why.page, why.estimate
    if why.policy != "learned" or not page.history:
        return
    pace = estimate.spent_per_hour
    spent = f"{pace:,.{1 if pace < 9.95 else 0}f} fetches per hour on {plural(estimate.pages, 'page')}"
    yield Text(f"a visit must be worth {duration(estimate.price)}: that spends {spent}")
    if estimate.price > 1.001 * estimate.common_price:
        yield Text(f"elsewhere {duration(estimate.common_price)} are enough: this site cannot be asked more often")
    if estimate.importance != 1.0:
        yield Text(f"its freshness counts {estimate.importance:g} times (revisit.importance)")
    if estimate.interval and page.interval and abs(estimate.interval / page.interval - 1.0) > 0.1:
        yield Text(f"as things stand by now, that would be after {duration(estimate.interval)}")


def _paper(why: Why) -> Iterable[Text]:
    page, now = why.page, why.at
    if why.policy == "ema" or why.estimate.paper_interval is None:
        return
    at = page.history[-1].at + why.estimate.paper_interval
    about = "" if page.history[0].outcome is Outcome.FIRST else "about "
    if at > now:
        yield Text(f"the paper's rule would come back in {about}{duration(at - now)}")
    else:
        yield Text(f"the paper's rule would have come back {about}{duration(now - at)} ago")


def _versions(why: Why, folder: Path) -> str:
    kept = why.versions
    if not kept:
        return "none stored"
    if len(kept) == 1:
        return f"version {kept[0]} is stored"
    return f"{kept[-1]} to {kept[0]} are stored; {command_for('diff', why.page.url, folder)}"


def _noise(why: Why) -> Iterable[str]:
    """What of the text does not count, and why: counters, ages and the like, and lines that are another each time."""
    if not why.noise:
        return
    said = [f'"{line(each)[: _WIDTH - 10]}"' for each in why.noise[:_SHOWN_NOISE]]
    count = len(why.noise)
    does = "does" if count == 1 else "do"
    yield f"{plural(count, 'line')} {does} not count as a change: noise by form, or new at every visit"
    yield from said
    if count > len(said):
        yield f"and {count - len(said)} more"


_BAR = 30
_SHOWN_NOISE = 3
_HOUR = 3_600.0


def show_budget(plan: Forecast) -> None:
    out = printer()
    out.print(f"{plural(plan.pages, 'page')}: estimated freshness at each budget", style="bold")
    out.print(Text(f"{'budget':>9}  {'fetches per hour':>16}  {'fresh':>6}  {'':{_BAR}}  twice that", style="dim"))
    for number, (point, twice) in enumerate(pairwise(plan.points)):
        is_present, power = point is plan.present, number + LEAST_POWER
        share = "now" if is_present else f"x {2**power}" if power > 0 else f"x 1/{2**-power}"
        row = (
            f"{share:>9}  {_per_hour(point.visits):>16}  {point.fresh:>6.1%}  {bar(point.fresh, _BAR):<{_BAR}}  "
            f"{100 * (twice.fresh - point.fresh):+.1f}"
        )
        out.print(Text(row, style="bold green" if is_present else ""))
    for told in _remarks(plan):
        out.print(told)


def _remarks(plan: Forecast) -> list[str]:
    now, half, twice = plan.present, plan.points[-LEAST_POWER - 1], plan.points[-LEAST_POWER + 1]
    said = [
        f"The present budget, {_budget(plan)}, keeps a stored page fresh for {now.fresh:.1%} of the time. Twice as "
        f"much would gain {_points(twice.fresh - now.fresh)}, half as much lose {_points(now.fresh - half.fresh)}."
    ]
    if now.spent < 0.999 * now.visits:
        said.append(
            f"Only {_per_hour(now.spent)} fetches per hour can be spent: every page is visited as often as "
            "revisit.floor, or its site, allows."
        )
    if plan.current is not None:
        said.append(f"Right now {plan.current:.1%} of the stored pages are estimated to be current.")
    if plan.settings.revisit.policy != "learned":
        said.append(f'revisit.policy is "{plan.settings.revisit.policy}", which knows no budget: "learned" does.')
    return said


def _budget(plan: Forecast) -> str:
    budget = plan.settings.budget
    if budget.per_hour:
        return f"{budget.per_hour:,} fetches per hour (budget.per_hour)"
    each = f"{budget.per_page_per_day:g} per page and day (budget.per_page_per_day)"
    return f"{_per_hour(plan.present.visits)} fetches per hour or {each}"


def _per_hour(visits: float) -> str:
    per_hour = visits * _HOUR
    return f"{per_hour:,.0f}" if per_hour >= 9.95 else f"{per_hour:.2g}"


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def why(
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="The page; https:// may be left out.", show_default=False)
    ] = None,
    budget: Annotated[
        bool, typer.Option("--budget", help="Instead of a page: how fresh all pages are with more or less fetches.")
    ] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Says when a page is visited next, and why then; or, with --budget, what more fetches would gain.

    On the line of visits `+` is the first, `●` one that met a change, `○` one that met none, `▷` the next. The bars
    below it show how likely each interval between changes is.

    Examples:

    ```
    levada why https://example.org/news
    levada why example.org/news --json
    levada why --budget
    ```
    """
    import levada
    from levada.collection.explain import forecast_facts

    if budget == (url is not None):
        raise UsageError("name a page or --budget, not both" if budget else "name a page, or --budget for all of them")
    with levada.open(data, create=False) as collection:
        if url is None:
            plan = collection.forecast()
            print_json(forecast_facts(plan)) if json else show_budget(plan)
        else:
            found = collection.why(url)
            print_json(found.facts()) if json else show_page(found, data)
