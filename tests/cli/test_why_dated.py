"""`levada why` about pages that were visited once or twice, and whose server dates them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from levada.collection.components import make_policy
from levada.core.folder import DataFolder
from levada.core.records import DiscoveredBy, FoundUrl, Outcome, PageState, Signals, Visit, VisitResult
from levada.core.settings import BudgetSettings, ClockSettings, Settings
from levada.store.sqlite import SqliteStore
from tests.cli.collection import HOUR, NOW, command, version

why = command("why")
MINUTE, DAY = 60.0, 24 * HOUR
ONCE, CHANGED = "https://once.example/", "https://changed.example/"
SETTINGS = Settings(clock=ClockSettings(speed=1e-12, origin=NOW, started=1.0), budget=BudgetSettings(per_hour=60))
DATED = Signals.DATED | Signals.DATE_MOVED
MET = {
    ONCE: [(Visit(NOW - MINUTE, Outcome.FIRST, said=Signals.DATED), 4 * MINUTE)],
    CHANGED: [
        (Visit(NOW - MINUTE - DAY, Outcome.FIRST, said=Signals.DATED), 5 * HOUR),
        (Visit(NOW - MINUTE, Outcome.CHANGED, similarity=0.8, said=DATED), 4.5 * MINUTE),
    ],
}


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page visited once, four minutes after its date, and one that changed once, with a date as young."""
    path = tmp_path_factory.mktemp("dated") / "levada-data"
    folder = DataFolder(path)
    folder.make()
    folder.save_settings(SETTINGS)
    store, policy = SqliteStore(folder.database), make_policy(SETTINGS)
    try:
        found = [FoundUrl(url, url.split("/")[2], how=DiscoveredBy.SEED, admit=True) for url in MET]
        store.add(found, [], NOW - 2 * DAY)
        for url, visits in MET.items():
            for number, (visit, age) in enumerate(visits):
                lease = next(each for each in store.lease(NOW + 1e9, 99, 60.0) if each.page.url == url)
                plan = policy.plan(lease.page, visit, visit.at - age)
                result = VisitResult(
                    lease,
                    visit,
                    PageState.LIVE,
                    plan.interval,
                    visit.at + plan.interval,
                    memory=plan.memory,
                    version=version("Haberler", f"{url} {number}"),
                    text_digest=b"1",
                )
                store.commit([result])
                store.forget_leases()
    finally:
        store.close()
    return path


def estimate(url: str, data: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(why(url, "--json", "--data", data).out)
    return found


@pytest.mark.parametrize("url", [ONCE, CHANGED])
def test_one_visit_or_change_with_a_young_date_is_not_taken_for_one_every_few_minutes(url: str, dated: Path) -> None:
    rate = estimate(url, dated)
    assert rate["rate_per_day"] < 12.0
    assert rate["rate_high"] < 48.0  # at most once in half an hour, as far as one look can tell
    assert rate["believed_current"] > 0.9


def test_a_page_visited_once_may_never_change(dated: Path) -> None:
    rate = estimate(ONCE, dated)
    assert rate["rate_low"] < 1 / 30.0
    assert rate["chance_static"] > 0.1


def test_the_sentence_says_hours_and_the_range_not_minutes(dated: Path) -> None:
    told = " ".join(why(CHANGED, "--data", dated).out.split())
    assert re.search(r"changes about every [\d.]+ h \(between [\d.]+ h and [\d.]+ d\)", told)
