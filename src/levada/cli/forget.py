"""`levada forget`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import DataOption, JsonOption, print_result
from levada.cli.terminal import printer, progress_bar
from levada.core.errors import Refused, UsageError
from levada.core.words import plural

if TYPE_CHECKING:
    from levada.collection.forgetting.run import ForgetReport


def forget(
    urls: Annotated[list[str] | None, typer.Argument(metavar="URL", help="Pages to forget.")] = None,
    site: Annotated[str, typer.Option(metavar="HOST", help="All pages of this site, or its old versions.")] = "",
    older_than: Annotated[str, typer.Option(metavar="90d", help="Versions that were fetched longer ago.")] = "",
    versions_beyond: Annotated[
        int | None, typer.Option(metavar="N", help="Versions of each page beyond the newest N.")
    ] = None,
    retention: Annotated[bool, typer.Option("--retention", help="What the settings do not keep.")] = False,
    out_of_scope: Annotated[
        bool, typer.Option("--out-of-scope", help="Pages that a rule keeps out now, of --site or of all.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and delete nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Deletes pages, a site or old versions for good, from every file, and keeps them from coming back.

    What is forgotten goes from the store, the index, counts, maps, recorded queries and messages that wait. Only a
    keyed hash stays, by which links, sitemaps and redirects to it are refused. Naming it as a start of `levada crawl`
    takes it up again. `levada doctor --forgotten` looks for what is left.

    It asks before it deletes; where nobody can be asked, it needs `--yes`. The same command, or `levada forget` alone,
    finishes one that was interrupted.

    Examples:

        levada forget https://example.org/private.html

        levada forget --site example.org --dry-run

        levada forget --site example.org --yes

        levada forget --out-of-scope --site example.org

        levada forget --older-than 90d

        levada forget --versions-beyond 3 --site example.org
    """
    import levada

    of_versions = bool(older_than or versions_beyond is not None or retention)
    with levada.open(data, create=False) as collection:

        def run(*, dry: bool) -> ForgetReport:
            with progress_bar(json or dry) as show:
                return collection.forget(
                    *(urls or ()),
                    site=site,
                    older_than=older_than or None,
                    versions_beyond=versions_beyond,
                    retention=retention,
                    out_of_scope=out_of_scope,
                    dry_run=dry,
                    on_progress=show,
                )

        if not dry_run and not yes and (urls or site or of_versions or out_of_scope):
            _ask(_amount(run(dry=True), of_versions=of_versions))
        report = run(dry=dry_run)
    print_result(json, report, _print, report, _amount(report, of_versions=of_versions))


def _ask(what: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"{what} would be deleted for good: say --yes, or look first with --dry-run")
    if not typer.confirm(f"Delete {what} for good?", err=True):
        raise Refused("nothing was deleted")


def _amount(report: ForgetReport, *, of_versions: bool) -> str:
    if of_versions:
        return f"{plural(report.versions, 'version')} of {plural(report.pages, 'page')}"
    return f"{plural(report.pages, 'page')} with {plural(report.versions, 'version')}"


def _print(report: ForgetReport, amount: str) -> None:
    out = printer()
    if report.dry_run:
        out.print(f"would forget {amount}; nothing was deleted")
    else:
        out.print(f"forgot {amount}")
        if report.messages:
            out.print(f"  {plural(report.messages, 'message')} that waited to be sent")
        if report.queries:
            out.print(f"  {plural(report.queries, 'recorded query')} that named it")
        if report.maps:
            out.print(f"  the warm map {', '.join(report.maps)}: 'levada warm' fills it again")
    for copy in report.still_in:
        out.print(f"{copy} is a backup and was left alone: delete it if it may hold what is forgotten")
    if report.waiting:
        out.print(report.waiting)
