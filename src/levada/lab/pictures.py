"""How is a picture written? By its suffix, the same bytes for the same figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from levada.errors import LevadaError, UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["save_picture"]

_KINDS = (".png", ".svg")


def save_picture(figure: Figure, path: Path) -> None:
    import matplotlib

    if path.suffix.lower() not in _KINDS:
        raise UsageError(f"a picture is written as {' or '.join(_KINDS)}, not {path.name!r}")
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
    try:
        with matplotlib.rc_context({"svg.hashsalt": "levada"}):
            figure.savefig(path, metadata=metadata)
    except OSError as error:
        raise LevadaError(f"cannot write the picture {path}: {error.strerror or error}") from None
