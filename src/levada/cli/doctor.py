"""`levada doctor`: is everything there that a crawl needs, and is the collection sound?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from levada.cli.options import ConfigOption, DataOption, JsonOption, print_json
from levada.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from levada.cli.checks import Check
    from levada.cli.install_weight import Package
    from levada.flow.settings import Settings

__all__ = ["register"]

_STYLES = {"ok": "green", "warn": "bold yellow", "fail": "bold red"}


def register(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(data: DataOption = Path("levada-data"), config: ConfigOption = None, json: JsonOption = False) -> None:
    """Checks this installation, the settings, their servers and the collection, and says what to do.

    The whole database is read once. The exit status is 1 if something fails; a collection that is not there yet is
    fine.

    Examples:

    ```
    levada doctor
    levada doctor --data levada-data --config levada.toml
    levada doctor --json
    ```
    """
    from levada.assemble.folder import DataFolder
    from levada.cli.folder_checks import folder_checks
    from levada.cli.install_weight import installed_packages
    from levada.cli.machine_checks import machine_checks
    from levada.cli.server_checks import server_checks

    settings, about_settings = _settings(config)
    checks = [
        *machine_checks(data, settings),
        about_settings,
        *server_checks(settings),
        *folder_checks(DataFolder(data)),
    ]
    packages = installed_packages("levada")
    sound = all(check.verdict != "fail" for check in checks)
    if json:
        total = sum(package.bytes for package in packages)
        print_json({"ok": sound, "checks": checks, "install": {"bytes": total, "packages": packages}})
    else:
        _print(checks, packages)
    raise typer.Exit(0 if sound else 1)


def _settings(config: Path | None) -> tuple[Settings, Check]:
    from levada.cli.checks import failed, fine
    from levada.flow.settings import Settings, load_settings

    path = config or Path("levada.toml")
    if config is None and not path.exists():
        return Settings(), fine("settings", "no levada.toml here: the defaults hold")
    try:
        return load_settings(path), fine("settings", f"{path} is valid")
    except SettingsError as error:
        return Settings(), failed("settings", str(error), f"correct {path}")


def _print(checks: Sequence[Check], packages: Sequence[Package]) -> None:
    from rich.text import Text

    from levada.cli.printing import line, printer

    out = printer()
    for check in checks:
        out.print(
            Text.assemble((f"{check.verdict:>4}", _STYLES[check.verdict]), f"  {check.name}: {line(check.found)}")
        )
        if check.advice:
            out.print(Text(f"      → {line(check.advice)}", "" if check.verdict != "ok" else "dim"))
    out.print()
    out.print("what is installed for it", style="bold")
    for package in packages:
        out.print(f"{package.bytes / 1e6:>9,.1f} MB  {package.name} {package.version}")
    out.print(f"{sum(package.bytes for package in packages) / 1e6:>9,.1f} MB  in all", style="bold")
    worst = [check for check in checks if check.verdict == "fail"]
    warned = [check for check in checks if check.verdict == "warn"]
    out.print()
    out.print(
        f"{len(worst)} failed, {len(warned)} to look at" if worst or warned else "all is well",
        style=_STYLES["fail" if worst else "warn" if warned else "ok"],
    )
