"""The sharding laboratory with somebody watching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from levada.cli.watching import watching
from levada.lab.claims import Section
from levada.lab.sharding import tables
from levada.lab.sharding.ads import AdsModel
from levada.lab.sharding.comparison import Board, Entry, compare
from levada.sharding.paper import PaperKey

__all__ = ["Result", "run"]

_COUNTS = (2, 3, 4, 8, 16, 32, 64)
_MODEL_COUNTS = (2, 3, 4, 8)
_ACTIVES = (0.35, 0.9)


@dataclass(slots=True)
class Result:
    key: PaperKey | None = None
    key_text: str = ""
    sections: list[Section] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        claims = [claim for section in self.sections for claim in section.claims]
        return {"key": self.key_text, "method": self.key, "claims": claims, "comparison": self.entries}


def run(parts: Sequence[str], size: int, seed: int, *, quiet: bool) -> Result:
    result = Result()
    if "key" in parts:
        result.key = tables.key_of_table()
        result.key_text = result.key.text(tables.printed_document())
        result.sections.append(tables.key_section())
    if "comparison" in parts:
        with watching(quiet) as progress:
            result.entries = compare(_ACTIVES, _COUNTS, size, seed, progress)
    if "model" in parts:
        result.sections += _model(result, size, seed, quiet)
    return result


def _model(result: Result, size: int, seed: int, quiet: bool) -> list[Section]:
    entries = [each for each in result.entries if each.active == _ACTIVES[0] and each.shards in _MODEL_COUNTS]
    if not entries:
        with watching(quiet) as progress:
            entries = compare(_ACTIVES[:1], _MODEL_COUNTS, size, seed, progress)
    board = Board(AdsModel(_ACTIVES[0], size, size, seed=seed))
    eight = [each for each in entries if each.shards == 8]
    return [tables.shares_section(board), tables.model_section(eight), tables.runs_section(entries)]
