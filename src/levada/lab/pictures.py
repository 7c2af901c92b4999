"""Charts as files: the format by the suffix, the same bytes for the same figures, written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from levada.core.errors import UsageError
from levada.core.files import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KINDS = (".png", ".svg")


def blank_figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_picture(figure: Figure, path: Path) -> None:
    import matplotlib

    if path.suffix.lower() not in _KINDS:
        raise UsageError(f"a picture is written as {' or '.join(_KINDS)}, not {path.name!r}")
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
    with matplotlib.rc_context({"svg.hashsalt": "levada"}), whole_file(path, force=True) as out:
        figure.savefig(out, format=path.suffix[1:].lower(), metadata=metadata)
