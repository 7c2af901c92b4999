"""The capacity model: laws that any arithmetic over costs must keep, and what the command answers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from levada.cli.app import app
from levada.core.errors import UsageError
from levada.lab.cluster import Cluster, Machine, Part, Prices, Workload, plan_cluster, read_costs

COSTS = read_costs()
MACHINE = Machine()

workloads = st.builds(
    Workload,
    pages=st.floats(1e3, 1e10),
    fetches=st.floats(1, 1e5),
    changed=st.floats(0, 1),
    versions=st.floats(1, 100),
    page_kb=st.floats(1, 1000),
    searches=st.floats(0, 1e4),
    peak=st.floats(1, 10),
)


def part(cluster: Cluster, name: str) -> Part:
    return next(each for each in cluster.parts if each.name == name)


@given(workloads, st.sampled_from(["pages", "fetches", "searches", "page_kb"]), st.floats(1, 100))
def test_more_work_never_needs_less(work: Workload, what: str, times: float) -> None:
    more = msgspec.structs.replace(work, **{what: getattr(work, what) * times})
    little, much = plan_cluster(work, MACHINE, COSTS), plan_cluster(more, MACHINE, COSTS)
    assert much.machines >= little.machines
    for before, after in zip(little.parts, much.parts, strict=True):
        for figure in ("cores", "memory_gb", "disk_gb", "network_mbit", "machines"):
            assert getattr(after, figure) >= getattr(before, figure) * (1 - 1e-9), figure


@given(workloads)
def test_at_its_limit_a_part_fills_one_machine(work: Workload) -> None:
    for each in plan_cluster(work, MACHINE, COSTS).parts:
        if each.name in ("control", "PostgreSQL") or not 0 < each.single_limit < math.inf:
            continue  # one core, and two machines
        at_limit = plan_cluster(msgspec.structs.replace(work, fetches=each.single_limit), MACHINE, COSTS)
        assert part(at_limit, each.name).machines >= 1 - 1e-6


@given(workloads)
def test_the_first_limit_is_the_least_of_the_engines(work: Workload) -> None:
    found = plan_cluster(work, MACHINE, COSTS)
    engines = [each for each in found.parts if not each.name.endswith("workers")]
    assert found.first_limit_fetches == min(each.single_limit for each in engines)
    assert part(found, found.first_limit).single_limit == found.first_limit_fetches


def test_cpu_is_what_was_measured_times_how_often() -> None:
    work = Workload(pages=1e6, fetches=100, changed=0.5, page_kb=COSTS.page.kb, peak=1)
    worker = part(plan_cluster(work, MACHINE, COSTS), "fetch workers")
    assert worker.cores == pytest.approx((COSTS.cpu.fetch_visit + 0.5 * COSTS.cpu.fetch_version) / 10)


def test_money_is_machines_disks_and_traffic() -> None:
    work = Workload(pages=1e6, fetches=10)
    free = plan_cluster(work, MACHINE, COSTS, Prices())
    by_core = plan_cluster(work, MACHINE, COSTS, Prices(core=3))
    assert free.money == 0
    assert by_core.money == 3 * MACHINE.cores * by_core.machines
    assert plan_cluster(work, MACHINE, COSTS).money is None


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["simulate", "cluster", *words], catch_exceptions=False)


def test_the_command_prints_every_part_and_the_first_limit() -> None:
    done = run("--pages", "1e9", "--fetches", "5000", "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert found["machines"] > 10
    assert [each["name"] for each in found["parts"]][:2] == ["fetch workers", "catalog workers"]
    text = run("--pages", "2e7", "--fetches", "200", "--price", "core=12,disk=0.1")
    assert "outgrow" in text.stdout
    assert "a month at these prices" in text.stdout


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--pages", "0", "--fetches", "5"), "--pages must be between"),
        (("--pages", "nan", "--fetches", "5"), "--pages must be between"),
        (("--pages", "10", "--fetches", "5", "--price", "gold=1"), "'gold' is none of core, memory"),
        (("--pages", "10", "--fetches", "5", "--machine", "cores=many"), "cores must be a number, not 'many'"),
        (("--pages", "10", "--fetches", "5", "--machine", "load=2"), "load is a share"),
        (("--pages", "10", "--fetches", "5", "--costs", "nowhere.toml"), "nowhere.toml cannot be read"),
    ],
)
def test_wrong_words_are_refused_in_one_sentence(words: tuple[str, ...], what: str) -> None:
    with pytest.raises(UsageError, match=what.replace("(", r"\(")):
        run(*words)


def test_a_file_of_costs_is_checked(tmp_path: Path) -> None:
    shipped = Path(__file__).parents[2] / "src/levada/lab/data/cluster_costs.toml"
    own = tmp_path / "own.toml"
    own.write_text(shipped.read_text().replace("fetch_visit", "fetch_visits"))
    with pytest.raises(UsageError, match="fetch_visit"):
        read_costs(own)
    own.write_text(shipped.read_text().replace("kb = 24.0", "kb = 0.0"))
    with pytest.raises(UsageError, match="more than 0"):
        read_costs(own)
