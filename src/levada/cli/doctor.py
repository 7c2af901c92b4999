"""`levada doctor`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from levada.cli.options import ConfigOption, DataOption, JsonOption, print_result
from levada.cli.terminal import printer
from levada.core.errors import SettingsError
from levada.core.words import line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from levada.collection.doctor import Check, Package
    from levada.core.settings import Settings

_STYLES = {"ok": "green", "warn": "bold yellow", "fail": "bold red"}


def doctor(data: DataOption = Path("levada-data"), config: ConfigOption = None, json: JsonOption = False) -> None:
    """Checks this installation, the settings, their servers and the collection, and says what to do.

    Reads the whole database once. The exit status is 1 if something fails. A missing collection is no failure.

    Examples:

    ```
    levada doctor
    levada doctor --data levada-data --config levada.toml
    levada doctor --json
    ```
    """
    from levada.collection.doctor import folder_checks, installed_packages, machine_checks, server_checks

    settings, about_settings = _settings(config)
    checks = [
        *machine_checks(data, settings),
        about_settings,
        *server_checks(settings),
        *folder_checks(data),
    ]
    packages = installed_packages("levada")
    sound = all(check.verdict != "fail" for check in checks)
    install = {"bytes": sum(package.bytes for package in packages), "packages": packages}
    print_result(json, {"ok": sound, "checks": checks, "install": install}, _print, checks, packages)
    raise typer.Exit(0 if sound else 1)


def _settings(config: Path | None) -> tuple[Settings, Check]:
    from levada.collection.doctor import failed, fine
    from levada.core.settings import Settings, load_settings

    path = config or Path("levada.toml")
    if config is None and not path.exists():
        return Settings(), fine("settings", "no levada.toml here: the defaults apply")
    try:
        return load_settings(path), fine("settings", f"{path} is valid")
    except SettingsError as error:
        return Settings(), failed("settings", str(error), f"correct {path}")


def _print(checks: Sequence[Check], packages: Sequence[Package]) -> None:
    out = printer()
    for check in checks:
        out.print(
            Text.assemble((f"{check.verdict:>4}", _STYLES[check.verdict]), f"  {check.name}: {line(check.found)}")
        )
        if check.advice:
            out.print(Text(f"      → {line(check.advice)}", "" if check.verdict != "ok" else "dim"))
    out.print()
    out.print("installed packages", style="bold")
    for package in packages:
        out.print(f"{package.bytes / 1e6:>9,.1f} MB  {package.name} {package.version}")
    out.print(f"{sum(package.bytes for package in packages) / 1e6:>9,.1f} MB  in all", style="bold")
    met = Counter(check.verdict for check in checks)
    words = f"{met['fail']} failed, {met['warn']} to look at" if met["fail"] or met["warn"] else "all is well"
    out.print()
    out.print(words, style=_STYLES["fail" if met["fail"] else "warn" if met["warn"] else "ok"])
