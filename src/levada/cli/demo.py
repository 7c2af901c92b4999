"""levada demo: the whole story offline, on the bundled web."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from levada.cli.options import JsonOption, print_json

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    seconds: Annotated[float, typer.Option("--seconds", min=1, metavar="N", help="How long to crawl.")] = 45.0,
    speed: Annotated[
        float | None,
        typer.Option(
            "--speed",
            min=0.001,
            max=1000,
            metavar="X",
            help="Seconds of its time per second; 500, or 1 with --serve-only.",
        ),
    ] = None,
    pages: Annotated[
        int | None, typer.Option("--pages", min=1, max=1_000_000, metavar="N", help="Size of the web.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Another seed, another web.")] = 1,
    data: Annotated[
        Path,
        typer.Option("--data", metavar="DIR", help="Where its collection goes; an earlier demo's is replaced."),
    ] = Path("levada-demo-data"),
    serve_only: Annotated[bool, typer.Option("--serve-only", help="Only serve the web, until Ctrl-C.")] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, metavar="P", help="For --serve-only.")] = 0,
    page_bytes: Annotated[
        int, typer.Option("--page-bytes", min=2000, max=10_000_000, metavar="B", help="About how large a page is.")
    ] = 6000,
    hostile: Annotated[bool, typer.Option("--hostile/--no-hostile", help="With the hostile corner.")] = True,
    burst: Annotated[
        bool | None,
        typer.Option(
            "--burst/--no-burst", help="With a gazette, whose issues are much at once; not if only served."
        ),
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Without the dashboard.")] = False,
    json: JsonOption = False,
) -> None:
    """Crawls a small web that comes with Levada, offline: 23 sites that change at known rates, and a hostile one.

    The web knows every change, so it can be told how fresh the collection really was, beside a crawler that
    visits in turn with as many fetches.

    Examples:

        levada demo

        levada demo --seconds 20 --json

        levada demo --serve-only --port 8080 --speed 100 --pages 5000
    """
    if serve_only:
        from levada.demo.server import main as serve

        raise typer.Exit(serve(_server_options(speed or 1.0, pages, seed, page_bytes, hostile, bool(burst), port)))
    from levada.cli.demo_story import crawl_web, look_closer
    from levada.cli.demo_words import told_crawl, told_rest

    options = _server_options(speed or 500.0, pages, seed, page_bytes, hostile, burst is not False, 0)
    story = crawl_web(data, seconds, options, quiet=json, serve=not no_open and not json)
    if not json:
        told_crawl(story)
    story = look_closer(story, quiet=json)
    if json:
        print_json(story.summary())
    else:
        told_rest(story)


def _server_options(
    speed: float, pages: int | None, seed: int, page_bytes: int, hostile: bool, burst: bool, port: int
) -> list[str]:
    options = ["--port", str(port), "--speed", str(speed), "--seed", str(seed), "--page-bytes", str(page_bytes)]
    options.append("--hostile" if hostile else "--no-hostile")
    options.append("--burst" if burst else "--no-burst")
    return options if pages is None else [*options, "--pages", str(pages)]
