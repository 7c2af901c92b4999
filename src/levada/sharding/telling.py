"""Why this key, in words; and what makes the figures less than whole?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from levada.sharding.candidates import Fields
from levada.sharding.sample import Sample
from levada.sharding.scoring import Tried
from levada.sharding.workload import Workload

__all__ = ["notes_on", "reasons_for"]

_FEW_DOCUMENTS = 1_000
_GROWING = 0.9  # a rank correlation with the order of inserts from which a field is said to grow


def reasons_for(ranked: Sequence[Tried], fields: Fields, shards: int) -> Iterator[str]:
    """Of the first, what speaks for it; of the fields, what speaks against them."""
    if not ranked:
        return
    best = ranked[0]
    yield from _for_key(best, fields, shards)
    figures = best.figures
    stronger = max(ranked[1:], key=lambda each: each.figures.capacity, default=best)
    if stronger.figures.capacity > figures.capacity and not stronger.refused:
        yield _too_dear(best, stronger)
    yield (
        f"A query touches {figures.shards_per_query:.2f} of {shards} shards on average, and "
        f"{figures.single_shard:.0%} of them touch one; the busiest shard does {figures.load_max_mean:.2f} times "
        f"the mean: together they do what {figures.capacity:.1f} single nodes would."
    )
    yield from (_against_paper(best, each) for each in ranked[1:] if each.kind == "paper")
    yield from _against_fields(best, fields)


def _for_key(best: Tried, fields: Fields, shards: int) -> Iterator[str]:
    placement = best.placement
    if best.kind == "hashed-id":
        yield f"{best.key}: all in all no key by another field that stays the same does better."
        return
    yield _leading(best, fields)
    if len(placement.key.parts) > 1:
        after = ", ".join(each.field for each in placement.key.parts[1:])
        yield f"{after} after it: what is too much for one shard can be split by them."
    if placement.zones:
        one = len(placement.zones) == 1
        hot = "1 value is" if one else f"{len(placement.zones)} values are"
        yield f"{hot} too hot for one of {shards} shards, and shared by several."
    if placement.directory:
        yield f"A directory leads from {placement.directory} to its shard: a query by it alone need not ask all."


def _leading(best: Tried, fields: Fields) -> str:
    part = best.placement.key.parts[0]
    facts = fields.facts[part.field]
    spread = "plain, so that ranges of it stay together"
    if part.hashed:
        spread = "hashed, so that neither frequent neighbours nor growth pile up"
    return (
        f"{part.field} leads: {fields.log.share(part.field):.0%} of the queries ask for it, it has "
        f"{facts.distinct:,} values, the most frequent in {facts.top_share:.1%} of the documents, and nothing "
        f"changes it. It is {spread}."
    )


def _too_dear(best: Tried, other: Tried) -> str:
    """What a key that answers more queries costs elsewhere."""
    mine, theirs = best.figures, other.figures
    costs = [
        f"{what} pile up there ({more:.1f} times the mean on one shard, here {less:.1f})"
        for what, more, less in (
            ("inserts", theirs.insert_max_mean, mine.insert_max_mean),
            ("documents", theirs.storage_max_mean, mine.storage_max_mean),
        )
        if more > less + 0.05
    ]
    if theirs.moved > mine.moved:
        costs.append("updates move documents")
    if theirs.unsplittable > mine.unsplittable:
        costs.append("more chunks cannot be split")
    return (
        f"{other.name} would answer {theirs.capacity / mine.capacity:.2f} times as many queries, but "
        f"{', and '.join(costs) or 'is harder to run'}."
    )


def _against_paper(best: Tried, paper: Tried) -> str:
    figures = paper.figures
    return (
        f"The paper's key ({paper.key}) touches {figures.shards_per_query:.2f} shards per query, and its busiest "
        f"shard does {figures.load_max_mean:.2f} times the mean: the advised key does "
        f"{best.figures.capacity / figures.capacity:.2f} times as much."
    )


def _against_fields(best: Tried, fields: Fields) -> Iterator[str]:
    for field in sorted(fields.mutable & fields.log.fields.keys()):
        changed = fields.log.changed[field]
        by = f"{changed:,} writes change it" if changed else "it was said to be mutable"
        yield f"{field} is in no key of ours: {by}, and its documents would move."
    for each in fields.told:
        yield f"{each.known} tells {each.share:.0%} of {each.asked}: one after the other they split little more."
    for field, facts in fields.facts.items():
        if abs(facts.monotonicity) >= _GROWING and field != best.placement.key.fields[0]:
            yield f"{field} grows with every insert: leading and plain it would send all new ones to one shard."


def notes_on(fields: Fields, workload: Workload, sample: Sample) -> Iterator[str]:
    """What the figures do not know."""
    if not sample.id_field:
        yield "Partial: the sample has no id: no key is unique, and neither a hashed id nor a directory was tried."
    if sample.count < _FEW_DOCUMENTS:
        yield f"Partial: {sample.count:,} documents are few to tell how evenly they fall."
    if not workload.queries:
        yield "Partial: the log has no query that looks for documents."
    if workload.guessed:
        share = workload.guessed / workload.queries
        yield f"Partial: {share:.0%} of the queries do not tell their values; values of the sample stand for them."
    for field, facts in fields.facts.items():
        if facts.mixed:
            kinds = ", ".join(f"{kind} in {count / sample.count:.1%}" for kind, count in facts.kinds.items())
            yield f'{field} is of several kinds ({kinds}): 5 and "5" are different values, and live apart.'
        if facts.array:
            yield f"{field} is an array in some documents: it cannot be in a key."
