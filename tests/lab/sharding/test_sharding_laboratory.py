"""The simulated ads have the numbers of the paper's table, and the laboratory prints its figures."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from levada.cli.app import app
from levada.core.errors import LevadaError
from levada.lab.sharding import comparison as tables
from levada.lab.sharding.ads import ACTIVE, AdsModel, ads
from levada.lab.sharding.comparison import Board, compare, draw_comparison


@pytest.fixture(scope="module")
def board() -> Board:
    return Board(AdsModel(documents=8_000, queries=8_000))


def test_the_made_ads_have_the_printed_shares_and_values(board: Board) -> None:
    section = tables.shares_section(board)
    by_field = dict(section.rows)
    assert {claim.verdict for claim in by_field["status"]} == {"holds"}
    shares = {field: claims[0] for field, claims in by_field.items()}
    assert [field for field, claim in shares.items() if abs(claim.measured - claim.printed) > 2.0] == []


@pytest.mark.parametrize("share", [0.35, 0.9])
def test_as_many_ads_are_active_as_was_said_and_the_newest_all_are(share: float) -> None:
    made = ads(AdsModel(active=share, documents=4_000))
    active = [ad["status"] == ACTIVE for ad in made]
    assert sum(active) / len(active) == pytest.approx(share, abs=0.03)
    assert sum(active[-200:]) >= 180
    assert [ad["_id"] for ad in made] == sorted({ad["_id"] for ad in made})


def test_every_row_of_the_table_of_fields_comes_out_again() -> None:
    assert {claim.verdict for claim in tables.key_section().claims} == {"holds"}


def test_the_same_seed_makes_the_same_ads_and_figures() -> None:
    one, other = (compare((0.35,), (2,), 1_000) for _ in range(2))
    assert one == other
    assert [entry.scheme for entry in one] == ["hashed-id", "paper", "hashed", "hashed+directory", "ours"]


def test_the_model_and_the_runs_stand_beside_what_was_printed() -> None:
    entries = compare((0.35,), (8,), 4_000)
    model = tables.model_section(entries)
    assert len(model.rows) == 4
    hashed_id = dict(model.rows)["hashed id"]
    assert [claim.verdict for claim in hashed_id[:3]] == ["holds"] * 3
    (runs,) = tables.runs_section(entries).rows
    assert [claim.printed for claim in runs[1]] == pytest.approx([1.8745, 5.9996, 3.2006], abs=1e-3)


def test_the_command_prints_the_key_and_why_fields_were_dropped() -> None:
    result = CliRunner().invoke(app, ["lab", "sharding", "--only", "key"])
    assert result.exit_code == 0, result.output
    assert "s04 ct01302 r013 c303 _id011648102" in result.output
    assert "(the same)" in result.output
    assert "dropped properties: far too many values" in result.output
    facts = msgspec.json.decode(CliRunner().invoke(app, ["lab", "sharding", "--only", "key", "--json"]).stdout)
    assert facts["key"] == "s04 ct01302 r013 c303 _id011648102"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--size", "10"], "between 1000 and 2000000"),
        (["--only", "nix"], "is none of key, model, comparison"),
        (["--only", "key", "--picture", "a.svg"], "add it to --only"),
        (["--picture", "a.gif"], "must end in .svg or .png"),
        (["--seed", "-1"], "--seed must be between"),
    ],
)
def test_wrong_options_are_refused(options: list[str], words: str) -> None:
    result = CliRunner().invoke(app, ["lab", "sharding", *options])
    assert isinstance(result.exception, LevadaError)
    assert words in str(result.exception)


def test_the_comparison_can_be_drawn(tmp_path: Path) -> None:
    draw_comparison(compare((0.35,), (2, 4), 1_000), tmp_path / "shards.svg")
    assert (tmp_path / "shards.svg").read_text(encoding="utf-8").startswith("<?xml")
