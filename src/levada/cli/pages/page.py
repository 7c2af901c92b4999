"""`levada page`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from levada.cli.options import DataOption, JsonOption, print_json, print_result
from levada.cli.terminal import printer
from levada.core.durations import iso, moment, relative
from levada.core.errors import UsageError
from levada.core.words import line, paragraphs, plural

if TYPE_CHECKING:
    from levada.core.records import Document
    from levada.core.structured import Item, PricePoint


def page(
    url: Annotated[str, typer.Argument(metavar="URL", help="The page; https:// may be left out.")],
    version: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="An earlier one; `levada diff URL --versions` lists them."),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="The main content as Markdown: headings, lists, tables, code, links.")
    ] = False,
    structured: Annotated[
        bool, typer.Option("--structured", help="Its structured data: JSON-LD, microdata, RDFa, OpenGraph; and prices.")
    ] = False,
    screenshot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the picture of a page that a browser rendered, JPEG; -: to stdout."),
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="The body as it was fetched, byte by byte.")] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Shows a stored page: its title, what is known of it, and its text.

    Examples:

    ```
    levada page https://example.org/news
    levada page example.org/news --markdown > news.md
    levada page example.org/news --version 3 --html
    levada page shop.example/thermos --structured
    levada page example.org/news --json
    levada page shop.example/lamps/3 --screenshot lamp.jpg
    ```
    """
    import levada

    if markdown + html + (screenshot is not None) + (structured or json) > 1:
        raise UsageError("choose one of --markdown, --html, --screenshot, --structured and --json")
    with levada.open(data, create=False) as collection:
        document = collection.page(url, version)
        if structured:
            found = structured_facts(document, collection.prices(document.url))
            print_result(json, found, _show_structured, document, found["prices"])
        elif screenshot is not None:
            _write_screenshot(document, screenshot)
        elif html:
            sys.stdout.buffer.write(document.body)
            sys.stdout.buffer.flush()
        elif markdown:
            written = collection.markdown(document.url, document.version)
            sys.stdout.buffer.write(f"{written}\n".encode("utf-8", "replace"))
            sys.stdout.buffer.flush()
        elif json:
            print_json({**_facts(document), "markdown": collection.markdown(document.url, document.version)})
        else:
            _show(document, collection.now())


def _write_screenshot(document: Document, file: Path) -> None:
    from levada.core.errors import NotFound

    if not document.screenshot:
        raise NotFound(
            f"there is no screenshot of version {document.version} of {document.url}: set screenshot=true and render "
            "in the rule of its site, for the versions to come"
        )
    if str(file) == "-":
        sys.stdout.buffer.write(document.screenshot)
        sys.stdout.buffer.flush()
        return
    try:
        file.write_bytes(document.screenshot)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from None


def _facts(document: Document) -> dict[str, object]:
    names = ("url", "site", "version", "title", "language", "charset", "status", "words", "searchable", "gone")
    return {
        **{name: getattr(document, name) for name in names},
        "fetched_at": iso(document.fetched_at),
        "checked_at": iso(document.checked_at),
        "bytes": len(document.body),
        "headers": document.headers,
        **_document_facts(document),
        "items": msgspec.to_builtins(document.data.items),
        "offers": _offers(document),
        "text": document.text,
    }


def _document_facts(document: Document) -> dict[str, object]:
    """What a document says about itself; nothing of a web page."""
    facts = document.facts
    if facts is None:
        return {}
    return {
        "author": facts.author,
        "published": iso(facts.published),
        "modified": iso(facts.modified),
        "pages": facts.pages,
        "left_out": facts.left_out,
    }


def _show(document: Document, now: float) -> None:
    out = printer()
    out.print(line(document.title) or "(no title)", style="bold")
    out.print(document.url)
    gone = "; gone from the web since" if document.gone else ""
    out.print(
        f"version {document.version}, stored {relative(document.fetched_at, now)} ({moment(document.fetched_at)}), "
        f"last seen so {relative(document.checked_at, now)}{gone}"
    )
    hidden = "" if document.searchable else "; asks for noindex, so that no search finds it"
    language = document.language or "unknown"
    out.print(f"{plural(document.words, 'word')}, language {language}, status {document.status}{hidden}")
    for each in _about(document):
        out.print(each)
    out.print()
    for number, each_page in enumerate(document.text.split("\f"), 1):
        if "\f" in document.text:
            out.print(f"p. {number}", style="dim")
        for each in paragraphs(each_page):
            out.print(each)


def _about(document: Document) -> list[str]:
    """What a document says about itself, and what of it is not in the text."""
    facts = document.facts
    if facts is None:
        return []
    parts = (
        f"by {line(facts.author)}" if facts.author else "",
        plural(facts.pages, "page") if facts.pages else "",
        f"written {moment(facts.published)}" if facts.published is not None else "",
        f"modified {moment(facts.modified)}" if facts.modified is not None else "",
    )
    said = ", ".join(filter(None, parts))
    left_out = f"not in the text: {line(facts.left_out)}" if facts.left_out else ""
    return [each for each in (said, left_out) if each]


def _offers(document: Document) -> list[dict[str, str]]:
    return [msgspec.structs.asdict(each) for each in document.data.offers]


def structured_facts(document: Document, prices: list[PricePoint]) -> dict[str, Any]:
    """The structured data of a page as JSON."""
    data = document.data
    points = [{**msgspec.structs.asdict(each), "at": iso(each.at)} for each in prices]
    return {
        "url": document.url,
        "version": document.version,
        "fetched_at": iso(document.fetched_at),
        "items": msgspec.to_builtins(data.items),
        "offers": _offers(document),
        "notes": data.notes,
        "prices": points,
    }


def _show_structured(document: Document, prices: list[dict[str, Any]]) -> None:
    out, data = printer(), document.data
    out.print(line(document.title) or "(no title)", style="bold")
    out.print(f"{document.url}, version {document.version}")
    for item in data.items:
        out.print()
        for each in _item_lines(item, f"{' and '.join(item.type) or 'item'} ({item.source})", 0):
            out.print(each)
    if not data.items:
        out.print("no structured data")
    if prices:
        out.print()
        out.print("prices", style="bold")
        for point in prices:
            price = " ".join(filter(None, (point["price"], point["currency"]))) or "no price"
            out.print(f"{point['at']}  {line(price)}  {line(point['availability'])}".rstrip())
    for note in data.notes:
        out.print(f"note: {line(note)}")


def _item_lines(item: Item, head: str, depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}{line(head)}"
    for name, values in item.properties.items():
        for value in values:
            if isinstance(value, str):
                yield f"{'  ' * (depth + 1)}{line(name)}: {line(value)}"
            else:
                yield from _item_lines(value, f"{name}: {' and '.join(value.type) or 'item'}", depth + 1)
