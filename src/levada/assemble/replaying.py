"""A log of queries replayed on real servers, with the documents placed in several ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from levada.adapters.replay.comparing import Ratios, compared, differences
from levada.adapters.replay.filling import StandIns, evenly_drawn
from levada.adapters.replay.questions import QuestionWriter
from levada.adapters.replay.schemes import Played, Rounds, Scheme, play
from levada.adapters.replay.servers import Servers
from levada.adapters.replay.tables import Layout
from levada.clock import SystemClock
from levada.sharding.advice import Advice
from levada.sharding.asked import AskedQuery
from levada.sharding.keys import KeyPart, ShardKey
from levada.sharding.placement import Placement
from levada.sharding.ranges import Ranges
from levada.sharding.sample import Sample
from levada.sharding.scoring import Tried

__all__ = ["SCHEMES", "Replay", "ReplayWish", "replay", "schemes_of"]

SCHEMES = ("none", "id", "paper", "ours")
_MOST_FIELDS = 64
_KINDS = {"id": "hashed-id", "paper": "paper"}
_NO_KEY = {
    "id": "The documents have no id that could be hashed: scheme id is left out.",
    "paper": "The paper's method finds no key here: scheme paper is left out.",
}

Progress = Callable[[int, int, str], None]


class ReplayWish(msgspec.Struct, frozen=True):
    """`limit`: documents that a query wants where the log does not say."""

    targets: tuple[str, ...]
    queries: int = 80_000
    clients: int = 4
    rounds: tuple[str, ...] = ("cold", "warm")
    limit: int = 20
    keep: bool = False
    force: bool = False


class Replay(msgspec.Struct, frozen=True):
    """`notes` that begin with Partial say what is missing in the figures, with Wrong what must not be."""

    queries: int
    documents: int
    clients: int
    played: tuple[Played, ...]
    ratios: tuple[Ratios, ...]
    notes: tuple[str, ...]

    @property
    def partial(self) -> bool:
        return any(note.startswith(("Partial", "Wrong")) for note in self.notes)


def schemes_of(advice: Advice, names: Sequence[str], id_field: str) -> tuple[list[Scheme], list[str]]:
    """The schemes of these names with what the evaluator predicts, and a sentence for each that cannot be had."""
    found: list[Scheme] = []
    missing: list[str] = []
    for name in names:
        if name == "none":
            found.append(_unsharded(id_field or advice.chosen.placement.key.fields[0]))
            continue
        tried = advice.chosen if name == "ours" else advice.of_kind(_KINDS[name])
        if tried is None:
            missing.append(_NO_KEY[name])
        else:
            found.append(_scheme(name, tried))
    return found, missing


def _unsharded(field: str) -> Scheme:
    return Scheme("none", "one server", Placement(ShardKey((KeyPart(field),)), Ranges((), (0,)), 1), (1.0, 1.0))


def _scheme(name: str, tried: Tried) -> Scheme:
    figures = tried.figures
    return Scheme(name, tried.name, tried.placement, (figures.shards_per_query, figures.load_max_mean))


def replay(
    schemes: Sequence[Scheme],
    asked: Sequence[AskedQuery],
    documents: Sequence[dict[str, Any]],
    sample: Sample,
    wish: ReplayWish,
    *,
    restart: Callable[[], None] | None = None,
    progress: Progress | None = None,
) -> Replay:
    """`sample` holds the fields of `documents` that queries ask for; `restart` is for servers of one's own."""
    drawn = evenly_drawn(asked, wish.queries)
    stand_ins = StandIns(sample)
    filled = [stand_ins.fill(query) for query in drawn]
    arrays = [name for name, column in sample.columns.items() if "array" in column.kinds()]
    fields = [name for name in sample.columns if name not in arrays][:_MOST_FIELDS]
    layout = Layout.of(fields, filled, sample.id_field)
    writer = QuestionWriter(layout.columns, wish.limit)
    work = Rounds(documents, layout, [writer.write(query) for query in filled], wish.rounds, wish.clients)
    servers = Servers(wish.targets)
    played = _played(schemes, work, servers, wish, restart, progress)
    notes = [*_log_notes(len(drawn), stand_ins, writer.loosened, arrays), *_notes(played, servers, wish)]
    ratios = compared(played, "warm" if "warm" in wish.rounds else "cold")
    return Replay(len(drawn), len(documents), wish.clients, tuple(played), tuple(ratios), tuple(notes))


def _played(
    schemes: Sequence[Scheme],
    work: Rounds,
    servers: Servers,
    wish: ReplayWish,
    restart: Callable[[], None] | None,
    progress: Progress | None,
) -> list[Played]:
    servers.prepare(force=wish.force)
    clock, played = SystemClock(), []
    try:
        for scheme in schemes:
            played.append(play(scheme, work, servers, clock, restart=restart, progress=progress))
            if not wish.keep:
                servers.forget(scheme.name)
    finally:
        if not wish.keep:
            servers.drop()
    return played


def _log_notes(drawn: int, stand_ins: StandIns, loosened: int, arrays: Sequence[str]) -> Iterator[str]:
    if stand_ins.guessed:
        yield (
            f"Partial: {stand_ins.guessed:,} of {drawn:,} queries name values that the log does not tell (dropped "
            "or hashed); those of documents of the sample stood for them, and for a range nothing did."
        )
    if stand_ins.renamed:
        yield f"{stand_ins.renamed:,} queries name an id that the sample does not hold; the next one stood for it."
    if loosened:
        yield f"Partial: {loosened:,} queries have a condition that the replay cannot say: they found more."
    if arrays:
        yield f"Partial: {', '.join(arrays[:5])}: arrays, of which the replay does not ask."


def _notes(played: Sequence[Played], servers: Servers, wish: ReplayWish) -> Iterator[str]:
    for words in dict.fromkeys([*servers.away.values(), *(words for each in played for words in each.away)]):
        yield f"Partial: {words}."
    for each in played:
        for found in each.rounds:
            if found.partial:
                yield (
                    f"Partial: {each.scheme} ({found.name}): {found.partial:,} of {found.queries:,} queries were "
                    "not answered by every shard that they need."
                )
            yield from (f"Partial: {each.scheme} ({found.name}): {words}." for words in found.troubles[:3])
    yield from differences(played)
    if wish.keep:
        yield "The tables are kept (--keep): drop the schema levada_replay when you have done with it."
