"""Levada's own contract suites, run on the plug-ins of this package as Levada finds them: by name."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

from levada.core.plugins import load
from levada.core.protocols import Exporter, RevisitPolicy
from levada.core.records import Outcome
from levada.freshness import PageEstimates, Scale
from levada.testing import ExporterContract, RevisitPolicyContract
from levada.testing.policy import a_page, visited

HOUR, DAY = 3600.0, 86_400.0


def office_hours(**options: float) -> RevisitPolicy:
    estimates = PageEstimates(Scale.between(300.0, 30 * DAY))
    made: RevisitPolicy = load(
        "levada.policies",
        "office-hours",
        options or None,
        estimates=estimates,
        first=HOUR,
        floor=300.0,
        ceiling=30 * DAY,
    )
    return made


class TestCsv(ExporterContract):
    def make(self) -> Exporter:
        made: Exporter = load("levada.exporters", "csv")
        return made

    def urls(self, path: Path) -> list[str]:
        csv.field_size_limit(sys.maxsize)
        with path.open(encoding="utf-8", newline="") as file:
            return [row["url"] for row in csv.DictReader(file)]


class TestOfficeHours(RevisitPolicyContract):
    def make(self) -> RevisitPolicy:
        return office_hours()


@pytest.mark.parametrize("hour", range(24))
def test_every_visit_falls_into_office_hours(hour: int) -> None:
    page = visited(office_hours(opens=9.0, closes=17.0), a_page(), hour * HOUR, Outcome.FIRST)
    assert page.next_visit is not None
    assert 9 * HOUR <= page.next_visit % DAY < 17 * HOUR
