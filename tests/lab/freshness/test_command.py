from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from levada.cli.lab import freshness as lab_module
from levada.cli.lab import tables as lab_extra
from tests.cli.collection import command

lab = command("lab", "freshness")


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "changes.tsv"
    path.write_text("a/x\t0\t\t900,300,5000\na/y\t10\t\t2000,2000\nb/z\t0\t8000\t40,400,800\n")
    return path


def test_a_history_file_is_replayed_and_what_was_set_right_is_said(history: Path) -> None:
    answer = lab("--history", history, "--policies", "ema,oracle", "--seeds", "1", "--json")
    assert answer.code == 0
    facts = json.loads(answer.out)
    assert set(facts) == {"rows", "claims", "repairs", "misprints"}
    assert facts["claims"] == []
    assert [row["policy"] for row in facts["rows"]] == ["ema", "oracle"]
    assert set(facts["rows"][0]) >= {
        *("world", "policy", "seed", "fetches", "freshness", "age", "caught", "delay_p50", "gap_closed"),
    }
    assert facts["repairs"] == [
        "change times were out of order: sorted (line 1)",
        "a change time was given twice: counted once (line 2)",
    ]


def test_worlds_and_the_papers_tables_are_shown_side_by_side(tmp_path: Path) -> None:
    picture = tmp_path / "gap.svg"
    answer = lab("--worlds", "poisson-12h", "--policies", "ema,oracle", "--seeds", "3", "--picture", picture)
    assert answer.code == 0
    assert "poisson-12h\npolicy " in answer.out
    assert "Trace of URL 1041: printed | ours" in answer.out
    assert "45.15 | 46.154 *" in answer.out
    assert "* misprint, trace of URL 1041: the first interval is printed as 45.15" in answer.out
    assert "hour 12, real-time" in answer.out
    assert "miss (✗)" in answer.out
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--worlds", "mars"], "no world is called 'mars'"),
        (["--policies", "guess"], 'no plug-in "guess"'),
        (["--seeds", "many"], "--seeds: 'many' is no number"),
        (["--seeds", "5-2"], "--seeds: '5-2' is empty"),
        (["--seeds", "1-99999999999"], "too long a range"),
        (["--seeds", "1,,2"], "is no number"),
        (["--days", "3"], "--days is for --history"),
        (["--history", "x.tsv", "--worlds", "ota-1y"], "leave --worlds out"),
        (["--picture", "gap.gif"], "must end in .svg or .png"),
    ],
)
def test_wrong_usage_is_said_at_once(arguments: list[str], told: str) -> None:
    answer = lab(*arguments)
    assert answer.code == 2
    assert told in answer.said


def test_a_picture_needs_a_folder_and_a_history_a_file(tmp_path: Path) -> None:
    assert lab("--picture", tmp_path / "no" / "gap.svg").code == 1
    answer = lab("--history", tmp_path / "no.tsv")
    assert answer.code == 3
    assert "there is no file" in answer.said


def test_a_bad_history_names_its_line(history: Path) -> None:
    history.write_text("a\t0\t\t5\nb\tNaN\t\t5\n")
    answer = lab("--history", history)
    assert answer.code == 2
    assert "changes.tsv, line 2: first seen must be between" in answer.said


def test_seeds_are_numbers_and_ranges() -> None:
    assert lab_module._seeds("1-3, 7,2") == (1, 2, 3, 7)


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_extra, "find_spec", lambda package: None)
    answer = lab("--worlds", "poisson-12h")
    assert answer.code == 2
    assert "pip install 'levada[lab]'" in answer.said


def test_help_loads_no_numbers() -> None:
    code = (
        "import sys; from levada.cli import main; sys.argv = ['levada', 'lab', 'freshness', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "assert not {'numpy', 'numba', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--history" in done.stdout
