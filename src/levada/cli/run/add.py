"""`levada add`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from levada.cli.logs import tell
from levada.cli.options import DataOption, JsonOption, print_json
from levada.core.errors import UsageError

_PATTERN = "PATTERN"


def add(
    urls: Annotated[list[str], typer.Argument(metavar="URL", help="Where to start; https:// may be left out.")],
    include: Annotated[
        list[str] | None,
        typer.Option(metavar=_PATTERN, help="Only addresses like this: '/docs/*' or 're:/v[0-9]+/'; may be repeated."),
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar=_PATTERN, help="No addresses like this: '*.pdf'; may be repeated.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE",
            help="'folder': the folder of the URL and all below it; a path such as /docs/; 'site': no such limit.",
        ),
    ] = None,
    depth: Annotated[
        int | None, typer.Option(metavar="N", help="At most N links away from what was added; 0: just that page.")
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Any other key of a rule (docs/settings.md); may be repeated."),
    ] = None,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Adds addresses to crawl, and says what of their sites belongs to the collection.

    What is said here becomes the rule of each address's site: `levada sites` shows it. Patterns are added to those
    that a rule has, everything else replaces what it says. A running crawl takes both up within a second; without
    one, `levada crawl` begins with these addresses. A glob takes along what is below: '/docs/*' is the whole folder.

    Examples:

    ```
    levada add https://example.org --include '/docs/*' --exclude '*.pdf'
    levada add https://example.org/docs/intro --scope folder
    levada add https://example.org/prices --depth 0
    levada add https://example.org --exclude 're:[?&]sort=' --rule accept_language=tr
    ```
    """
    import levada
    from levada.cli.sites import print_out_of_scope, rule_words, trials_of
    from levada.collection.site_rules.changes import notes_on_starts, rules_for_starts
    from levada.collection.starts import seeds, tidied
    from levada.core.configuration.values import parse_value

    keys: dict[str, Any] = {"include": include, "exclude": exclude, "folders": scope, "depth": depth}
    keys = {key: value for key, value in keys.items() if value is not None}
    for each in rule or ():
        key, equals, text = each.partition("=")
        if not equals:
            raise UsageError(f"--rule takes KEY=VALUE, such as --rule accept_language=tr, not {each[:100]!r}")
        keys[key] = parse_value(f"site.*.{key}", text)
    start = seeds(urls)
    with levada.open(data) as collection:
        before = collection.rules() if keys else []
        trials = list(trials_of(collection, rules_for_starts(collection.settings, start, keys)))
        added = collection.add(*urls, **keys)
        notes = notes_on_starts(collection.settings, tidied(start, collection.settings))
        crawling = collection.live() is not None
        changed = [each for each in collection.rules() if each not in before] if keys else []
    if json:
        pages = sum(trial.pages for trial in trials)
        print_json({"added": added, "crawling": crawling, "rules": changed, "notes": notes, "out_of_scope": pages})
        return
    for table in changed:
        print(f"{table.match}: {rule_words(table.keys)}")
    for trial in trials:
        print_out_of_scope(trial)
    known = len(start) - added
    words = "1 address" if added == 1 else f"{added:,} addresses"
    then = "; the running crawl takes it up" if crawling else "; 'levada crawl' begins there" if added else ""
    print(f"{words} added{f', {known:,} known already' if known else ''}{then}")
    for note in notes:
        tell(note, logging.INFO)
