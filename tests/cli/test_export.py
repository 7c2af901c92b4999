from __future__ import annotations

import errno
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from levada.collection.shards import ReshardOptions, apply_shards
from levada.core.errors import LevadaError, StoreFull, StoreLocked, UsageError
from levada.core.files import CountingOutput, ExportContext, whole_file
from levada.core.folder import DataFolder, nobody_moves, only_mover
from levada.core.plugins import load
from levada.core.records import Document
from levada.core.structured import Item, Offer, StructuredData, pack_data
from levada.export import parquet as parquet_module
from levada.export import xml as xml_module
from levada.export.rows import row_of
from levada.export.xml import file_name
from levada.store.sqlite import SqliteStore
from tests.cli.collection import ESCAPE, FRONT, PLAIN, SCRIPT, VAPUR, command
from tests.needs import needs

export = command("export")
TIMES = {"fetched_at", "checked_at", "changed_at"}
FIELDS = {"url", "site", "title", "text", "language", "version", "words", "status"} | TIMES
STORED = [FRONT, ESCAPE, PLAIN, VAPUR, SCRIPT]


def document(number: int = 1, site: str = "example.org", **facts: object) -> Document:
    made = Document(
        page_id=number,
        url=f"https://{site}/{number}",
        site=site,
        version=1,
        title=f"page {number}",
        language="en",
        charset="utf-8",
        text=f"text {number}",
        body=b"<p>body</p>",
        status=200,
        headers=(("content-type", "text/html"),),
        fetched_at=1_800_000_000.0,
        checked_at=1_800_000_100.0,
        words=2,
        similarity=0.0,
        searchable=True,
    )
    return replace(made, **facts)


def write(form: str, pages: Iterable[Document], out: BinaryIO | CountingOutput, name: str = "-") -> None:
    load("levada.exporters", form).export(iter(pages), Path(name), ExportContext(stdout=cast("BinaryIO", out)))


def write_folder(pages: Iterable[Document], folder: Path, force: bool = False) -> None:
    load("levada.exporters", "xml").export(iter(pages), folder, ExportContext(force=force))


def drafts(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith((".part", ".old"))]


def exported_urls(data: Path, *arguments: str) -> list[str]:
    lines = export("--jsonl", *arguments, "--data", data).bytes.splitlines()
    return [json.loads(line)["url"] for line in lines]


def test_jsonl_has_an_object_per_stored_page(data: Path) -> None:
    answer = export("--jsonl", "--data", data)
    assert answer.code == 0
    rows = [json.loads(line) for line in answer.bytes.splitlines()]
    assert sorted(row["url"] for row in rows) == sorted(STORED)
    vapur = next(row for row in rows if row["url"] == VAPUR)
    assert set(vapur) >= FIELDS
    assert (vapur["version"], vapur["site"], vapur["language"]) == (3, "example.org", "tr")
    assert vapur["changed_at"] == "2027-01-15T07:50:00Z"
    assert "Beşiktaş 10:45" in vapur["text"]
    assert "5 pages, " in answer.said


def test_a_file_is_written_and_reported(data: Path, tmp_path: Path) -> None:
    target = tmp_path / "pages.jsonl"
    answer = export("--jsonl", "--out", target, "--json", "--data", data)
    report = json.loads(answer.out)
    assert report == {"format": "jsonl", "out": str(target), "pages": 5, "bytes": target.stat().st_size}
    assert len(target.read_bytes().splitlines()) == 5
    assert os.listdir(tmp_path) == ["pages.jsonl"]


def test_what_is_there_is_replaced_only_by_force(data: Path, tmp_path: Path) -> None:
    target = tmp_path / "pages.jsonl"
    target.write_text("precious")
    answer = export("--jsonl", "--out", target, "--data", data)
    assert (answer.code, target.read_text()) == (2, "precious")
    assert "--force" in answer.said
    assert export("--jsonl", "--out", target, "--force", "--data", data).code == 0
    assert len(target.read_bytes().splitlines()) == 5


def test_pages_can_be_chosen_by_site_and_time(data: Path) -> None:
    def urls(*arguments: str) -> set[str]:
        return set(exported_urls(data, *arguments))

    assert urls("--site", "plain.example:8080") == urls("--site", "plain.example") == {PLAIN}
    assert urls("--site", "example.net") == {ESCAPE}
    assert urls("--site", "https://EXAMPLE.org/x") == {FRONT, VAPUR, SCRIPT}
    assert urls("--since", "1h") == {VAPUR}
    assert urls("--since", "1h", "--site", "example.net") == set()


def test_nothing_to_export_is_status_3_and_leaves_nothing(data: Path, tmp_path: Path) -> None:
    for form in ("--jsonl", "--parquet", "--warc"):
        target = tmp_path / f"x{form}"
        answer = export(form, "--site", "nowhere.example", "--out", target, "--data", data)
        assert (answer.code, answer.out) == (3, "")
        assert "no page that was asked for" in answer.said
    assert export("--xml", tmp_path / "x", "--site", "nowhere.example", "--data", data).code == 3
    assert os.listdir(tmp_path) == []
    assert export("--jsonl", "--data", tmp_path / "none").code == 3


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["--jsonl", "--parquet"],
        ["--warc", "--xml", "dir"],
        ["--xml", "dir", "--out", "file"],
        ["--xml", "-"],
        ["--jsonl", "--json"],
        ["--jsonl", "--out", ""],
        ["--jsonl", "--since", "soon"],
        ["--jsonl", "--site", "http://["],
        ["--xml"],
        ["--csv"],
    ],
)
def test_wrong_arguments_are_wrong_usage(data: Path, wrong: list[str]) -> None:
    assert export(*wrong, "--data", data).code == 2


def test_a_place_that_cannot_be_written_is_one_line(data: Path, tmp_path: Path) -> None:
    answer = export("--jsonl", "--out", tmp_path / "no" / "such" / "x.jsonl", "--data", data)
    assert answer.code == 1
    assert answer.said.count("\n") == 1
    assert export("--jsonl", "--out", tmp_path, "--data", data).code == 2


@needs(Path("/dev/full").exists(), "this system has no /dev/full")
def test_a_full_disk_is_one_line_and_devices_are_never_replaced(data: Path) -> None:
    answer = export("--jsonl", "--out", "/dev/full", "--force", "--data", data)
    assert answer.code == 1
    assert "no space left" in answer.said
    assert export("--jsonl", "--out", "/dev/null", "--data", data).code == 0
    assert Path("/dev/null").is_char_device()
    assert Path("/dev/full").is_char_device()


def _interrupted_writing(out: BinaryIO, target: Path) -> None:
    out.write(b"half")
    assert not target.exists()
    raise KeyboardInterrupt


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "whole"
    with pytest.raises(KeyboardInterrupt), whole_file(target) as out:
        _interrupted_writing(out, target)
    assert os.listdir(tmp_path) == []

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreFull, match="no space left"), whole_file(target) as out:
        out.write(b"all")
    assert os.listdir(tmp_path) == []


def test_a_killed_export_leaves_no_file_under_its_name(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from pathlib import Path
        from levada.core.files import whole_file
        with whole_file(Path(sys.argv[1])) as out:
            out.write(b"half")
            out.flush()
            print("ready", flush=True)
            sys.stdin.read()
    """
    target = tmp_path / "pages.jsonl"
    command = [sys.executable, "-c", code, str(target)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.kill()
    assert not target.exists()
    assert len(drafts(tmp_path)) == 1
    with whole_file(target) as out:
        out.write(b"whole")
    assert target.read_bytes() == b"whole"


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "raced"
    with pytest.raises(UsageError, match="meanwhile"), whole_file(target):
        target.write_bytes(b"theirs")
    assert target.read_bytes() == b"theirs"
    assert drafts(tmp_path) == []


def test_jsonl_streams() -> None:
    out = io.BytesIO()

    def pages() -> Iterator[Document]:
        for number in range(100):
            assert out.getvalue().count(b"\n") == number
            yield document(number)

    write("jsonl", pages(), out)


@given(st.text(st.characters(codec=None), max_size=30))
def test_any_text_can_be_a_row(text: str) -> None:
    out = io.BytesIO()
    write("jsonl", [document(title=text, text=text)], out)
    assert json.loads(out.getvalue())["title"] == row_of(document(title=text)).title


def test_a_time_that_no_calendar_has_does_not_stop_an_export() -> None:
    assert row_of(document(fetched_at=1e300, checked_at=float("nan"))).fetched_at.year == 1970


def test_parquet_reads_back(data: Path, tmp_path: Path) -> None:
    from pyarrow import parquet

    target = tmp_path / "pages.parquet"
    assert export("--parquet", "--out", target, "--data", data).code == 0
    rows = parquet.read_table(target).to_pylist()
    assert [row["url"] for row in rows] == [
        json.loads(line)["url"] for line in export("--jsonl", "--data", data).bytes.splitlines()
    ]
    assert rows[0]["title"] == "İstanbul: ana sayfa"
    assert rows[0]["fetched_at"].isoformat() == "2027-01-14T22:00:00+00:00"


def test_structured_data_is_exported_as_columns_and_as_a_tree() -> None:
    from pyarrow import parquet

    item = Item(("Product",), {"name": ("Thermos",), "offers": (Item((), {"price": ("1.299,00",)}),)}, "microdata")
    packed = pack_data(StructuredData((item,), (Offer("1299.00", "TRY", "InStock"), Offer("5"))))
    said = {"name": ["Thermos"], "offers": [{"properties": {"price": ["1.299,00"]}}]}
    for form in ("jsonl", "parquet"):
        raw = io.BytesIO()
        write(form, [document(1, packed_data=packed), document(2)], CountingOutput(raw))
        if form == "jsonl":
            first, second = map(json.loads, raw.getvalue().splitlines())
        else:
            first, second = parquet.read_table(io.BytesIO(raw.getvalue())).to_pylist()
            first["items"], second["items"] = json.loads(first["items"]), json.loads(second["items"])
        assert (first["price"], first["currency"], first["availability"]) == ("1299.00", "TRY", "InStock")
        assert first["items"] == [{"type": ["Product"], "properties": said, "source": "microdata"}]
        assert (second["price"], second["currency"], second["availability"], second["items"]) == ("", "", "", [])


def test_parquet_row_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import parquet

    monkeypatch.setattr(parquet_module, "ROWS_PER_GROUP", 4)
    raw = io.BytesIO()
    write("parquet", (document(number) for number in range(10)), CountingOutput(raw))
    assert parquet.ParquetFile(io.BytesIO(raw.getvalue())).num_row_groups == 3
    monkeypatch.setattr(parquet_module, "CHARACTERS_PER_GROUP", 10)
    raw = io.BytesIO()
    write("parquet", (document(number, text="long enough") for number in range(10)), CountingOutput(raw))
    assert parquet.ParquetFile(io.BytesIO(raw.getvalue())).num_row_groups == 10


@pytest.mark.parametrize("name", ["pages.warc", "pages.warc.gz"])
def test_warc_opens_in_warcio(data: Path, tmp_path: Path, name: str) -> None:
    from warcio.archiveiterator import ArchiveIterator

    target = tmp_path / name
    assert export("--warc", "--out", target, "--data", data).code == 0
    assert (target.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
    seen = {}
    with target.open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            body = record.content_stream().read()
            assert record.rec_headers.protocol == "WARC/1.1"
            if record.rec_type == "response":
                seen[record.rec_headers["WARC-Target-URI"]] = (record, body)
    assert set(seen) == set(STORED)
    record, body = seen[VAPUR]
    assert "Beşiktaş 10:45" in body.decode()
    assert record.rec_headers["WARC-Date"] == "2027-01-15T07:50:00.000Z"
    assert record.rec_headers["WARC-Payload-Digest"].startswith("sha1:")
    http = record.http_headers
    assert http.get_statuscode() == "200"
    assert http["content-type"] == "text/html; charset=utf-8"
    assert http["content-length"] == str(len(body))
    assert http["x-levada-original-content-encoding"] == "gzip"
    assert "content-encoding" not in [name.lower() for name, _ in http.headers]
    assert "injected" not in [name.lower() for name, _ in http.headers]


def test_a_warc_is_compressed_record_by_record() -> None:
    raw = io.BytesIO()
    write("warc", [document(1), document(2)], raw, "x.warc.gz")
    assert raw.getvalue().count(b"\x1f\x8b\x08") >= 3
    assert gzip.decompress(raw.getvalue()).count(b"WARC/1.1\r\n") == 3


def test_odd_statuses_and_headers_make_a_valid_warc() -> None:
    from warcio.archiveiterator import ArchiveIterator

    headers = (
        ("", "x"),
        ("bad name", "x"),
        ("x-ok", "a\r\nb\x00c"),
        ("x-turkish", "İı"),
        ("Content-Length", "99999"),
    )
    raw = io.BytesIO()
    write("warc", [document(status=299, headers=headers, body=b"")], raw)
    records = [(each, each.content_stream().read()) for each in ArchiveIterator(io.BytesIO(raw.getvalue()))]
    record, body = records[1]
    assert body == b""
    assert record.http_headers.get_statuscode() == "299"
    assert record.http_headers["x-ok"] == "a b c"
    assert record.http_headers["content-length"] == "0"


def test_xml_is_one_file_per_site_with_an_entry_per_url(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    answer = export("--xml", folder, "--data", data)
    assert answer.code == 0
    assert f"5 pages, {sum(path.stat().st_size for path in folder.iterdir()) / 1000:.1f} kB" in answer.said
    roots = [ElementTree.parse(path).getroot() for path in sorted(folder.iterdir())]
    assert [root.get("name") for root in roots] == ["example.org", "haber.example.net", "plain.example:8080"]
    entries = {entry.findtext("url"): entry for root in roots for entry in root}
    assert set(entries) == set(STORED)
    assert all(int(entry.findtext("id") or 0) > 0 for entry in entries.values())
    assert entries[SCRIPT].findtext("title") == "<script>alert(1)</script> [bold]x[/bold]"
    assert entries[PLAIN].findtext("content") == "ferry times  and more"
    assert drafts(tmp_path) == []


def test_many_sites_need_few_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_module, "OPEN_FILES", 2)
    pages = (document(number, f"s{number % 5}.example") for number in range(50))
    write_folder(pages, tmp_path / "out")
    for path in (tmp_path / "out").iterdir():
        assert len(ElementTree.parse(path).getroot()) == 10


@given(text=st.text(st.characters(codec=None), max_size=40))
def test_any_text_makes_valid_xml(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("xml") / "out"
    write_folder([document(title=text, text=text, url=text)], folder)
    (path,) = folder.iterdir()
    (entry,) = ElementTree.parse(path).getroot()
    assert entry.findtext("title") == entry.findtext("content")


@given(st.text(st.characters(codec=None), max_size=120), st.text(max_size=20))
def test_a_file_name_stays_in_its_folder_and_is_its_sites_own(site: str, other: str) -> None:
    name = file_name(site)
    assert Path(name).name == name
    assert not name.startswith(".")
    assert name.endswith(".xml")
    assert len(name.encode()) < 120
    assert site == other or file_name(other) != name


@pytest.mark.parametrize(
    "site", ["../../etc/passwd", "..", "", "a/b", "/abs", "[::1]:8080", "x" * 5_000, "EXAMPLE.org"]
)
def test_hostile_site_names_make_safe_files(tmp_path: Path, site: str) -> None:
    write_folder([document(site=site)], tmp_path / "out")
    assert os.listdir(tmp_path) == ["out"]
    assert len(os.listdir(tmp_path / "out")) == 1


def test_an_earlier_xml_export_is_replaced_whole_and_nothing_else_ever(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    write_folder([document(site="stale.example")], folder)
    assert export("--xml", folder, "--data", data).code == 2
    assert export("--xml", folder, "--force", "--data", data).code == 0
    assert sorted(path.name.partition("-")[0] for path in folder.iterdir()) == [
        "example.org.xml",
        "haber.example.net.xml",
        "plain.example_8080",
    ]
    (folder / "thesis.doc").write_text("precious")
    answer = export("--xml", folder, "--force", "--data", data)
    assert answer.code == 2
    assert "contains more than an earlier export" in answer.said
    assert (folder / "thesis.doc").exists()
    (tmp_path / "file").write_text("precious")
    assert export("--xml", tmp_path / "file", "--force", "--data", data).code == 2


def test_a_failed_xml_export_leaves_nothing(tmp_path: Path) -> None:
    def pages() -> Iterator[Document]:
        yield document()
        raise LevadaError("the disk is damaged")

    with pytest.raises(LevadaError, match="damaged"):
        write_folder(pages(), tmp_path / "out")
    assert os.listdir(tmp_path) == []


def test_a_missing_extra_says_what_to_type(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "warcio.warcwriter", None)
    parquet = export("--parquet", "--out", tmp_path / "x", "--data", data)
    assert (parquet.code, "pip install 'levada[parquet]'" in parquet.said) == (2, True)
    warc = export("--warc", "--out", tmp_path / "x", "--data", data)
    assert (warc.code, "pip install 'levada[warc]'" in warc.said) == (2, True)
    assert os.listdir(tmp_path) == []


def test_what_is_exported_is_what_is_stored(data: Path) -> None:
    store = SqliteStore.open_reader(DataFolder(data).database)
    try:
        stored = [each.url for each in store.scan()]
    finally:
        store.close()
    assert exported_urls(data) == stored


def test_no_page_is_exported_while_pages_move_and_none_moves_while_they_are_exported(
    data: Path, tmp_path: Path
) -> None:
    target = tmp_path / "pages.jsonl"
    with only_mover(DataFolder(data)):
        answer = export("--jsonl", "--out", target, "--data", data)
        assert (answer.code, target.exists()) == (1, False)
        assert "wait until that has ended" in answer.said
    with nobody_moves(DataFolder(data)):
        with pytest.raises(StoreLocked, match="moved or exported"):
            apply_shards(DataFolder(data), ReshardOptions(shards=2))
        assert export("--jsonl", "--out", target, "--data", data).code == 0, "any number may export"
