"""Contract suite of the exporter: every stored page is written to one file or folder, whatever it contains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import StoreError, UsageError
from levada.core.files import ExportContext
from levada.core.protocols import Exporter
from levada.core.records import Document
from levada.testing.common import a_document, properties


class ExporterContract:
    """Each page is exported once, any text survives the format, and a failure reaches the caller.

    ```python
    class TestMyExporter(ExporterContract):
        def make(self) -> Exporter:
            return MyExporter()

        def urls(self, path: Path) -> list[str]:
            return [row["url"] for row in my_reader(path)]
    ```
    """

    name = "out"
    """Of the file or folder to write."""

    def make(self) -> Exporter:
        raise NotImplementedError

    def write(self, documents: Iterable[Document], path: Path) -> None:
        """Export to a file or folder that is not there yet."""
        assert self.make().export(iter(documents), path, ExportContext()) >= 0

    def urls(self, path: Path) -> list[str]:
        """The URLs of the exported pages, read back by another program."""
        raise NotImplementedError

    def test_every_page_is_exported_once(self, tmp_path: Path) -> None:
        pages = [a_document(number, f"s{number % 7}.example") for number in range(300)]
        self.write(iter(pages), tmp_path / self.name)
        assert sorted(self.urls(tmp_path / self.name)) == sorted(page.url for page in pages)

    def test_an_export_of_nothing_can_be_read(self, tmp_path: Path) -> None:
        self.write([], tmp_path / self.name)
        assert self.urls(tmp_path / self.name) == []

    @properties(25)
    @given(st.text(st.characters(codec=None), max_size=40))
    def test_any_text_can_be_exported(self, tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
        path = tmp_path_factory.mktemp("export") / self.name
        odd = a_document(title=text, text=text, headers=((text, text), ("content-type", text)), language=text)
        self.write([odd, a_document(2)], path)
        assert self.urls(path) == [odd.url, "http://example.org/2"]

    @pytest.mark.parametrize("at", [0.0, -1e18, 1e18, float("inf"), float("nan")])
    def test_an_impossible_time_does_not_stop_an_export(self, tmp_path: Path, at: float) -> None:
        self.write([a_document(fetched_at=at, checked_at=at)], tmp_path / self.name)
        assert len(self.urls(tmp_path / self.name)) == 1

    @pytest.mark.parametrize("status", [0, 99, 200, 404, 599])
    def test_any_status_can_be_exported(self, tmp_path: Path, status: int) -> None:
        self.write([a_document(status=status, body=b"")], tmp_path / self.name)
        assert len(self.urls(tmp_path / self.name)) == 1

    def test_a_failure_of_the_store_ends_the_export_with_its_own_error(self, tmp_path: Path) -> None:
        def broken() -> Iterator[Document]:
            yield a_document()
            raise StoreError("the store cannot be read")

        with pytest.raises(StoreError, match="cannot be read"):
            self.write(broken(), tmp_path / self.name)
        assert list(tmp_path.iterdir()) == [], "an export that failed leaves nothing behind"

    def test_an_existing_file_is_replaced_only_with_force(self, tmp_path: Path) -> None:
        path = tmp_path / self.name
        self.write([a_document(1)], path)
        with pytest.raises(UsageError):
            self.write([a_document(2)], path)
        assert self.urls(path) == [a_document(1).url]
        self.make().export(iter([a_document(2)]), path, ExportContext(force=True))
        assert self.urls(path) == [a_document(2).url]

    def test_it_says_how_its_files_end(self) -> None:
        suffix = self.make().suffix
        assert suffix == "" or (suffix.startswith(".") and suffix == suffix.strip())
