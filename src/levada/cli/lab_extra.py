"""What do the commands of the laboratory check before anything long is begun?"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from levada.errors import LevadaError, MissingExtra, UsageError

__all__ = ["check_picture", "chosen_parts", "require"]

_PICTURES = (".svg", ".png")


def require(*packages: str) -> None:
    """Say what to install, before anything has been done."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra(package, "lab")


def check_picture(picture: Path | None) -> None:
    if picture is None:
        return
    if picture.suffix.lower() not in _PICTURES:
        raise UsageError(f"--picture: the name must end in .svg or .png, not {picture.name!r}")
    if not picture.absolute().parent.is_dir():
        raise LevadaError(f"--picture: there is no folder {picture.parent}")


def chosen_parts(only: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """Those that were typed, with commas between; all of them if none was."""
    chosen = tuple(part.strip() for part in (only or ",".join(known)).split(",") if part.strip())
    for part in chosen:
        if part not in known:
            raise UsageError(f"--only: {part!r} is none of {', '.join(known)}")
    return chosen
