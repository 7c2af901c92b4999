"""`levada demo`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from levada.cli.options import JsonOption, print_result


def demo(
    seconds: Annotated[float, typer.Option(min=1, metavar="N", help="How long to crawl.")] = 45.0,
    speed: Annotated[
        float | None,
        typer.Option(
            min=0.001, max=1000, metavar="X", help="Seconds of its time per second; 500, or 1 with --serve-only."
        ),
    ] = None,
    pages: Annotated[int | None, typer.Option(min=1, max=1_000_000, metavar="N", help="Size of the web.")] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Another seed, another web.")] = 1,
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="Where its collection goes; an earlier demo's is replaced.")
    ] = Path("levada-demo-data"),
    serve_only: Annotated[bool, typer.Option("--serve-only", help="Only serve the web, until Ctrl-C.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="P", help="For --serve-only.")] = 0,
    page_bytes: Annotated[
        int, typer.Option(min=2000, max=10_000_000, metavar="B", help="About how large a page is.")
    ] = 6000,
    hostile: Annotated[bool, typer.Option("--hostile/--no-hostile", help="With the hostile corner.")] = True,
    burst: Annotated[
        bool | None,
        typer.Option("--burst/--no-burst", help="With a gazette, whose issues are much at once; not if only served."),
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Without the dashboard.")] = False,
    json: JsonOption = False,
) -> None:
    """Crawls a small web that comes with Levada, offline: 23 sites that change at known rates, and a hostile one.

    The web knows every change, so the demo can say how fresh the collection actually was, beside a crawler that
    visits in turn with as many fetches.

    Examples:

        levada demo

        levada demo --seconds 20 --json

        levada demo --serve-only --port 8080 --speed 100 --pages 5000
    """
    with_burst = bool(burst) if serve_only else burst is not False
    options = ["--port", str(port if serve_only else 0), "--speed", str(speed or (1.0 if serve_only else 500.0))]
    options += ["--seed", str(seed), "--page-bytes", str(page_bytes), "--hostile" if hostile else "--no-hostile"]
    options += ["--burst" if with_burst else "--no-burst", *(["--pages", str(pages)] if pages is not None else [])]
    if serve_only:
        from levada.demo.server import main as serve

        raise typer.Exit(serve(options))
    from levada.cli.demo.output import print_crawl, print_rest
    from levada.cli.run.crawl import drive, run_loop, served_beside
    from levada.cli.terminal import doing
    from levada.core.folder import DataFolder
    from levada.demo.folder import clear
    from levada.demo.story import crawl_web, look_closer

    clear(DataFolder(data))
    with ExitStack() as busy:

        def step(what: str) -> None:
            busy.close()
            busy.enter_context(doing(what, json))

        with served_beside(data, "--capture", wanted=not no_open and not json) as address:
            if address:
                print(f"watch it at {address}", file=sys.stderr)
            show = partial(drive, quiet=json, hint="Ctrl-C ends it early")
            run = crawl_web(data, seconds, options, drive=show, run=run_loop, on_step=step)
        busy.close()
        if not json:
            print_crawl(run)
        run = look_closer(run, step)
    print_result(json, run.summary(), print_rest, run)
