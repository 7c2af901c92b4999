"""`levada sites`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levada.cli.logs import tell_partial
from levada.cli.options import DataOption, JsonOption, print_json
from levada.core.durations import moment
from levada.core.errors import NotFound, UsageError
from levada.core.words import line, plural

if TYPE_CHECKING:
    from levada.collection.collection import Collection
    from levada.collection.site_rules.reports import RuleReport, SiteReport
    from levada.collection.site_rules.scope import ScopeTrial
    from levada.core.configuration.kept import SettingChange

_SET, _UNSET = "set", "unset"


def sites(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SITE|set MATCH KEY=VALUE|unset MATCH [KEY]]...",
            help="Which sites to show, or which rule to change; default: show all.",
        ),
    ] = None,
    out_of_scope: Annotated[
        bool, typer.Option("--out-of-scope", help="List the known pages that the rules keep out now.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say which known pages 'set' would keep out, and change nothing.")
    ] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="At most N sites, those with the most pages.")] = 50,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Shows each site with its pages, its rule and what that keeps out, and changes the rules.

    MATCH is a host, '*.example.org' or '*', and may have the beginning of a path. The keys are those of `[[site]]` in
    docs/settings.md; a list is written a,b or ["a", "b"]. A running crawl takes a changed rule up within a second.

    Examples:

    ```
    levada sites
    levada sites example.org --json
    levada sites example.org --out-of-scope
    levada sites set example.org 'exclude=*.pdf,/archive/*' depth=3
    levada sites set example.org 'drop_query=utm_*,sid' per_hour=60 'hours=weekdays 8-18 Europe/Istanbul'
    levada sites set example.org/docs/ accept_language=tr
    levada sites set example.org 'include=/docs/*' --dry-run
    levada sites unset example.org depth
    levada sites unset example.org
    ```
    """
    asked = list(words or ())
    if asked[:1] in ([_SET], [_UNSET]):
        _change(data, asked[0], asked[1:], json, dry_run=dry_run)
    else:
        _show(data, asked, limit, json, listed=out_of_scope)


def _show(data: Path, names: Sequence[str], limit: int, json: bool, *, listed: bool) -> None:
    import levada

    with levada.open(data, create=False) as collection:
        rules, reports = collection.rules(), collection.site_reports(*names)
        tell_partial(collection.unreachable(), "its sites and pages are missing here")
    if unknown := set(map(str.lower, names)) - {report.site for report in reports}:
        raise NotFound(f"no site {line(min(unknown))} is known in {data}")
    if listed:
        _list(data, names, json)
        return
    largest = sorted(reports, key=lambda report: (-report.pages, report.site))
    shown = largest if names else largest[:limit]
    if json:
        print_json({"sites": shown, "more": len(reports) - len(shown), "rules": rules})
        return
    _print_sites(shown, rules, len(reports) - len(shown), limit)
    _print_rules(rules)


def _print_sites(shown: Sequence[SiteReport], rules: Sequence[RuleReport], more: int, limit: int) -> None:
    from rich.text import Text

    from levada.cli.terminal import printer

    out, keys = printer(), {rule.match: rule.keys for rule in rules}
    width = max((len(each.site) for each in shown), default=0)
    for each in shown:
        state = "  dropped" if each.dropped else "" if each.admitted else "  linked"
        out.print(
            Text.assemble((f"{line(each.site):<{width}}", "bold"), f"  {plural(each.pages, 'page')}", (state, "dim"))
        )
        for match in each.matches:
            out.print(Text(f"  rule of {line(match)}: {line(rule_words(keys[match]))}", "cyan"))
        if each.opens_at is not None:
            out.print(Text(f"  outside its hours: it is asked again from {moment(each.opens_at)} on", "yellow"))
        if each.note:
            out.print(Text(f"  {each.note}", "yellow"))
        if each.out_of_scope:
            least = "at least " if each.out_of_scope_is_least else ""
            out.print(
                Text(
                    f"  {least}{plural(each.out_of_scope, 'page')} out of scope: visited no more, what is stored stays;"
                    f" 'levada sites {line(each.site)} --out-of-scope' lists them,"
                    f" 'levada forget --out-of-scope --site {line(each.site)}' deletes them",
                    "yellow",
                )
            )
        if each.links_kept_out:
            links = f"{plural(each.links_kept_out, 'link')} kept out, such as {line(each.example)}"
            out.print(Text(f"  {links}", "dim"))
    if not shown:
        out.print("No site is known yet: add one with 'levada add URL'.")
    if more:
        out.print(Text(f"and {plural(more, 'site')} more: --limit {limit + more} shows all", "dim"))


def _list(data: Path, names: Sequence[str], json: bool) -> None:
    import levada
    from levada.cli.terminal import printer

    with levada.open(data, create=False) as collection:
        found = (page for name in names or [""] for page in collection.out_of_scope(name))
        if json:
            print_json({"pages": list(found)})
            return
        out = printer()
        count = stored = 0
        for page in found:
            count += 1
            stored += page.stored
            out.print(f"{line(page.url)}  ({page.key} of {line(page.match)})")
    named = "".join(f" --site {line(name)}" for name in names[:1]) if len(names) < 2 else ""
    print(
        f"{plural(count, 'page')} out of scope, {stored:,} with a stored version"
        + (f": 'levada forget --out-of-scope{named}' deletes them" if count else "")
    )


def _print_rules(rules: Sequence[RuleReport]) -> None:
    from rich.text import Text

    from levada.cli.terminal import printer

    for rule in rules:
        if rule.note:
            printer().print(
                Text(f"the rule of {line(rule.match)} {rule.note}: {line(rule_words(rule.keys))}", "yellow")
            )
        if rule.no_match:
            printer().print(Text(_no_match_words(rule), "yellow"))


def _no_match_words(rule: RuleReport) -> str:
    where = f"{rule.no_match:,} of {plural(rule.selected_on, 'page')}, such as {line(rule.no_match_example)}"
    hint = f"'levada try {line(rule.no_match_example)}' shows what is there"
    return f"select of the rule of {line(rule.match)} finds nothing on {where}: {hint}"


def rule_words(keys: Mapping[str, Any]) -> str:
    """The keys of a rule as they stand in a levada.toml, on one line."""
    from levada.core.configuration.values import shown

    return ", ".join(f"{key} = {shown(value)}" for key, value in keys.items()) or "no keys"


def _change(data: Path, verb: str, words: Sequence[str], json: bool, *, dry_run: bool) -> None:
    import levada
    from levada.collection.site_rules.changes import removal, rule_changes
    from levada.core.configuration.values import parse_value

    if not words or (verb == _SET and len(words) < 2):
        example = "example.org depth=2" if verb == _SET else "example.org"
        raise UsageError(f"name what it is for, as in: levada sites {verb} {example}")
    match, *rest = words
    keys: dict[str, Any] = {}
    for word in rest if verb == _SET else ():
        key, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"{word[:100]} needs a value, as in: levada sites set {match} {word[:100]}=VALUE")
        rule_changes(match, {key: None})
        keys[key] = parse_value(f"site.{match}.{key}", text)
    with levada.open(data, create=False) as collection:
        changes = rule_changes(match, keys) if verb == _SET else removal(collection.settings, match, rest)
        trial = collection.try_scope(match, **{name.rpartition(".")[2]: value for name, value in changes.items()})
        if dry_run:
            _print_trial(trial, json)
            return
        done = collection.change_settings(changes, by="levada sites")
        crawling = collection.live() is not None
        rules = collection.rules()
    if json:
        print_json({"changes": done, "crawling": crawling, "rules": rules, "out_of_scope": trial.pages})
        return
    for each in done:
        print(_said(each), "; the running crawl takes it up within a second" if crawling else "", sep="")
    if not done:
        print("nothing changed: the rule says so already")
    print_out_of_scope(trial)
    _print_rules([rule for rule in rules if any(each.key.startswith(f"site.{rule.match}.") for each in done)])


def trials_of(collection: Collection, changes: Mapping[str, Any]) -> Iterator[ScopeTrial]:
    """What these changes of rules keep out of the known pages, rule by rule. Ask before they are made."""
    from levada.collection.site_rules.changes import by_match

    for match, keys in by_match(changes).items():
        yield collection.try_scope(match, **keys)


def print_out_of_scope(trial: ScopeTrial) -> None:
    """Say which pages a change has put out of scope, if any."""
    if not trial.pages:
        return
    least = "at least " if trial.is_least else ""
    named = "" if trial.match.startswith("*") else f" {line(trial.match.partition('/')[0])}"
    print(
        f"{least}{plural(trial.pages, 'known page')} out of scope now, such as {line(trial.examples[0].url)}: visited "
        f"no more, what is stored stays; 'levada sites{named} --out-of-scope' lists them"
    )


def _print_trial(trial: ScopeTrial, json: bool) -> None:
    if json:
        print_json({"trial": trial})
        return
    least = "at least " if trial.is_least else ""
    print(
        f"would keep out {least}{plural(trial.pages, 'page')} more, of {trial.looked_at:,} known on "
        f"{plural(trial.sites, 'site')}; nothing was changed"
    )
    for page in trial.examples:
        print(f"  {line(page.url)}  ({page.key})")


def _said(change: SettingChange) -> str:
    from levada.core.configuration.values import shown

    match, _, key = change.key.removeprefix("site.").rpartition(".")
    before = "" if change.before is None else f"{shown(change.before)} -> "
    return f"{match}: {key} = {before}{shown(change.value)}"
