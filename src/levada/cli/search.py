"""`levada search`: which stored pages hold these words?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levada.cli.minus_words import MinusWordsCommand
from levada.cli.options import DataOption, JsonOption, print_json
from levada.errors import NotFound

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from levada.searching import Hit, Hits, Query

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command(cls=MinusWordsCommand)(search)


def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What to look for; several are all wanted.")],
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Hits to show.")] = 10,
    page: Annotated[int, typer.Option(metavar="K", min=1, help="The K-th page of N hits.")] = 1,
    capture: Annotated[
        Path | None, typer.Option("--capture", metavar="FILE", help="Append the query to this log of queries.")
    ] = None,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Finds stored pages by their words, the best first.

    Words are found in all their forms, whatever their case and accents. Put the whole query in single quotes if it
    holds a minus or double quotes, and -- before it if it begins with a minus.

    ```
    "sea bus"               these words in this order, as they stand
    ferry OR vapur          either
    -bridge                 not this
    site:example.org        of this host or one below it
    lang:tr                 in this language
    since:7d                changed since (m, h, d, w, or 2026-01-31)
    ```

    Examples:

    ```
    levada search istanbul vapur
    levada search '"sea bus" site:example.org -bridge' --limit 5
    levada search 'price since:24h' --json
    ```
    """
    from levada.assemble.folder import DataFolder
    from levada.assemble.searching import open_search
    from levada.assemble.stores import unreachable
    from levada.cli.printing import line, printer
    from levada.searching import Query

    typed = line(" ".join(words))
    first = (page - 1) * limit
    with open_search(DataFolder(data)) as (collection, index):
        now = collection.clock.now()
        query = Query(typed, limit=limit, offset=first, now=now)
        hits = index.search(query)
        away = unreachable(collection.store)
    for sentence in away:
        print(f"levada: {sentence}; what it holds is shown without excerpts, and may be old", file=sys.stderr)
    if capture is not None:
        _capture(query, capture)
    if json:
        partial = {"partial": away} if away else {}
        print_json({"total": hits.total, "hits": [_facts(hit) for hit in hits.hits], **partial})
        raise typer.Exit(0 if hits.hits else NotFound.exit_code)
    if not hits.hits:
        raise NotFound(_nothing(typed, hits, page))
    _print(printer(), hits, first, now)


def _capture(query: Query, log: Path) -> None:
    from levada.adapters.search_capture import SearchCapture

    capture = SearchCapture(log)
    capture.search(query)
    capture.close()
    if capture.lost:
        print(f"levada: the query could not be written to {log}", file=sys.stderr)


def _nothing(typed: str, hits: Hits, page: int) -> str:
    if hits.total:
        return f"there is no page {page} of hits: {hits.total:,} were found for {typed}"
    return f"nothing found for {typed}"


def _print(out: Console, hits: Hits, first: int, now: float) -> None:
    from rich.padding import Padding
    from rich.text import Text

    for number, hit in enumerate(hits.hits, first + 1):
        out.print(Text.assemble((f"{number:>3}. ", "dim"), _title(hit)))
        for each in (Text(hit.url, "green"), _snippet(hit), _about(hit, now)):
            if out.is_terminal and len(each) > 0:
                out.print(Padding(each, (0, 0, 0, 5)), soft_wrap=False)
            elif len(each) > 0:
                out.print(Text("     ") + each)
        out.print()
    last = first + len(hits.hits)
    shown = "" if last - first == hits.total else f", {first + 1:,} to {last:,} shown"
    out.print(f"{hits.total:,} found{shown}", style="dim")


def _title(hit: Hit) -> Text:
    from rich.text import Text

    from levada.cli.printing import line, shortened

    return Text(shortened(line(hit.title), 200) or "(no title)", "bold cyan")


def _snippet(hit: Hit) -> Text:
    from rich.text import Text

    from levada.cli.printing import harmless

    return Text.assemble(*((harmless(piece), "bold" if asked else "") for piece, asked in hit.snippet))


def _about(hit: Hit, now: float) -> Text:
    from rich.text import Text

    from levada.telling.duration import relative

    about = [hit.site, hit.language, f"changed {relative(hit.changed_at, now)}"]
    return Text(" · ".join(part for part in about if part), "dim")


def _facts(hit: Hit) -> dict[str, Any]:
    from levada.telling.duration import iso

    return {
        "url": hit.url,
        "site": hit.site,
        "title": hit.title,
        "score": hit.score,
        "language": hit.language,
        "changed_at": iso(hit.changed_at),
        "snippet": [{"text": piece, "asked": asked} for piece, asked in hit.snippet],
    }
