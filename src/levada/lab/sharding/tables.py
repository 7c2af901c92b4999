"""Figures of the sharding paper beside Levada's."""

from __future__ import annotations

from collections.abc import Sequence

from levada.lab.reference import Claim, Section, judge, reference_rows
from levada.lab.sharding.comparison import Board, KeyEntry
from levada.sharding.paper import PRINTED_FORMAT, PaperKey, QueriedField, paper_key

PRINTED_KEY = "s04 ct01302 r013 c303 _id011648102"
# From the model behind the specification; where it gives a range, its middle.
_MODEL = {
    "hashed-id": ("hashed id", (7.5, 1.0, 1.06, 1.02)),
    "paper": ("the paper's key", (1.2, 2.45, 2.7, 2.5)),
    "hashed": ("hashed category, then region, city, id", (1.47, 1.03, 5.3, 1.02)),
    "hashed+directory": ("the same + a directory of ids", (1.34, 1.035, 5.8, 1.02)),
}


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
    """The schemes on 8 shards beside the model behind the specification."""
    rows = []
    for entry in entries:
        if entry.scheme in _MODEL:
            name, printed = _MODEL[entry.scheme]
            figures = entry.figures
            measured = (
                figures.shards_per_query,
                figures.load_max_mean,
                figures.capacity,
                figures.insert_max_mean,
            )
            rows.append((name, tuple(judge("", p, m, share=0.08) for p, m in zip(printed, measured, strict=True))))
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
