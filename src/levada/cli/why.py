"""`levada why`: why is this page visited again just then, or not at all?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levada.cli.options import DataOption, JsonOption, print_json

if TYPE_CHECKING:
    from rich.text import Text

    from levada.assemble.reading import Collection
    from levada.records import PageRecord, SiteRecord, Visit

__all__ = ["register"]

_STYLES = {"●": "bold yellow", "○": "green", "+": "cyan"}


def register(app: typer.Typer) -> None:
    app.command()(why)


def why(
    url: Annotated[str, typer.Argument(metavar="URL", help="The page; https:// may be left out.")],
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Says when a page is visited next, and because of which visits.

    The last ten visits that met the page are shown oldest first: `+` the first, `●` changed, `○` unchanged.

    Examples:

    ```
    levada why https://example.org/news
    levada why example.org/news --json
    ```
    """
    from levada.assemble.folder import DataFolder
    from levada.assemble.reading import open_collection
    from levada.cli.addresses import known_page

    with open_collection(DataFolder(data)) as collection:
        page = known_page(collection, url)
        if json:
            print_json(_facts(collection, page))
        else:
            _print(collection, page)


def _print(collection: Collection, page: PageRecord) -> None:
    from rich.text import Text

    from levada.cli.printing import line, printer
    from levada.cli.reckoning import account

    out = printer()
    now = collection.clock.now()
    kept = collection.store.versions(page.url)
    if kept:
        out.print(line(kept[0].title) or "(no title)", style="bold")
    out.print(page.url)
    rows = [
        ("state", Text(_state(page))),
        ("found", Text(_found(collection, page, now))),
        ("visits", _strip(page, now)),
        *(("because", Text(each)) for each in account(page, collection.settings.revisit, now)),
        ("versions", Text(_versions(page, [each.version for each in kept]))),
        *(("site", Text(each)) for each in _site_notes(collection, page, now)),
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
    from levada.cli.addresses import url_of
    from levada.cli.duration import relative

    how = {"seed": "given by the user", "front": "front page of a site that was linked"}.get(page.how, page.how)
    on = url_of(collection, page.found_on) if page.found_on is not None else None
    source = f" on {on}" if on else ""
    return f"{relative(page.found_at, now)}, {how}{source}, depth {page.depth}"


def _strip(page: PageRecord, now: float) -> Text:
    """`+ 10 h  ○ 9 h  ● 10 min ago`."""
    from rich.text import Text

    from levada.cli.duration import duration

    if not page.history:
        return Text("none yet")
    marks = [(_mark(visit), duration(now - visit.at)) for visit in page.history]
    strip = Text("  ").join(Text.assemble((mark, _STYLES[mark]), f" {ago}") for mark, ago in marks)
    return Text.assemble(strip, f" ago; {page.visits:,} in all")


def _mark(visit: Visit) -> str:
    return "+○●"[visit.outcome]


def _versions(page: PageRecord, kept: list[int]) -> str:
    if not kept:
        return "none stored"
    if len(kept) == 1:
        return f"version {kept[0]} is stored"
    return f"{kept[-1]} to {kept[0]} are stored; see 'levada diff {page.url}'"


def _site_notes(collection: Collection, page: PageRecord, now: float) -> list[str]:
    from levada.cli.duration import duration, relative

    site = collection.store.site(page.site)
    if site is None:
        return []
    notes = []
    if site.rest_until > now:
        again = relative(site.rest_until, now)
        notes.append(f"{page.site} rests after {site.failures} failures in a row: asked again {again}")
    if site.delay is not None:
        notes.append(f"{page.site} asks for {duration(site.delay)} between two requests")
    if verdict := _robots_verdict(collection, page, site):
        notes.append(verdict)
    return notes


def _robots_verdict(collection: Collection, page: PageRecord, site: SiteRecord) -> str | None:
    """What the stored robots.txt says of this page; None if it may be fetched or nothing is stored."""
    from levada.cli.duration import moment
    from levada.pages.robots import RobotsRules
    from levada.pages.urls import scheme_of

    record = dict(site.robots).get(scheme_of(page.url))
    if record is None:
        return None
    read = f"robots.txt of {page.site}, read {moment(record.fetched_at)},"
    if record.trouble:
        return f"robots.txt of {page.site} could not be had ({record.trouble}): nothing is fetched until it can"
    agent = collection.settings.politeness.agent
    allowed = RobotsRules.parse(record.text).allows(page.url, agent)
    return None if allowed else f"{read} does not allow this page for {agent!r}"


def _facts(collection: Collection, page: PageRecord) -> dict[str, Any]:
    from levada.cli.addresses import url_of
    from levada.cli.duration import iso
    from levada.cli.reckoning import account, last_step

    now = collection.clock.now()
    site = collection.store.site(page.site)
    step = last_step(page, collection.settings.revisit)
    return {
        "url": page.url,
        "site": page.site,
        "kind": page.kind,
        "state": page.state,
        "reason": page.reason,
        "how": page.how,
        "found_at": iso(page.found_at),
        "found_on": url_of(collection, page.found_on) if page.found_on is not None else None,
        "depth": page.depth,
        "now": iso(now),
        "visits": page.visits,
        "history": [
            {"at": iso(visit.at), "outcome": visit.outcome.name.lower(), "similarity": visit.similarity}
            for visit in page.history
        ],
        "failures": page.failures,
        "interval": page.interval,
        "previous_interval": step.before if step else None,
        "previous_interval_exact": step.exact if step else None,
        "next_visit": iso(page.next_visit),
        "next_visit_in": None if page.next_visit is None else page.next_visit - now,
        "because": account(page, collection.settings.revisit, now),
        "versions": [each.version for each in collection.store.versions(page.url)],
        "site_rests_until": iso(site.rest_until) if site and site.rest_until > now else None,
        "site_notes": _site_notes(collection, page, now),
    }
