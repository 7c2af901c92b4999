"""`levada search`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from levada.cli.logs import tell, tell_partial
from levada.cli.options import (
    CollectionOption,
    JsonOption,
    OptionalDataOption,
    ServerOption,
    environment_folder,
    print_found,
)
from levada.cli.terminal import printer
from levada.core.durations import iso, relative
from levada.core.errors import UsageError
from levada.core.words import harmless, line

if TYPE_CHECKING:
    from rich.text import Text

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
    sort: Annotated[
        str,
        typer.Option(metavar="ORDER", help="relevance; changed or checked: the newest first."),
    ] = "relevance",
    facets: Annotated[bool, typer.Option("--facets", help="Count the pages by site, language, type and time.")] = False,
    one_per: Annotated[
        str, typer.Option(metavar="WHAT", help="One hit for each site, or for all copies of a text: site or copies.")
    ] = "",
    capture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append the query to this log of queries.")
    ] = None,
    store: ServerOption = None,
    collection: CollectionOption = None,
    data: OptionalDataOption = None,
    json: JsonOption = False,
) -> None:
    """Finds stored pages by their words, the best first.

    Words are found in all their forms, whatever their case and accents. Pages with all of them come first; if fewer
    than ten have all, pages with some follow. A word with a typing error finds what it probably means. Words such as
    "the" do not decide what is found. Put the whole query in single quotes if it holds a minus, double quotes or
    parentheses, and -- before it if it begins with a minus.

    ```
    ferry AND vapur         both, and no page with one only
    "sea bus"               these words in this order, as they stand
    "ferry island"~5        near each other: at most 5 words between them
    ferry OR vapur          either
    (ferry pier) OR vapur   both of these, or that
    fresh*                  every word that begins so (two letters at least)
    -bridge, NOT bridge     not this
    title:ferry url:2026    in the title, in the address
    site:example.org        of this host or one below it
    lang:tr                 in this language
    since:7d until:24h      changed since, and up to then (m, h, d, w, or 2026-01-31)
    type:pdf                what kind of file: html, pdf, docx, xlsx, pptx, odt, epub, csv, json, xml, text
    type:Product brand:acme price:<100      what pages describe for machines: also name:, author:,
    published:>2026-01-31 rating:>=4        location:, starts:, and data.PROPERTY: of schema.org
    ```

    Examples:

    ```
    levada search istanbul vapur
    levada search '"sea bus" site:example.org -bridge' --limit 5
    levada search 'fresh*'
    levada search '(ferry OR vapur) -title:news' --sort changed
    levada search istanbul --facets --one-per site
    levada search 'timetable type:pdf'
    levada search 'type:Product price:<100 brand:acme'
    levada search 'price since:24h' --json
    levada search istanbul --store postgresql://levada@db.example/levada
    ```
    """
    import levada
    from levada.core.search_records import Query

    if sort not in _SORTS:
        raise UsageError(f"--sort must be {', '.join(_SORTS[:-1])} or {_SORTS[-1]}, not {sort}")
    if one_per not in _ONE_PER:
        raise UsageError(f"--one-per must be site or copies, not {one_per}")
    typed = line(" ".join(words))
    first = (page - 1) * limit
    with _folder(data, store, collection) as folder, levada.open(folder, create=False) as opened:
        counted = "all" if facets else ""
        hits = opened.search(typed, limit=limit, offset=first, sort=sort, facets=counted, one_per=one_per)
        now = opened.now()
        away = opened.unreachable()
    tell_partial(away, "what it holds is shown without excerpts, and may be old")
    if capture is not None:
        _capture(Query(typed, limit, first, now), capture)
    partial = {"partial": away} if away else {}
    for note in hits.notes:
        tell(note, logging.WARNING)
    facts = {
        "total": hits.total,
        "hits": [_facts(hit) for hit in hits.hits],
        "did_you_mean": hits.did_you_mean or None,
        "notes": list(hits.notes),
        "facets": hits.facets,
        **partial,
    }
    beyond = f"there is no page {page} of hits: {hits.total:,} were found for {typed}"
    meant = f": did you mean {line(hits.did_you_mean)}?" if hits.did_you_mean else ""
    nothing = beyond if hits.total else f"nothing found for {typed}{meant}"
    print_found(json, facts, hits.hits, nothing, _print, hits, first, now)


@contextmanager
def _folder(data: Path | None, store: str | None, collection: str | None) -> Iterator[Path]:
    """The folder to search in; one that is named counts for more than a server."""
    if collection is not None and store is None:
        raise UsageError("--collection names one of several on a server: name that with --store")
    named = data or environment_folder()
    if named is not None or store is None:
        yield named or Path("levada-data")
        return
    from levada.collection.storage.mirror import mirrored

    with mirrored(store, collection) as mirror:
        yield mirror.path


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
    if hits.did_you_mean:
        out.print(Text.assemble("did you mean ", (line(hits.did_you_mean), "bold"), "?"))
        out.print()
    for number, hit in enumerate(hits.hits, first + 1):
        out.print(Text.assemble((f"{number:>3}. ", "dim"), _title(hit)))
        snippet = Text.assemble(*((harmless(piece), "bold" if asked else "") for piece, asked in hit.snippet))
        checked = "" if hit.checked_at is None else f"checked {relative(hit.checked_at, now)}"
        about = (hit.site, hit.language, f"changed {relative(hit.changed_at, now)}", checked)
        parts = [Text(hit.url, "green"), snippet, Text(" · ".join(filter(None, about)), "dim"), *_others(hit)]
        for each in parts:
            if out.is_terminal and len(each) > 0:
                out.print(Padding(each, (0, 0, 0, 5)), soft_wrap=False)
            elif len(each) > 0:
                out.print(Text("     ") + each)
        out.print()
    last = first + len(hits.hits)
    shown = "" if last - first == hits.total else f", {first + 1:,} to {last:,} shown"
    out.print(f"{hits.total:,} found{shown}", style="dim")
    for name, counts in hits.facets.items():
        some = [value for value in counts if value.count]
        if some:
            out.print()
            out.print(Text(_FACETS[name], "bold"))
        for value in some:
            out.print(Text(f"{value.count:>9,}  {line(value.filter)}"))


_SORTS = ("relevance", "changed", "checked")
_ONE_PER = ("", "site", "copies")
_FACETS = {"site": "by site", "language": "by language", "type": "by type", "time": "by time of the last change"}
_SHOWN_OTHERS = 3


def _title(hit: Hit) -> Text:
    from rich.text import Text

    if not line(hit.title):
        return Text("(no title)", "bold cyan")
    title = Text.assemble(
        *((harmless(piece), "bold cyan underline" if asked else "bold cyan") for piece, asked in hit.title_pieces)
    )
    title.truncate(200, overflow="ellipsis")
    return title


def _others(hit: Hit) -> list[Text]:
    """The pages that the hit stands for."""
    from rich.text import Text

    shown = [Text(f"+ {line(each.url)}", "dim") for each in hit.others[:_SHOWN_OTHERS]]
    rest = hit.more - len(shown)
    return [*shown, Text(f"+ {rest:,} more", "dim")] if rest else shown


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
        "title_pieces": [{"text": piece, "asked": asked} for piece, asked in hit.title_pieces],
        "checked_at": iso(hit.checked_at),
        "more": hit.more,
        "others": [
            {"url": each.url, "site": each.site, "title": each.title, "changed_at": iso(each.changed_at)}
            for each in hit.others
        ],
    }
