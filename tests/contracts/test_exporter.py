"""The exporter contract, run on every format."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from pyarrow import parquet
from warcio.archiveiterator import ArchiveIterator

from levada.core.plugins import load
from levada.core.protocols import Exporter
from levada.testing import ExporterContract


class TestJsonLines(ExporterContract):
    def make(self) -> Exporter:
        return load("levada.exporters", "jsonl")  # type: ignore[no-any-return]

    def urls(self, path: Path) -> list[str]:
        return [msgspec.json.decode(line)["url"] for line in path.read_bytes().splitlines()]


class TestMarkdownInJsonLines(TestJsonLines):
    def make(self) -> Exporter:
        return load("levada.exporters", "jsonl-markdown")  # type: ignore[no-any-return]


class TestMarkdown(ExporterContract):
    @pytest.fixture(autouse=True, params=["out.md", "out"])
    def _named(self, request: pytest.FixtureRequest) -> None:
        self.name: str = request.param

    def make(self) -> Exporter:
        return load("levada.exporters", "markdown")  # type: ignore[no-any-return]

    def urls(self, path: Path) -> list[str]:
        files = sorted(path.glob("*/*.md")) if path.is_dir() else [path]
        heads = [line for file in files for line in file.read_text().split("\n") if line.startswith("url: ")]
        return [msgspec.json.decode(line.removeprefix("url: ")) for line in heads]


class TestParquet(ExporterContract):
    def make(self) -> Exporter:
        return load("levada.exporters", "parquet")  # type: ignore[no-any-return]

    def urls(self, path: Path) -> list[str]:
        found: list[str] = parquet.read_table(path)["url"].to_pylist()
        return found


class TestWarc(ExporterContract):
    @pytest.fixture(autouse=True, params=["out.warc", "out.warc.gz"])
    def _named(self, request: pytest.FixtureRequest) -> None:
        self.name: str = request.param

    def make(self) -> Exporter:
        return load("levada.exporters", "warc")  # type: ignore[no-any-return]

    def urls(self, path: Path) -> list[str]:
        with path.open("rb") as file:
            return [
                record.rec_headers.get_header("WARC-Target-URI")
                for record in ArchiveIterator(file)
                if record.rec_type == "response"
            ]


class TestXml(ExporterContract):
    def make(self) -> Exporter:
        return load("levada.exporters", "xml")  # type: ignore[no-any-return]

    def urls(self, path: Path) -> list[str]:
        entries = [entry for file in sorted(path.iterdir()) for entry in ElementTree.parse(file).getroot()]
        return [entry.findtext("url", "") for entry in entries]
