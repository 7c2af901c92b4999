"""How many times as fast is one way as another, and did all find the same?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from levada.adapters.replay.rounds import Round
from levada.adapters.replay.schemes import Played

__all__ = ["Ratios", "compared", "differences"]


class Ratios(msgspec.Struct, frozen=True):
    """Above 1: this one needs less than the other. None where one of the two was not run or is not known.

    `busiest` is the CPU of the busiest server, `busiest_shard` that of the busiest shard: what would be left of the
    time if each had a machine of its own.
    """

    scheme: str
    against: str
    seconds: float | None
    cpu: float | None
    busiest: float | None
    busiest_shard: float | None


def compared(played: Sequence[Played], round_name: str, against: Sequence[str] = ("id", "none")) -> list[Ratios]:
    """Each with each of `against`, in their quickest rounds of this name."""
    rounds = {each.scheme: found for each in played if (found := each.quickest(round_name)) is not None}
    return [
        Ratios(
            name,
            other,
            _ratio(rounds[other].seconds, own.seconds),
            _ratio(rounds[other].cpu_total, own.cpu_total),
            _ratio(rounds[other].cpu_busiest, own.cpu_busiest),
            _ratio(rounds[other].cpu_busiest_shard, own.cpu_busiest_shard),
        )
        for name, own in rounds.items()
        for other in against
        if other in rounds and other != name
    ]


def differences(played: Sequence[Played]) -> Iterator[str]:
    """A sentence for each round whose answers are not those of the first whole one."""
    first: tuple[str, Round] | None = None
    for each in played:
        for found in each.rounds:
            if found.partial or each.away:
                continue
            if first is None:
                first = (each.scheme, found)
            elif found.answers != first[1].answers:
                yield f"Wrong: {each.scheme} ({found.name}) found other documents than {first[0]} did."


def _ratio(other: float | None, own: float | None) -> float | None:
    return other / own if other is not None and own else None
