"""How good is a candidate, all things considered?"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from levada.sharding.candidates import Candidate, Fields
from levada.sharding.evaluation import Evaluator, Figures
from levada.sharding.placement import Placement

__all__ = ["Tried", "ranked", "score", "try_out"]

_UNEVEN = 1.25  # of the mean: what inserts and documents may be without harm
_UNSPLITTABLE = 0.1  # what each chunk that cannot be split takes away
_WORTH_IT = 1.005  # what zones and what a directory must each gain over the simpler


class Tried(msgspec.Struct, frozen=True):
    kind: str
    name: str
    key: str
    placement: Placement
    figures: Figures
    score: float
    refused: str = ""  # why it is not advised, whatever its figures


def score(figures: Figures) -> float:
    """The capacity, less where inserts or documents pile up, updates move documents, or chunks are too large."""
    piling = max(1.0, figures.insert_max_mean / _UNEVEN) * max(1.0, figures.storage_max_mean / _UNEVEN)
    return figures.capacity / piling / (1.0 + figures.moved) / (1.0 + _UNSPLITTABLE * figures.unsplittable)


def try_out(candidate: Candidate, evaluator: Evaluator, fields: Fields) -> Tried:
    figures = evaluator.figures(candidate.placement)
    key = candidate.placement.key
    moving = [field for field in key.fields if field in fields.mutable]
    refused = f"{', '.join(moving)}: writes change it, and documents would move" if moving else ""
    return Tried(candidate.kind, candidate.name, str(key), candidate.placement, figures, score(figures), refused)


def ranked(tried: Sequence[Tried]) -> list[Tried]:
    """By score, where what is harder to run must be worth it; the refused last."""

    def merit(each: Tried) -> tuple[bool, float]:
        steps = (each.kind == "zones") + bool(each.placement.directory)
        return bool(each.refused), -each.score / _WORTH_IT**steps

    return sorted(tried, key=merit)
