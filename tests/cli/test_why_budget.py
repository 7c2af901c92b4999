from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from levada.core.folder import DataFolder
from levada.core.settings import BudgetSettings, RevisitSettings
from levada.store.sqlite import SqliteStore
from tests.cli.collection import command

why = command("why")


def changed(data: Path, tmp_path: Path, **sections: object) -> Path:
    path = Path(shutil.copytree(data, tmp_path / "levada-data"))
    folder = DataFolder(path)
    folder.save_settings(replace(folder.settings(), **sections))
    return path


def test_freshness_stands_beside_each_budget(data: Path) -> None:
    answer = why("--budget", "--data", data)
    assert answer.code == 0
    rows = [line for line in answer.out.splitlines() if "█" in line]
    assert [row.strip().split("  ")[0] for row in rows] == ["x 1/8", "x 1/4", "x 1/2", "now", "x 2", "x 4", "x 8"]
    assert all(len(row) <= 80 for row in rows)
    assert "4 per page and day (budget.per_page_per_day)" in answer.out
    assert "Twice as much would gain" in answer.out


def test_json_tells_the_same(data: Path) -> None:
    facts = json.loads(why("--budget", "--json", "--data", data).out)
    fresh = [each["believed_freshness"] for each in facts["budgets"]]
    assert [each["times"] for each in facts["budgets"]] == [0.125, 0.25, 0.5, 1, 2, 4, 8]
    assert fresh == sorted(fresh)
    assert all(each["doubling_gains"] >= 0 for each in facts["budgets"])
    assert facts["pages"] == 5
    assert facts["budget_per_hour"] == pytest.approx(5 * 4 / 24)
    assert facts["believed_freshness"] == fresh[3]
    assert 0 < facts["believed_current"] < 1


def test_a_budget_per_hour_is_named(data: Path, tmp_path: Path) -> None:
    path = changed(data, tmp_path, budget=BudgetSettings(per_hour=10_000_000))
    answer = why("--budget", "--data", path)
    assert "10,000,000 fetches per hour (budget.per_hour)" in answer.out
    assert "Only 60 fetches per hour can be spent" in answer.out  # five pages every five minutes


def test_a_budget_per_site_is_kept_to(data: Path, tmp_path: Path) -> None:
    path = changed(data, tmp_path, budget=BudgetSettings(per_hour=1000, per_site_per_hour=3))
    facts = json.loads(why("--budget", "--json", "--data", path).out)
    assert facts["budgets"][3]["spent_per_hour"] == pytest.approx(9.0)  # three sites


def test_a_rule_without_a_budget_is_told_so(data: Path, tmp_path: Path) -> None:
    path = changed(data, tmp_path, revisit=RevisitSettings(policy="ema"))
    assert 'revisit.policy is "ema", which knows no budget' in why("--budget", "--data", path).out


def test_nothing_stored_is_status_3(tmp_path: Path) -> None:
    answer = why("--budget", "--data", tmp_path)
    assert (answer.code, answer.out) == (3, "")
    SqliteStore(tmp_path / "levada.db").close()
    answer = why("--budget", "--data", tmp_path)
    assert answer.code == 3
    assert f"no page is stored in {tmp_path} yet" in answer.said


def test_a_page_or_the_budget_and_not_both(data: Path) -> None:
    both = why("https://example.org/", "--budget", "--data", data)
    neither = why("--data", data)
    assert (both.code, neither.code) == (2, 2)
    assert "not both" in both.said
