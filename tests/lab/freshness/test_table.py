from __future__ import annotations

from pathlib import Path

import pytest

from levada.core.errors import UsageError
from levada.lab.freshness.table import HistoryFile, PolicyRow, draw, rows, run_policies, summarise
from tests.lab.freshness.small import world_of

POLICIES = ("fixed", "ema", "oracle")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("history") / "law.tsv"
    path.write_text(
        "".join(
            f"site{number % 3}/{number}\t0\t\t{','.join(map(str, range(50 + number, 20000, 97 * (number + 1))))}\n"
            for number in range(20)
        )
    )
    return path


@pytest.fixture(scope="module")
def found() -> list[PolicyRow]:
    return rows(["poisson-12h"], POLICIES, (2, 1), workers=1)


def test_rows_come_in_the_order_asked_for(found: list[PolicyRow]) -> None:
    asked = [("poisson-12h", policy, seed) for seed in (2, 1) for policy in POLICIES]
    assert [(row.world, row.policy, row.seed) for row in found] == asked


def test_nobody_spends_more_than_the_papers_rule(found: list[PolicyRow]) -> None:
    budget = {row.seed: row.fetches for row in found if row.policy == "ema"}
    assert all(0.97 * budget[row.seed] <= row.fetches <= budget[row.seed] for row in found)


def test_the_papers_rule_closes_nothing_and_the_oracle_all_of_the_gap(found: list[PolicyRow]) -> None:
    closed = {policy: [row.gap_closed for row in found if row.policy == policy] for policy in POLICIES}
    assert closed["ema"] == [0.0, 0.0]
    assert closed["oracle"] == [1.0, 1.0]
    assert all(share is not None and share < 0 for share in closed["fixed"])


def test_the_same_seeds_give_the_same_rows_on_one_core_or_two(found: list[PolicyRow]) -> None:
    told: list[tuple[int, int]] = []
    again = rows(["poisson-12h"], POLICIES, (2, 1), lambda done, total, what: told.append((done, total)), workers=2)
    assert again == found
    assert told == [(1, 2), (2, 2)]


def test_a_history_is_the_same_for_every_seed(history: Path) -> None:
    found = rows([HistoryFile(history, 5)], ("ema", "fixed"), (1, 2))
    assert [(row.world, row.seed) for row in found] == [("law", 1), ("law", 1), ("law", 2), ("law", 2)]
    assert len({row.freshness for row in found if row.policy == "ema"}) == 1


def test_where_nothing_changes_there_is_no_gap() -> None:
    (row,) = run_policies(world_of([], [], horizon=1e5), ("ema",), 1)
    assert (row.gap_closed, row.freshness, row.delay_p50) == (None, 1.0, None)


@pytest.mark.parametrize(
    ("worlds", "policies", "seeds", "told"),
    [
        (["mars"], POLICIES, (1,), "no world is called 'mars'; there are poisson-12h"),
        (["ota-1y"], ("guess",), (1,), 'no plug-in "guess"; known: cho, ema'),
        (["ota-1y"], POLICIES, (), "at least one"),
        (["ota-1y"], POLICIES, (-1,), "from 0 up"),
    ],
)
def test_what_is_not_there_is_refused(
    worlds: list[str], policies: tuple[str, ...], seeds: tuple[int, ...], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        rows(worlds, policies, seeds)


def test_a_summary_has_mean_and_deviation_over_the_seeds(found: list[PolicyRow]) -> None:
    fixed, _, oracle = summarise(found)
    values = [row.freshness for row in found if row.policy == "fixed"]
    assert fixed.freshness.mean == pytest.approx(sum(values) / 2)
    assert fixed.freshness.deviation == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    assert oracle.gap_closed == (1.0, 0.0)


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_picture_is_drawn(found: list[PolicyRow], tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"gap.{kind}"
    draw(summarise(found), path)
    assert path.read_bytes()[:5] in (b"<?xml", b"\x89PNG\r")
