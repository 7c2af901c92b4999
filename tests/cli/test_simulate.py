"""`levada simulate`: its output, and its messages for wrong input."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from levada.cli.app import app
from levada.cli.options import ended_at_once
from levada.core.errors import LevadaError, UsageError
from levada.stages import CONTROLLERS

RUN = CliRunner()
PROMISED = {
    "generated",
    "completed",
    "dropped",
    "latency_mean_s",
    "latency_p99_s",
    "latency_max_s",
    "queue_mean",
    "queue_max",
    "on_workers",
    "paid_workers",
    "decisions",
    "throughput_per_min",
}


def answer(*words: str) -> dict[str, Any]:
    done = RUN.invoke(app, ["simulate", *words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_every_controller_answers_with_what_was_promised(controller: str) -> None:
    found = answer("--controller", controller, "--seconds", "20")
    assert set(found) >= PROMISED
    assert len(found["queue_mean"]) == 2


def test_a_controller_is_told_by_key_and_value() -> None:
    plain = answer("--controller", "linear", "threshold=75", "--seconds", "60")
    assert plain == answer("--seconds", "60", "--controller", "linear", "--set", "threshold=75")
    assert plain != answer("--controller", "linear", "threshold=40", "--seconds", "60")


def test_any_chain_and_load_can_be_asked_for(tmp_path: Path) -> None:
    (tmp_path / "times").write_text("0.1 0.2 0.3")
    times = f"0.25,lognormal:1:0.5,deterministic:0.5,recorded:{tmp_path / 'times'}"
    chain = ("--times", times, "--workers", "20,60,40,20", "--load", "steps:1,5", "--controller", "feed-forward")
    found = answer(*chain, "--seconds", "60", "--startup", "1", "--hold", "--crashes", "0.001")
    assert len(found["on_workers"]) == 4
    assert found["completed"] > 500


def test_a_person_reads_sentences_and_sees_a_picture(tmp_path: Path) -> None:
    words = ["simulate", "--seconds", "30", "--controller", "linear", "--picture", str(tmp_path / "run.svg")]
    done = RUN.invoke(app, words, catch_exceptions=False)
    assert "paid workers" in done.stdout
    assert (tmp_path / "run.svg").stat().st_size > 1_000


def test_a_sweep_compares_every_combination(tmp_path: Path) -> None:
    words = ("sweep", "--controller", "linear", "threshold=50,75", "history=5", "--runs", "1", "--seconds", "20")
    found = answer(*words, "--picture", str(tmp_path / "heat.png"))
    assert [each["name"] for each in found["settings"]] == [
        "linear threshold=50 history=5",
        "linear threshold=75 history=5",
    ]
    assert (tmp_path / "heat.png").stat().st_size > 1_000


@pytest.mark.parametrize("screen", [{}, {"FORCE_COLOR": "1"}], ids=("piped", "terminal"))
@pytest.mark.parametrize("columns", ["80", "40"])
def test_a_sweep_shows_every_figure_whole(columns: str, screen: dict[str, str]) -> None:
    grid = ["period=0.25", "threshold=75,100", "history=15", "startup=1.23457"]
    words = ["simulate", "sweep", *grid, "--runs", "1", "--seconds", "20"]
    found = answer(*words[1:])["settings"]
    done = RUN.invoke(app, words, env={"COLUMNS": columns, **screen}, catch_exceptions=False)
    assert "…" not in done.stdout
    for each in found:
        assert f" {each['paid_workers']:.1f}  " in done.stdout
        assert f" {each['latency_mean_s']:.3f}  " in done.stdout
        assert screen or each["name"].removeprefix("linear ") in done.stdout


def test_the_fewest_workers_are_named() -> None:
    found = answer("size", "--rate", "5", "--times", "0.2,1", "--latency", "1.4", "--seconds", "500", "--runs", "1")
    assert found["dropped"] == 0
    done = RUN.invoke(app, ["simulate", "size", "--rate", "5", "--times", "0.2", "--latency", "0.5", "--seconds", "99"])
    assert "Erlang" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["--controller", "guess"],
        ["--controller", "linear", "speed=1"],
        ["--controller", "linear", "threshold=x"],
        ["--controller", "linear", "threshold=0"],
        ["--set", "threshold"],
        ["--orchestrators", "-1"],
        ["--orchestrators", "0"],
        ["--scanners", "-1"],
        ["--scanners", "nan"],
        ["--seconds", "0"],
        ["--seconds", "nan"],
        ["--seed", "-1"],
        ["--times", "1,2,3"],
        ["--times", "1,2", "--workers", "1"],
        ["--times", "soon,5"],
        ["--times", "recorded:/no/such,5"],
        ["--times", "lognorml:5:1,5"],
        ["--times", "recorded:/,5"],
        ["--times", "1", "--workers", "nan"],
        ["--times", "1", "--workers", "inf"],
        ["--times", "1", "--workers", "1.7"],
        ["--controller", "linear", "threshold=1/2/3"],
        ["--controller", "linear", "threshold=1/2", "--times", "1,1,1", "--workers", "5,5,5"],
        ["--crashes", "1e300"],
        ["--slow-from", "nan"],
        ["--load", "waves:3"],
        ["--load", "recorded:/"],
        ["--load", "daily:1,5,1e-300"],
        ["--load", "bursts:1,2,1e-9,1e-8"],
        ["--picture", "run.gif"],
        ["size", "--rate", "0", "--times", "1", "--latency", "2"],
        ["size", "--rate", "1", "--times", "3", "--latency", "2"],
        ["size", "--rate", "1", "--times", "x", "--latency", "2"],
        ["sweep", "--runs", "0"],
        ["sweep", "--controller", "guess"],
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_one_clear_line(words: list[str]) -> None:
    with pytest.raises(UsageError):
        RUN.invoke(app, ["simulate", *words], catch_exceptions=False)


def test_ctrl_c_ends_a_calculation_that_python_cannot_interrupt() -> None:
    program = "from levada.cli.options import ended_at_once\nimport os, signal\n"
    program += "with ended_at_once(): os.kill(os.getpid(), signal.SIGINT); print('still here')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60.0)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_ctrl_c_is_heard_again_once_the_calculation_is_over() -> None:
    before = signal.getsignal(signal.SIGINT)
    with ended_at_once():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is before


def test_a_folder_that_is_not_there_is_said_before_the_run() -> None:
    with pytest.raises(LevadaError, match="no folder"):
        RUN.invoke(app, ["simulate", "--picture", "/no/such/run.svg"], catch_exceptions=False)


@pytest.mark.parametrize("words", [["--only", "all"], ["--runs", "0"], ["--seconds", "1"], ["--picture", "x.gif"]])
def test_the_laboratory_refuses_what_it_does_not_know(words: list[str]) -> None:
    with pytest.raises(UsageError):
        RUN.invoke(app, ["lab", "stages", *words], catch_exceptions=False)


def test_the_laboratory_prints_source_and_ours() -> None:
    words = ["lab", "stages", "--only", "checks", "--runs", "1", "--seconds", "200"]
    done = RUN.invoke(app, words, catch_exceptions=False)
    assert "printed | ours" in done.stdout
    assert "come out again" in done.stdout
