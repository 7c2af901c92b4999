"""The simulator agrees with queueing theory and the report, and loses no job."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from levada.core.compile_cache import compiled
from levada.core.errors import UsageError
from levada.lab.stages.comparison import LOADS, OURS, compare, limits_section, load_model, startup_section
from levada.lab.stages.figures import StageFigures, rank_correlation, scores
from levada.lab.stages.model import Model, StageModel, bursts, constant, daily, parse_load, report_model, steps
from levada.lab.stages.report import money_sections, run_best, side_by_side_section
from levada.lab.stages.runs import Options, StageJob, begun, follow, rules_of, run_jobs, simulate
from levada.lab.stages.sizing import erlang_share_above, erlang_wait, fewest_workers, size
from levada.stages.rules import CONTROLLERS, rule_named
from levada.stages.sample import FIELDS


def run(model: Model, controller: str, most: tuple[int, ...], options: Options = ()) -> StageFigures:
    (figures,) = run_jobs([StageJob(model, controller, most, options)])
    return figures


def plain(service: float = 0.25, **more: float) -> StageModel:
    """As the formulas have it: no entry, no polls, no limit."""
    return StageModel(service=service, entry=0.0, poll=0.0, capacity=1_000_000, **more)  # type: ignore[arg-type]


def test_one_scanner_and_one_orchestrator_are_mm1() -> None:
    found = []
    for seed in range(1, 7):
        model = Model(stages=(plain(),), load=constant(1.0), interval=0.3, seconds=30_000.0, seed=seed)
        figures = run(model, "static", (1,))
        found.append((figures.queue_mean[0], figures.queue_latency_mean_s[0]))
    means, errors = np.mean(found, axis=0), 3 * np.std(found, axis=0, ddof=1) / math.sqrt(len(found))
    assert abs(means[0] - 25 / 6) <= errors[0]
    assert abs(means[1] - 1.25) <= errors[1]
    assert erlang_wait(1 / 0.3, 0.25, 1) == pytest.approx(1.25)


@pytest.mark.parametrize(("workers", "rate"), [(3, 10.0), (10, 36.0)])
def test_several_workers_wait_as_erlang_says(workers: int, rate: float) -> None:
    waits = []
    for seed in range(1, 7):
        model = Model(stages=(plain(),), load=constant(1.0), interval=1 / rate, seconds=4_000.0, seed=seed)
        waits.append(run(model, "static", (workers,)).queue_latency_mean_s[0])
    error = 3 * np.std(waits, ddof=1) / math.sqrt(len(waits))
    assert abs(np.mean(waits) - erlang_wait(rate, 0.25, workers)) <= error


@pytest.mark.parametrize(("scanners", "most"), [(3.0, (14, 174)), (5.0, (19, 280))])
def test_the_reports_static_sizes_keep_latency_low_and_drop_nothing(scanners: float, most: tuple[int, int]) -> None:
    found = [run(report_model(scanners, seconds=4_000.0, seed=seed), "static", most) for seed in (1, 2)]
    assert sum(each.dropped for each in found) == 0
    assert np.mean([each.latency_mean_s for each in found]) == pytest.approx(5.26, abs=0.04)
    assert found[0].on_workers == pytest.approx(most)


def test_the_reports_best_settings_need_as_many_workers_as_printed() -> None:
    model = report_model(seconds=4_000.0, poll=0.0015)
    linear = run(model, "linear", (14, 174))
    assert linear.on_workers == pytest.approx([7.41, 133.9], rel=0.03)
    assert sum(linear.paid_workers) == pytest.approx(157.5, rel=0.03)
    target = ("target", (2 * 0.001125, 2 * 0.006))
    drain = run(model, "drain-time", (14, 174), (("stable", (5.0,)), target))
    assert drain.on_workers == pytest.approx([10.0, 145.9], rel=0.05)


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("idle_first", [True, False])
def test_no_job_is_lost_or_doubled(controller: str, idle_first: bool) -> None:
    """Every job is done, dropped, waiting or in work; crashes only repeat."""
    stages = tuple(StageModel(service=service, startup=1.0) for service in (0.25, 2.0, 0.5))
    model = Model(stages=stages, load=steps((1.0, 4.0, 0.0), 90.0), seconds=300.0, idle_first=idle_first, crashes=0.01)
    silent = msgspec.structs.replace(model, load=msgspec.structs.replace(model.load, length=math.inf))
    figures = run(silent, controller, (10, 60, 30))
    assert figures.generated == figures.completed + figures.dropped
    assert figures.generated > 1_000
    assert figures.crashes > 0
    assert all(paid >= on - 1e-9 for paid, on in zip(figures.paid_workers, figures.on_workers, strict=True))


@pytest.mark.parametrize("times", ["exponential", "deterministic", "lognormal", "recorded"])
def test_times_of_every_kind_have_their_mean(times: str) -> None:
    stage = StageModel(service=2.0, times=times, spread=0.5, recorded=(1.0, 2.0, 3.0) if times == "recorded" else ())
    model = begun(Model(stages=(stage,), load=constant(1.0), seconds=2_000.0), (60,))
    figures = simulate(model, (rule_named("static", 60, 60),))
    assert figures.latency_mean_s == pytest.approx(2.0, rel=0.03)
    if times == "deterministic":
        assert figures.latency_p50_s == pytest.approx(2.0, abs=0.01)


def test_services_that_double_half_way_do() -> None:
    stage = StageModel(service=1.0, times="deterministic")
    model = Model(stages=(stage,), load=constant(1.0), seconds=1_000.0, slow_from=500.0)
    assert run(model, "static", (50,)).latency_mean_s == pytest.approx(1.5, rel=0.05)
    assert model.busy_floor == pytest.approx(15.0)


def test_the_same_seed_gives_the_same_run_and_another_another() -> None:
    one, again, other = (run(report_model(seconds=50.0, seed=seed), OURS, (30, 300)) for seed in (1, 1, 2))
    assert one == again
    assert one != other


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_what_is_compiled_decides_like_what_runs_beside_live_queues(controller: str) -> None:
    rule = rule_named(controller, 1, 100)
    random = np.random.default_rng(1)
    live, arrays = [0.0] * rule.width, np.zeros(rule.width)
    counts = np.zeros(FIELDS)
    step: Callable[..., float] = compiled(rule.step)
    for number in range(200):
        counts[0] = number * rule.period
        counts[1:5] = random.integers(0, 50), 10, random.integers(0, 11), 0
        counts[5:7] += random.integers(0, 30, 2)
        counts[8:] = 100, 5, random.integers(0, 9), 5, counts[5], 0.25, 30.0
        wanted = rule.step(live, rule.parameters, counts.tolist())
        assert step(arrays, np.array(rule.parameters), counts) == wanted


@pytest.mark.parametrize("load", ["constant", "steps", "bursts"])
def test_ours_is_close_to_the_floor_and_quick(load: str) -> None:
    model = load_model(load, 2_000.0, 7)
    figures = run(model, OURS, (80, 1000))
    assert figures.drop_rate <= 0.001
    assert sum(figures.queue_latency_mean_s) <= (0.16 if load == "bursts" else 0.12)
    assert sum(figures.paid_workers) <= 1.045 * sum(figures.busy_workers)


def test_back_pressure_makes_up_for_a_slow_start() -> None:
    stages = tuple(StageModel(service=service, startup=10.0) for service in (0.25, 5.0))
    open_model = Model(stages=stages, load=constant(3.0), seconds=2_000.0)
    held = run(msgspec.structs.replace(open_model, hold=True), OURS, (80, 1000))
    assert run(open_model, OURS, (80, 1000)).drop_rate > held.drop_rate
    assert held.drop_rate < 0.003
    assert held.held_s > 0.0


def test_ours_is_cheaper_than_linear_and_ds2_on_steps() -> None:
    ours, *others = compare(["steps"], [7], 300.0, [OURS, "linear", "ds2"], processes=1)
    assert ours.controller == OURS
    assert ours.keeps_limits
    assert {entry.controller for entry in others} == {"linear", "ds2"}
    assert all(ours.paid_workers < entry.paid_workers for entry in others if entry.keeps_others)


def test_ours_is_held_to_its_limits_load_by_load() -> None:
    sections = [limits_section(400.0, [7], processes=1), startup_section(400.0, [7], processes=1)]
    assert all(tuple(name for name, _ in section.rows) == LOADS for section in sections)
    assert all(claims[0].measured < 0.3 for _, claims in sections[1].rows)
    assert all(claims[2].verdict == "holds" for _, claims in sections[0].rows)


def test_money_is_counted_both_ways() -> None:
    runs = run_best(1_000.0, [7], processes=1)
    counted, paid = (dict(section.rows) for section in money_sections(runs))
    assert [claim.measured for claim in counted["static"]] == pytest.approx([188, 63_356, 0], abs=1.0)
    for name in ("linear", "drain-time"):
        assert paid[name][0].measured > counted[name][0].measured
        assert paid[name][2].measured < counted[name][2].measured
    assert paid[OURS][2].measured > 0.7 * paid["linear"][2].measured
    assert len(side_by_side_section(runs).rows) == 2


def test_no_look_shows_more_workers_on_than_the_budget() -> None:
    stages = tuple(StageModel(service=service) for service in (0.25, 2.0, 0.5))
    model = Model(stages=stages, load=constant(4.0), seconds=200.0, budget=60)
    course = follow(model, tuple(rule_named(OURS, 1, 100) for _ in stages))
    assert course.on.sum(axis=1).max() == 60
    assert course.on.min() >= 1
    with pytest.raises(UsageError, match="budget of 2"):
        msgspec.structs.replace(model, budget=2)


def test_the_share_of_time_above_a_length_falls_with_it() -> None:
    assert erlang_share_above(-1, 10.0, 0.25, 3) == pytest.approx(erlang_wait(10.0, 0.25, 3) * 0.5 / 0.25)
    assert erlang_share_above(10, 10.0, 0.25, 3) > erlang_share_above(11, 10.0, 0.25, 3)
    assert erlang_share_above(10, 10.0, 0.25, 2) == 1.0


def test_the_fewest_workers_are_found_and_confirmed() -> None:
    assert fewest_workers(30.0, (0.25, 5.0), 5.26) == [13, 174]
    found = size(5.0, (0.2, 1.0), 1.4, 1_000.0, runs=2)
    assert found.dropped == 0
    assert max(found.queue_max) <= 50
    assert all(workers >= least for workers, least in zip(found.workers, found.formula, strict=True))


@pytest.mark.parametrize(
    ("rate", "times", "latency"), [(0.0, (1.0,), 2.0), (1.0, (), 2.0), (1.0, (-1.0,), 2.0), (1.0, (3.0,), 2.0)]
)
def test_sizes_that_cannot_be_are_refused(rate: float, times: tuple[float, ...], latency: float) -> None:
    with pytest.raises(UsageError):
        fewest_workers(rate, times, latency)


def test_loads_have_their_shapes() -> None:
    assert steps((1.0, 3.0), 10.0).pieces(10.0) == [(0.0, 1.0), (5.0, 2.0)]
    assert bursts(2.0, 10.0, 10.0, 120.0).mean(240.0) == pytest.approx(2 + 8 / 12)
    assert daily(1.0, 5.0, 100.0).mean(300.0) == pytest.approx(3.0)
    assert parse_load("steps:1,3", 10.0) == steps((1.0, 3.0), 10.0)


def test_a_recorded_load_is_read(tmp_path: Path) -> None:
    (tmp_path / "load").write_text("1\n2\n")
    assert parse_load(f"recorded:{tmp_path / 'load'}", 10.0).mean(4.0) == pytest.approx(1.5)


@pytest.mark.parametrize(
    "text",
    ["steps", "waves:1", "steps:x", "steps:-1", "bursts:1,2,3", "bursts:1,2,9,3", "daily:1,2,0", "recorded:/no"],
)
def test_loads_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_load(text, 10.0)


def test_a_course_follows_queues_and_workers() -> None:
    job = StageJob(report_model(seconds=100.0), "linear", (14, 174))
    course = follow(job.model, rules_of(job))
    assert course.at[-1] == 100.0
    assert course.on.shape == course.queue.shape == (101, 2)
    assert (course.paid >= course.on).all()


def test_a_score_is_between_nothing_and_the_best_there_can_be() -> None:
    runs = [[run(report_model(seconds=60.0), "linear", (14, 174), (("threshold", (each,)),))] for each in (50.0, 100.0)]
    found = scores(runs)
    assert all(0.0 <= score <= 3.2 + 1e-9 for score in found)
    assert sum(found) == pytest.approx(3.2, abs=0.6)
    assert rank_correlation([1.0, 2.0, 3.0], [10.0, 30.0, 20.0]) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "changes",
    [{"stages": ()}, {"seconds": 0.0}, {"seconds": math.nan}, {"seed": -1}, {"crashes": -1.0}, {"seconds": 1e12}],
    ids=str,
)
def test_models_that_cannot_be_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Model(**{"stages": (plain(),), "load": constant(3.0), **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [{"service": 0.0}, {"times": "late"}, {"capacity": 0}, {"poll": -1.0}], ids=str)
def test_stages_that_cannot_be_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Model(stages=(StageModel(**{"service": 1.0, **changes}),), load=constant(1.0))  # type: ignore[arg-type]
