"""Levada's key, the paper's key and a hashed id, from 2 to 64 shards, and the figures of the paper beside Levada's.

A key is advised from one query log and one sample, and measured on others: other queries and ads of the same board.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from levada.lab.parallel import Progress
from levada.lab.pictures import blank_figure, save_picture
from levada.lab.reference import Claim, Section, judge, reference_rows
from levada.lab.sharding.ads import AdsModel, ads, ads_log
from levada.sharding.advice import Advice, advise, fields_to_keep
from levada.sharding.candidates import Tried
from levada.sharding.evaluation import Evaluator, PlacementFigures
from levada.sharding.paper import PRINTED_FORMAT, PaperKey, QueriedField, paper_key
from levada.sharding.sample import Sample
from levada.sharding.workload import LogStatistics, Workload

SCHEMES = ("hashed-id", "paper", "hashed", "hashed+directory", "ours")


class KeyEntry(msgspec.Struct, frozen=True):
    """A scheme on a number of shards, and its figures."""

    active: float
    shards: int
    scheme: str
    key: str
    figures: PlacementFigures


class Board:
    """Ads and queries of one seed, ready for advice or measurement."""

    def __init__(self, model: AdsModel) -> None:
        self.model = model
        self.log = list(ads_log(model))
        self.statistics = LogStatistics.of(self.log)
        self.sample = Sample(ads(model), fields_to_keep(self.statistics), "_id")

    def advice(self, shards: int) -> Advice:
        return advise(self.log, self.statistics, self.sample, shards)

    def evaluator(self) -> Evaluator:
        return Evaluator(Workload(self.log, self.sample), self.sample)


def compare(
    actives: Sequence[float], counts: Sequence[int], size: int, seed: int = 1, progress: Progress | None = None
) -> list[KeyEntry]:
    """`size`: of the sample and of the query log. `counts`: numbers of shards."""
    found: list[KeyEntry] = []
    for number, active in enumerate(actives):
        known = Board(AdsModel(active, size, size, seed=seed))
        fresh = Board(AdsModel(active, size, size, seed=seed + 1)).evaluator()
        for place, shards in enumerate(counts):
            found += _entries(known.advice(shards), active, fresh)
            if progress:
                progress(number * len(counts) + place + 1, len(actives) * len(counts), f"{shards} shards")
    return found


def _entries(advice: Advice, active: float, fresh: Evaluator) -> list[KeyEntry]:
    return [
        KeyEntry(active, advice.shards, scheme, tried.name, fresh.figures(tried.placement))
        for scheme in SCHEMES
        if (tried := _tried(advice, scheme)) is not None
    ]


def _tried(advice: Advice, scheme: str) -> Tried | None:
    if scheme == "ours":
        return advice.chosen
    if scheme != "hashed+directory":
        return next((each for each in advice.tried if each.kind == scheme and not each.placement.directory), None)
    hashed = _tried(advice, "hashed")
    if hashed is None:
        return None
    wider = msgspec.structs.replace(hashed.placement, directory="_id")
    return msgspec.structs.replace(hashed, placement=wider, name=f"{hashed.name} + directory of _id")


_COLOURS = {"ours": "black", "paper": "tab:red", "hashed-id": "tab:gray"}


def draw_comparison(entries: Sequence[KeyEntry], path: Path) -> None:
    """Chart of capacity over shards, both by powers of two, one part for each share of active ads."""
    actives = list(dict.fromkeys(entry.active for entry in entries))
    figure = blank_figure(5 * len(actives), 4)
    for axes, active in zip(figure.subplots(1, len(actives), squeeze=False)[0], actives, strict=True):
        for scheme, colour in _COLOURS.items():
            own = [entry for entry in entries if entry.active == active and entry.scheme == scheme]
            shards, capacity = [each.shards for each in own], [each.figures.capacity for each in own]
            axes.plot(shards, capacity, marker="o", color=colour, label=scheme)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_title(f"{active:.0%} of the ads active")
        axes.set_xlabel("shards")
        axes.set_ylabel("capacity (one node = 1)")
        axes.legend(frameon=False)
    save_picture(figure, path)


PRINTED_KEY = "s04 ct01302 r013 c303 _id011648102"
_MODELLED = ("shards_per_query", "load_max_mean", "capacity", "insert_max_mean")


def key_of_table() -> PaperKey:
    """The paper's key, from its table of fields."""
    fields = [
        QueriedField(
            row["field"],
            int(row["distinct_values"]),
            float(row["share_of_queries_percent"]) / 100.0,
            int(row["range_high"]),
        )
        for row in reference_rows("shard_key_fields.csv")
    ]
    return paper_key(fields, "_id", formats=PRINTED_FORMAT)


def printed_document() -> dict[str, int]:
    """The ad whose key the paper prints."""
    return {"status": 4, "category_id": 1302, "region_id": 13, "city_id": 303, "_id": 11_648_102}


def key_section() -> Section:
    """Whether each field is kept, as printed and by the thresholds here."""
    key = key_of_table()
    rows = [
        (row["field"], (judge("kept", float(row["kept"] == "yes"), float(row["field"] in key.fields)),))
        for row in reference_rows("shard_key_fields.csv")
    ]
    return Section("Which fields the key keeps (1) and drops (0)", ("kept",), tuple(rows))


def shares_section(board: Board) -> Section:
    """The simulated ads beside the printed table; a sample cannot hold all 122,000 properties and all ids."""
    rows = []
    for row in reference_rows("shard_key_fields.csv"):
        field = row["field"]
        share = judge("share", float(row["share_of_queries_percent"]), 100 * board.statistics.share(field), within=1.0)
        distinct = float(row["distinct_values"])
        values = float(len(board.sample.columns[field].values))
        claims: tuple[Claim, ...] = (share,)
        if distinct <= 0.1 * board.sample.count:
            claims = (share, judge("values", distinct, values, share=0.02))
        rows.append((field, claims))
    return Section("The ads made here: share of the queries, %; values", ("share", "values"), tuple(rows))


def model_section(entries: Sequence[KeyEntry]) -> Section:
    """The schemes on 8 shards beside the model behind the specification; where that gives a range, its middle."""
    figures = {entry.scheme: entry.figures for entry in entries}
    rows = []
    for row in reference_rows("shard_key_model.csv"):
        if measured := figures.get(row["scheme"]):
            cells = (judge("", float(row[name]), getattr(measured, name), share=0.08) for name in _MODELLED)
            rows.append((row["name"], tuple(cells)))
    columns = ("shards per query", "load max/mean", "capacity", "insert max/mean")
    return Section("A model of it, 8 shards, 35% active", columns, tuple(rows))


def runs_section(entries: Sequence[KeyEntry]) -> Section:
    """Speed-up of the printed warm runs, beside the ratio of capacities in the model."""
    seconds = {row["model"]: float(row["seconds_80000_queries"]) for row in reference_rows("shard_key_runs.csv")}
    none, by_id, by_key = (seconds[name] for name in ("unsharded", "sharded-by-id", "sharded-by-model-key"))
    printed = (none / by_id, none / by_key, by_id / by_key)
    rows = []
    for shards in dict.fromkeys(entry.shards for entry in entries):
        own = {entry.scheme: entry.figures.capacity for entry in entries if entry.shards == shards}
        measured = (own["hashed-id"], own["paper"], own["paper"] / own["hashed-id"])
        cells = (judge("", p, m, share=0.15) for p, m in zip(printed, measured, strict=True))
        rows.append((f"{shards} shards", tuple(cells)))
    columns = ("by id / none", "by its key / none", "by its key / by id")
    return Section("The third runs of 80,000 queries, as ratios; the model counts touches only", columns, tuple(rows))
