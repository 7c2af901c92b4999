"""What did the sources print? Their figures, as they stand in `data` (`data/SOURCE.md` says where each is from)."""

from __future__ import annotations

import csv
from importlib.resources import files

__all__ = ["reference_rows"]


def reference_rows(name: str) -> list[dict[str, str]]:
    text = files("levada.lab").joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
