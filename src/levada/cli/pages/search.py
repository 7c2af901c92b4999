"""`levada search`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from levada.cli.logs import tell
from levada.cli.options import DataOption, JsonOption, print_found
from levada.cli.terminal import printer
from levada.core.durations import iso, relative
from levada.core.errors import UsageError
from levada.core.words import harmless, line, shortened

if TYPE_CHECKING:
    from levada.core.search_records import Hit, Hits, Query


class MinusWordsCommand(TyperCommand):
    """A command whose arguments are search words: `-word` is refused with the way to write it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with_value = {name for param in self.params for name in param.opts if not getattr(param, "is_flag", False)}
        typed = list(_before_dashes(args, with_value))
        if minus := next((word for word in typed if _is_excluded(word, ctx.help_option_names)), None):
            query = " ".join(quote(word) for word in typed if not word.startswith("--"))
            raise UsageError(
                f"{minus!r} reads like an option: write options first and then --, as in levada {self.name} -- {query}"
            )
        return super().parse_args(ctx, args)


COMMAND_CLASS = MinusWordsCommand


def _before_dashes(args: Iterable[str], with_value: set[str]) -> Iterator[str]:
    """Words and options up to `--`, without the values of options."""
    words = iter(args)
    for word in words:
        if word == "--":
            return
        yield word
        if word in with_value:
            next(words, None)


def _is_excluded(word: str, help_names: Iterable[str]) -> bool:
    return len(word) > 1 and word[0] == "-" != word[1] and word not in help_names


def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What to look for.")],
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Hits to show.")] = 10,
    page: Annotated[int, typer.Option(metavar="K", min=1, help="The K-th page of N hits.")] = 1,
    capture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append the query to this log of queries.")
    ] = None,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Finds stored pages by their words, the best first.

    Words are found in all their forms, whatever their case and accents. Pages with all of them come first; if fewer
    than ten have all, pages with some follow. Words such as "the" do not decide what is found. Put the whole query in
    single quotes if it holds a minus or double quotes, and -- before it if it begins with a minus.

    ```
    ferry AND vapur         both, and no page with one only
    "sea bus"               these words in this order, as they stand
    ferry OR vapur          either
    fresh*                  every word that begins so (two letters at least)
    -bridge, NOT bridge     not this
    site:example.org        of this host or one below it
    lang:tr                 in this language
    since:7d                changed since (m, h, d, w, or 2026-01-31)
    type:Product brand:acme price:<100      what pages describe for machines: also name:, author:,
    published:>2026-01-31 rating:>=4        location:, starts:, and data.PROPERTY: of schema.org
    ```

    Examples:

    ```
    levada search istanbul vapur
    levada search '"sea bus" site:example.org -bridge' --limit 5
    levada search 'fresh*'
    levada search 'type:Product price:<100 brand:acme'
    levada search 'price since:24h' --json
    ```
    """
    import levada
    from levada.core.search_records import Query

    typed = line(" ".join(words))
    first = (page - 1) * limit
    with levada.open(data, create=False) as collection:
        hits, now = collection.search(typed, limit=limit, offset=first), collection.now()
        away = collection.unreachable()
    for sentence in away:
        tell(f"{sentence}; what it holds is shown without excerpts, and may be old", logging.WARNING)
    if capture is not None:
        _capture(Query(typed, limit, first, now), capture)
    partial = {"partial": away} if away else {}
    facts = {"total": hits.total, "hits": [_facts(hit) for hit in hits.hits], **partial}
    beyond = f"there is no page {page} of hits: {hits.total:,} were found for {typed}"
    nothing = beyond if hits.total else f"nothing found for {typed}"
    print_found(json, facts, hits.hits, nothing, _print, hits, first, now)


def _capture(query: Query, log: Path) -> None:
    from levada.capture.query_log import SearchCapture

    capture = SearchCapture(log)
    capture.search(query)
    capture.close()
    if capture.lost:
        tell(f"the query could not be written to {log}", logging.WARNING)


def _print(hits: Hits, first: int, now: float) -> None:
    from rich.padding import Padding
    from rich.text import Text

    out = printer()
    for number, hit in enumerate(hits.hits, first + 1):
        title = shortened(line(hit.title), 200) or "(no title)"
        out.print(Text.assemble((f"{number:>3}. ", "dim"), (title, "bold cyan")))
        snippet = Text.assemble(*((harmless(piece), "bold" if asked else "") for piece, asked in hit.snippet))
        about = (hit.site, hit.language, f"changed {relative(hit.changed_at, now)}")
        for each in (Text(hit.url, "green"), snippet, Text(" · ".join(filter(None, about)), "dim")):
            if out.is_terminal and len(each) > 0:
                out.print(Padding(each, (0, 0, 0, 5)), soft_wrap=False)
            elif len(each) > 0:
                out.print(Text("     ") + each)
        out.print()
    last = first + len(hits.hits)
    shown = "" if last - first == hits.total else f", {first + 1:,} to {last:,} shown"
    out.print(f"{hits.total:,} found{shown}", style="dim")


def _facts(hit: Hit) -> dict[str, Any]:
    return {
        "url": hit.url,
        "site": hit.site,
        "title": hit.title,
        "score": hit.score,
        "language": hit.language,
        "changed_at": iso(hit.changed_at),
        "page": hit.page or None,
        "snippet": [{"text": piece, "asked": asked} for piece, asked in hit.snippet],
    }
