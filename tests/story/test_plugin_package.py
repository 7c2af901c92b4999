"""A package of plug-ins, built and installed as a user would, and used by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import HOUSE
from tests.needs import package

PLUGIN = HOUSE / "examples" / "plugin"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where the package is installed beside this Levada."""
    package("hatchling")
    target = tmp_path_factory.mktemp("site")
    flags = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *flags, "--target", str(target), str(PLUGIN)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    path = os.pathsep.join([str(target), str(HOUSE / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path}


def levada(environment: dict[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "levada", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)


def test_the_package_keeps_levadas_contracts(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(PLUGIN), "tests"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=PLUGIN)
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_plug_ins_are_listed_with_where_they_come_from(environment: dict[str, str], tmp_path: Path) -> None:
    rows = json.loads(levada(environment, tmp_path, "plugins", "--json").stdout)["plugins"]
    ours = [(row["group"], row["name"], row["trouble"]) for row in rows if row["source"] == "levada-office 1.0"]
    assert ours == [("levada.policies", "office-hours", ""), ("levada.exporters", "csv", "")]


def test_a_rule_cannot_be_asked_of_a_policy(environment: dict[str, str], tmp_path: Path) -> None:
    done = levada(environment, tmp_path, "freshness", "intervals", "--outcomes", "1", "--policy", "office-hours")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_pages_leave_in_the_form_of_the_plug_in(environment: dict[str, str], tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from levada.core.settings import parse_settings
from levada.collection.components import make_policy
from levada.core.records import Outcome
from levada.core.folder import DataFolder
from levada.store.sqlite import SqliteStore
from levada.testing.store.visits import visited
settings = parse_settings(Path("levada.toml").read_text(), "levada.toml")
policy = make_policy(settings)
folder = DataFolder(Path("levada-data"))
folder.make()
folder.save_settings(settings)
store = SqliteStore(folder.database)
for number in range(3):
    visited(store, f"http://a{number}.test/", f"a{number}.test", "words", 1.0 * number)
store.close()
print(type(policy).__name__)
"""
    (tmp_path / "levada.toml").write_text(
        '[revisit]\npolicy = "office-hours"\n[plugins.office-hours]\nopens = 9.0\n[plugins.csv]\ndelimiter = ";"\n'
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert made.stdout == "ContainedPolicy\n", made.stderr
    done = levada(environment, tmp_path, "export", "--format", "csv", "--out", "pages.csv")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "pages.csv").read_text().splitlines()
    assert lines[0] == "url;title;words;fetched_at"
    assert len(lines) == 4
    wrong = levada(environment, tmp_path, "export", "--format", "cvs", "--out", "pages.cvs")
    assert wrong.returncode == 2
    known = "csv, jsonl, jsonl-markdown, markdown, parquet, warc, xml"
    assert f'format: no plug-in "cvs"; known: {known} (did you mean "csv"?)' in wrong.stderr
