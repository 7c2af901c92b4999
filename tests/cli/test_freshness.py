from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from levada.cli.app import app
from levada.core.errors import UsageError
from levada.freshness import RULES


def said(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["freshness", "intervals", *arguments])
    if isinstance(result.exception, UsageError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def answer(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(*arguments, "--json"))
    return found


def test_the_papers_rule_in_minutes() -> None:
    found = answer("--policy", "ema", "--first", "60", "--outcomes", "1,2,1,1")
    assert found["policy"] == "ema"
    assert found["intervals"] == pytest.approx([72, 72 / 1.3, 72 / 1.3 * 1.28, 72 / 1.3 * 1.28**2])


@pytest.mark.parametrize("policy", RULES)
def test_every_rule_can_be_asked(policy: str) -> None:
    found = answer("--policy", policy, "--first", "60", "--outcomes", "1, 2,1")
    assert found["policy"] == policy
    assert len(found["intervals"]) == 3
    assert all(0 < minutes < 1e6 for minutes in found["intervals"])


def test_floor_and_ceiling_are_minutes_too() -> None:
    options = ("--first", "60", "--floor", "50", "--ceiling", "70", "--outcomes", "1,2,2")
    assert answer(*options)["intervals"] == pytest.approx([70, 70 / 1.3, 50])


def test_each_visit_comes_when_the_interval_before_it_has_passed() -> None:
    found = answer("--policy", "nutch", "--first", "60", "--outcomes", "1,1")["intervals"]
    assert found == pytest.approx([84 - 0.3 * 60, max(84 * 1.4, 126) - 0.3 * 126])


def test_a_person_gets_a_table() -> None:
    lines = said("--outcomes", "1,2").splitlines()
    assert lines == [
        "visit  met        next after",
        "    2  unchanged  72.00 min",
        "    3  changed    55.38 min",
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--outcomes", "1,3"], "'3' is neither 1 (unchanged) nor 2 (changed)"),
        (["--outcomes", ""], "'' is neither"),
        (["--outcomes", "1,,2"], "'' is neither"),
        (["--outcomes", "x" * 5000], "x…' is neither"),
        (["--outcomes", "1", "--policy", "guess"], 'no plug-in "guess"; known: cho, ema'),
        (["--outcomes", "1", "--first", "0"], "ema needs floor <= first <= ceiling"),
        (["--outcomes", "1", "--first", "nan"], "ema needs floor <= first <= ceiling"),
        (["--outcomes", "1", "--first", "5", "--floor", "6"], "not 360 s, 300 s"),
        (["--outcomes", "1", "--first", "5", "--ceiling", "4"], "not 0 s, 300 s, 240 s"),
    ],
)
def test_what_makes_no_sense_is_answered_in_one_line(arguments: list[str], told: str) -> None:
    with pytest.raises(UsageError) as error:
        said(*arguments)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200
