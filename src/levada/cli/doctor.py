"""`levada doctor`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from levada.cli.options import ConfigOption, DataOption, JsonOption, print_result
from levada.cli.terminal import doing, printer
from levada.core.errors import LevadaError, UsageError
from levada.core.words import line, plural, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from levada.collection.doctor import Check, Package
    from levada.collection.forgetting.remains import Remains
    from levada.collection.storage.bodies import Swept
    from levada.core.settings import Settings

_STYLES = {"ok": "green", "warn": "bold yellow", "fail": "bold red"}


def doctor(
    data: DataOption = Path("levada-data"),
    config: ConfigOption = None,
    forgotten: Annotated[
        str, typer.Option(metavar="TEXT", help="Look only for this URL, host or text in every file of the folder.")
    ] = "",
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Only delete bodies in object storage that no version names.")
    ] = False,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Only check the engines that several machines share, more closely.")
    ] = False,
    rabbitmq: Annotated[
        str, typer.Option(envvar="LEVADA_RABBITMQ", metavar="URL", help="With --cluster: amqp://user:password@host/")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Checks this installation, the settings, their servers and the collection, and says what to do.

    Reads the whole database once. The exit status is 1 if something fails. A missing collection is no failure.

    With `--forgotten` it searches every file, and unpacks what is packed: the exit status is 1 if it is found.

    With `--sweep` it only looks through the folder or bucket of `store.bodies`, and deletes objects that no version
    names and that are older than a day: crawls that were killed leave some.

    Examples:

    ```
    levada doctor
    levada doctor --data levada-data --config levada.toml
    levada doctor --json
    levada doctor --forgotten example.org
    levada doctor --sweep
    levada doctor --cluster --config levada.toml --rabbitmq amqp://levada:secret@queue/
    ```
    """
    if bool(forgotten) + sweep + cluster > 1:
        raise UsageError("--forgotten, --sweep and --cluster look for different things: give one of them")
    if sweep:
        _sweep(data, json)
        return
    if cluster:
        _check_cluster(data, config, rabbitmq, json)
        return
    if forgotten:
        _look_for(data, forgotten, json)
        return
    from levada.collection.doctor import folder_checks, installed_packages, machine_checks, server_checks, way_in_checks

    settings, about_settings = _settings(data, config)
    checks = [
        *machine_checks(data, settings),
        about_settings,
        *server_checks(settings),
        *way_in_checks(settings),
        *folder_checks(data),
    ]
    packages = installed_packages("levada")
    sound = all(check.verdict != "fail" for check in checks)
    install = {"bytes": sum(package.bytes for package in packages), "packages": packages}
    print_result(json, {"ok": sound, "checks": checks, "install": install}, _print, checks, packages)
    raise typer.Exit(0 if sound else 1)


def _sweep(data: Path, json: bool) -> None:
    from levada.collection.storage.bodies import sweep
    from levada.core.folder import DataFolder

    with doing("looking through all bodies", json):
        swept = sweep(DataFolder(data))
    print_result(json, swept, _print_swept)


def _print_swept(swept: Swept) -> None:
    out = printer()
    out.print(f"{plural(swept.objects, 'body')} in {swept.place}")
    out.print(f"{plural(swept.deleted, 'object')} that no version names deleted, {size(swept.bytes)}")
    if swept.waiting:
        out.print(f"{plural(swept.waiting, 'object')} that no version names kept: younger than a day")


def _check_cluster(data: Path, config: Path | None, rabbitmq: str, json: bool) -> None:
    from levada.collection.machines.checks import cluster_checks

    settings, about_settings = _settings(data, config)
    checks = [about_settings, *cluster_checks(settings, rabbitmq)]
    sound = all(check.verdict != "fail" for check in checks)
    print_result(json, {"ok": sound, "checks": checks}, _print_cluster, checks)
    raise typer.Exit(0 if sound else 1)


def _look_for(data: Path, typed: str, json: bool) -> None:
    from levada.collection.forgetting.remains import find_remains

    with doing("searching every file", json):
        remains = find_remains(data, typed)
    print_result(json, remains, _print_remains)
    raise typer.Exit(1 if remains.found else 0)


def _print_remains(remains: Remains) -> None:
    out = printer()
    where = f"{plural(remains.files, 'file')}, {size(remains.bytes)}"
    for place in remains.found:
        out.print(Text.assemble(("found", _STYLES["fail"]), f"  {line(place)}"))
    for url in remains.mentioned:
        out.print(Text.assemble((" named", _STYLES["warn"]), f"  in the content of another page: {line(url)}"))
    for note in remains.notes:
        out.print(Text(f"      → {line(note)}", "dim"))
    if remains.found:
        out.print(f"{line(remains.looked_for)} is still there ({where} searched)", style=_STYLES["fail"])
    else:
        out.print(f"nothing is left of {line(remains.looked_for)} ({where} searched)", style=_STYLES["ok"])


def _settings(data: Path, config: Path | None) -> tuple[Settings, Check]:
    """The settings that a crawl of this folder would have."""
    from levada.cli.given import given_settings
    from levada.collection.doctor import failed, fine
    from levada.core.folder import DataFolder
    from levada.core.plugins import check_names
    from levada.core.settings import Settings

    try:
        configuration = DataFolder(data, given_settings(config)).configuration()
        check_names(configuration.settings)
    except LevadaError as error:
        return Settings(), failed("settings", str(error), "correct them: 'levada settings' lists all")
    sources = Counter(source.value for source, _, _ in configuration.sources.values())
    told = ", ".join(f"{number} by {source}" for source, number in sources.items())
    return configuration.settings, fine("settings", f"valid: {told}" if told else "valid: the defaults apply")


def _print(checks: Sequence[Check], packages: Sequence[Package]) -> None:
    _print_checks(checks)
    out = printer()
    out.print("installed packages", style="bold")
    for package in packages:
        out.print(f"{package.bytes / 1e6:>9,.1f} MB  {package.name} {package.version}")
    out.print(f"{sum(package.bytes for package in packages) / 1e6:>9,.1f} MB  in all", style="bold")
    out.print()
    _print_verdict(checks)


def _print_cluster(checks: Sequence[Check]) -> None:
    _print_checks(checks)
    _print_verdict(checks)


def _print_checks(checks: Sequence[Check]) -> None:
    out = printer()
    for check in checks:
        out.print(
            Text.assemble((f"{check.verdict:>4}", _STYLES[check.verdict]), f"  {check.name}: {line(check.found)}")
        )
        if check.advice:
            out.print(Text(f"      → {line(check.advice)}", "" if check.verdict != "ok" else "dim"))
    out.print()


def _print_verdict(checks: Sequence[Check]) -> None:
    met = Counter(check.verdict for check in checks)
    words = f"{met['fail']} failed, {met['warn']} to look at" if met["fail"] or met["warn"] else "all is well"
    printer().print(words, style=_STYLES["fail" if met["fail"] else "warn" if met["warn"] else "ok"])
