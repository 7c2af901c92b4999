"""levada crawl: fetch what is due, follow what is found, keep it fresh."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import ConfigOption, DataOption, JsonOption, print_json

if TYPE_CHECKING:
    from levada.flow.settings import Settings

__all__ = ["read_settings", "register"]


def register(app: typer.Typer) -> None:
    app.command("crawl")(crawl)


def crawl(
    urls: Annotated[list[str] | None, typer.Argument(metavar="URL", help="Where to start.")] = None,
    data: DataOption = Path("levada-data"),
    config: ConfigOption = None,
    once: Annotated[
        bool, typer.Option("--once", help="Visit all that is due or newly found once, then end.")
    ] = False,
    max_pages: Annotated[
        int | None, typer.Option("--max-pages", min=1, metavar="N", help="End after N visits.")
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option("--scope", metavar="sites|any", help="Stay on the start sites, or follow any link."),
    ] = None,
    delay: Annotated[
        float | None, typer.Option("--delay", min=0, metavar="SECONDS", help="Between two requests to a site.")
    ] = None,
    per_hour: Annotated[
        int | None, typer.Option("--per-hour", min=1, metavar="N", help="Budget: fetches per hour, in all.")
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Open the dashboard beside it, on this machine.")] = False,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="P", help="For --serve; another if it is taken.")
    ] = 8400,
    json: JsonOption = False,
) -> None:
    """Crawls from the URLs given, keeps every page, and comes back when it is worth it.

    Runs until Ctrl-C. The same command goes on where it was, however it ended; without URLs it goes on with what
    the data folder holds.

    Examples:

        levada crawl https://example.org

        levada crawl example.org example.net --once --max-pages 500

        levada crawl --data news --config news.toml --per-hour 2000

        levada crawl https://example.org --serve

        levada crawl https://example.org --once --json > report.json
    """
    from levada.assemble.crawling import seeds
    from levada.assemble.folder import DataFolder
    from levada.cli.beside import served_beside
    from levada.cli.logs import tell
    from levada.cli.running import INTERRUPTED, run_crawl
    from levada.cli.start_trouble import tell_trouble
    from levada.errors import UsageError

    settings = _overridden(read_settings(config), scope, delay, per_hour)
    folder = DataFolder(data)
    start = seeds(urls or [])
    if not start and not folder.exists():
        raise UsageError("where to start? levada crawl https://example.org")
    with served_beside(folder, port=port, wanted=serve) as address:
        if address:
            tell(f"watch it at {address}", logging.INFO)
        outcome = run_crawl(folder, settings, start, once=once, max_pages=max_pages, quiet=json)
    if json:
        print_json(outcome)
    if outcome.stopped == "interrupted":
        # Ctrl-C is how a crawl that goes on for ever ends; one that was to end by itself was cut short.
        raise typer.Exit(INTERRUPTED if once or max_pages else 0)
    tell_trouble(folder, start)


def read_settings(config: Path | None) -> Settings:
    """The file that was named, or levada.toml if it is here, or the defaults."""
    from levada.flow.settings import Settings, load_settings

    if config is None and not Path("levada.toml").exists():
        return Settings()
    return load_settings(config or Path("levada.toml"))


def _overridden(settings: Settings, scope: str | None, delay: float | None, per_hour: int | None) -> Settings:
    import msgspec

    from levada.flow.settings import convert_settings

    values = msgspec.to_builtins(settings)
    for section, key, value in (
        ("crawl", "scope", scope),
        ("politeness", "delay", delay),
        ("budget", "per_hour", per_hour),
    ):
        if value is not None:
            values[section][key] = value
    return convert_settings(values, "a flag")
