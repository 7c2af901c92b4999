"""`levada group`: its output, and its messages for wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from levada.cli.app import app
from levada.core.errors import LevadaError, NotFound, UsageError
from levada.grouping import METHODS

RUN = CliRunner()


def answer(*words: str) -> dict[str, float]:
    done = RUN.invoke(app, ["group", *words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    found: dict[str, float] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_with_five_figures(method: str) -> None:
    found = answer("--method", method, "--records", "20000", "--workers", "4")
    assert list(found) == ["deviation_percent", "distribution_cost", "max_over_mean", "latency_ms", "throughput"]


def test_any_lines_are_a_stream(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(b"a\nb\n\xff\na")
    assert answer("--stream", str(tmp_path / "keys"), "--method", "key", "--workers", "1")["distribution_cost"] == 1.0


def test_a_person_reads_sentences() -> None:
    done = RUN.invoke(app, ["group", "--records", "5000"])
    assert "workers per key" in done.stdout


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--workers", "0"], UsageError),
        (["--method", "fair"], UsageError),
        (["--skew", "101"], UsageError),
        (["--records", "0"], UsageError),
        (["--seed", "-1"], UsageError),
        (["--stream", "no-such-file"], UsageError),
        (["--stream", "/dev/null"], NotFound),
    ],
)
def test_what_makes_no_sense_is_one_clear_line(words: list[str], error: type[LevadaError]) -> None:
    with pytest.raises(error):
        RUN.invoke(app, ["group", *words], catch_exceptions=False)


def test_a_stream_that_was_mistyped_leads_to_the_near_one() -> None:
    with pytest.raises(UsageError, match="did you mean the stream shakespeare"):
        RUN.invoke(app, ["group", "--stream", "shakespear"], catch_exceptions=False)


@pytest.mark.parametrize(
    "words", [["--only", "everything"], ["--runs", "0"], ["--records", "1"], ["--picture", "x.gif"]]
)
def test_the_laboratory_refuses_what_it_does_not_know(words: list[str]) -> None:
    with pytest.raises(UsageError):
        RUN.invoke(app, ["lab", "grouping", *words], catch_exceptions=False)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--streams", "flights-dest,shakespear"], "no stream is called 'shakespear'"),
        (["--streams", "flights-dest", "--only", "growth"], "are for the comparison"),
    ],
)
def test_streams_that_cannot_be_compared_are_refused_before_any_work(
    words: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("levada.cli.lab.grouping.run", lambda *given, **named: pytest.fail("it has begun"))
    with pytest.raises(UsageError, match=told):
        RUN.invoke(app, ["lab", "grouping", *words], catch_exceptions=False)


def test_the_laboratory_follows_the_hot_key(tmp_path: Path) -> None:
    words = ["lab", "grouping", "--only", "growth", "--thesis-records", "100000"]
    done = RUN.invoke(app, [*words, "--picture", str(tmp_path / "growth.svg")], catch_exceptions=False)
    assert "levelled: the hot key had 7 workers" in done.stdout
    assert (tmp_path / "growth.svg").stat().st_size > 1_000
