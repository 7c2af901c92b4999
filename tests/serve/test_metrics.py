"""The names that Prometheus reads are those that are documented, and a dashboard asks for no other."""

from __future__ import annotations

import json
import re
from pathlib import Path

from starlette.testclient import TestClient

from levada.serve.metrics import METRICS

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"\blevada_[a-z_]+\b")


def shown(name: str, kind: str) -> str:
    return f"{name}_total" if kind == "counter" else name


def test_every_metric_is_documented_and_every_documented_one_is_there() -> None:
    documented = set(re.findall(r"^\| `(levada_[a-z_]+)`", (ROOT / "docs/serve.md").read_text(), re.MULTILINE))
    assert documented == {shown(each.name, each.kind) for each in METRICS}


def test_a_scrape_has_only_known_names(api: TestClient) -> None:
    answer = api.get("/metrics")
    assert answer.status_code == 200
    known = {shown(each.name, each.kind) for each in METRICS}
    told = {line.split("{")[0].split(" ")[0] for line in answer.text.splitlines() if not line.startswith("#")}
    assert {"levada_up", "levada_documents", "levada_pages"} <= told <= known


def test_an_odd_reason_is_a_label_like_any_other(api: TestClient) -> None:
    states = [line for line in api.get("/metrics").text.splitlines() if line.startswith("levada_pages{")]
    assert 'levada_pages{state="gone"} 1.0' in states


def test_the_grafana_dashboard_asks_only_for_metrics_that_exist() -> None:
    board = json.loads((ROOT / "deploy/grafana/levada.json").read_text())
    asked = {name for panel in board["panels"] for target in panel["targets"] for name in NAME.findall(target["expr"])}
    assert asked
    assert asked <= {shown(each.name, each.kind) for each in METRICS}
