"""`levada try`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levada.cli.given import given_settings
from levada.cli.options import DataOption, JsonOption, print_json
from levada.cli.terminal import printer
from levada.core.durations import moment
from levada.core.errors import UsageError
from levada.core.words import line, paragraphs, plural, shortened

if TYPE_CHECKING:
    from rich.console import Console

    from levada.collection.site_rules.trials import EntryTrial, ReadingTrial, RuleTrial
    from levada.core.configuration.kept import SettingChange

_MOST_LINES = 25
_LONGEST = 200
_VERBS = {"select": "keeps", "remove": "takes away", "ignore": "leaves out"}


def try_(
    url: Annotated[str, typer.Argument(metavar="URL", help="The page; https:// may be left out.")],
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="SELECTOR", help="What counts: CSS, xpath:... or json:...; may be repeated."),
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="SELECTOR", help="What goes before anything is read; may be repeated.")
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT", help="What is not compared: dates, numbers, order, repeats, a text or re:...; repeatable."
        ),
    ] = None,
    trigger: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRIGGER", help="What must happen for a change to be told: 'appears: In stock', 'price below 100'."
        ),
    ] = None,
    live: Annotated[bool, typer.Option("--live/--no-live", help="With or without fetching the page now.")] = True,
    stored: Annotated[bool, typer.Option("--stored/--no-stored", help="With or without the stored page.")] = True,
    save: Annotated[bool, typer.Option("--save", help="Make it the rule of this page.")] = False,
    match: Annotated[
        str, typer.Option(metavar="MATCH", help="With --save: of this site or path instead, such as example.org/shop/.")
    ] = "",
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Shows what a rule would keep of a page, as it is stored and as it is now, before it is set.

    The live page is fetched within robots.txt and the address guard, and nothing of it is stored. It need not be a
    page of the collection, and there need not be a collection. What is not given is as the rules in force have it; an
    empty value ends what they say. --save keeps what was given.

    Exit status: 0 if the rule keeps something, 1 if it finds nothing, 2 if it is wrong, 3 if there is no page to try
    it on.

    Examples:

    ```
    levada try https://shop.example/lamp
    levada try shop.example/lamp --select 'main .price' --trigger 'price below 100'
    levada try shop.example/lamp --remove .advertisement --ignore dates --ignore 're:seen by .*' --no-live
    levada try shop.example/lamp --select 'main .price' --save --match shop.example/
    levada try api.example/lamp.json --select 'json:$.price' --json
    ```
    """
    if match and not save:
        raise UsageError("--match says what --save is for: add --save")
    given = {"select": select, "remove": remove, "ignore": ignore, "trigger": trigger}
    keys = {key: [each for each in entries if each] for key, entries in given.items() if entries}
    if save and not keys:
        raise UsageError("--save keeps what is given: add --select, --remove, --ignore or --trigger")
    trial = _tried(data, url, keys, stored=stored, live=live)
    changes = _saved(data, match or trial.match, keys) if save and trial.finds else []
    if json:
        print_json({**trial.facts(), **({"saved": changes} if save else {})})
    else:
        _show(printer(), trial)
        for each in changes:
            print(f"saved: {each}")
        if save and not trial.finds:
            print("not saved, because it finds nothing")
        elif save and not changes:
            print("nothing changed: the rule says so already")
    if not trial.finds:
        raise typer.Exit(1)


def _tried(data: Path, url: str, keys: dict[str, list[str]], *, stored: bool, live: bool) -> RuleTrial:
    import asyncio

    import levada
    from levada.core.folder import DataFolder

    if DataFolder(data).exists():
        with levada.open(data, create=False) as collection:
            return collection.try_rule(url, stored=stored, live=live, **keys)
    from levada.collection.site_rules.trials import tried

    return asyncio.run(tried(url, keys, _settings_here(), None, stored=stored, live=live))


def _settings_here() -> Any:
    """The settings that a new collection would have here."""
    from levada.core.configuration.layers import resolve

    return resolve({}, given_settings(None), os.environ).settings


def _saved(data: Path, match: str, keys: dict[str, list[str]]) -> list[SettingChange]:
    import levada
    from levada.core.folder import DataFolder

    settings = None if DataFolder(data).exists() else _settings_here()
    with levada.open(data, settings) as collection:
        return collection.set_rule(match, **keys)


def _show(out: Console, trial: RuleTrial) -> None:
    from levada.cli.pages.diff import unified
    from levada.cli.sites import rule_words

    out.print(line(trial.url), style="bold")
    out.print(f"rule: {line(rule_words(trial.rule))}" if trial.rule else "no rule: the main text counts")
    for reading, name, why_not in (
        (trial.stored, "stored", trial.why_not_stored),
        (trial.live, "live", trial.why_not_live),
    ):
        out.print()
        if reading is None:
            out.print(f"{name}: {line(why_not)}", style="yellow")
        elif reading is trial.live and trial.stored is not None and _is_same(trial.stored, reading):
            out.print("live: the same", style="green")
        else:
            _show_reading(out, reading, trial.url)
    if trial.hunks:
        out.print()
        for each in unified(trial.hunks):
            out.print(each)
    if verdict := _verdict(trial):
        out.print()
        out.print(verdict)


def _is_same(stored: ReadingTrial, live: ReadingTrial) -> bool:
    return (stored.text, stored.reason) == (live.text, live.reason)


def _show_reading(out: Console, reading: ReadingTrial, url: str) -> None:
    when = f"stored, version {reading.version}, {moment(reading.at)}"
    out.print(f"{when if reading.version else 'live'}: {line(reading.title) or '(no title)'}", style="green")
    if reading.url != url:
        out.print(f"  redirected to {line(reading.url)}", style="dim")
    if reading.reason is not None:
        out.print(f"  nothing would be stored of it ({reading.reason})", style="yellow")
    lines = [each for each in paragraphs(reading.text) if each.strip()]
    for each in lines[:_MOST_LINES]:
        out.print(f"  {shortened(each, _LONGEST)}")
    if len(lines) > _MOST_LINES:
        out.print(f"  and {plural(len(lines) - _MOST_LINES, 'more line')}: --json has all", style="dim")
    for entry in reading.entries:
        out.print(_entry_words(entry), style="dim" if entry.found else "yellow")


def _entry_words(entry: EntryTrial) -> str:
    head = f"  {entry.key} {line(entry.entry)}:"
    if entry.key == "trigger":
        return f"{head} {'holds' if entry.found else 'does not hold'}"
    if not entry.found:
        return f"{head} finds nothing{f': {entry.note}' if entry.note else ''}"
    examples = ", ".join(repr(shortened(line(each), 60)) for each in entry.examples[:3])
    what = "piece" if entry.key == "ignore" else "line"
    return f"{head} {_VERBS[entry.key]} {plural(entry.found, what)}, such as {examples}"


def _verdict(trial: RuleTrial) -> str:
    """What a visit would make of the live page."""
    if trial.changed is None:
        return ""
    if trial.live is not None and trial.live.reason is not None:
        return "By this rule nothing of the live page is stored, and what is stored stays."
    if not trial.changed:
        return "By this rule the page has not changed: what differs does not count." if trial.hunks else ""
    if trial.told:
        return "By this rule the live page is a new version, and it is told."
    return "By this rule the live page is a new version, and nobody is told: no trigger is met."
