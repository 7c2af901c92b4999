"""Languages and encodings are compared on the samples that a user has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from levada.cli.app import app
from levada.core.errors import LevadaError, UsageError
from levada.lab.recognition import (
    charset_samples,
    cost_of,
    installed_tellers,
    language_samples,
    recognize,
)

SENTENCES = {
    "tr": [
        "Kurul köprünün artık güvenli olmadığına karar verdi.",
        "Yol bir yıl boyunca bütün araçlara kapalı kalacak.",
    ],
    "de": ["Der Rat hat entschieden, dass die Brücke gesperrt wird.", "Für ein Jahr fährt dort kein Auto mehr."],
    "ru": ["Совет решил, что мост больше не так надёжен.", "Дорога будет закрыта для всех машин на целый год."],
}


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    folder = tmp_path / "sentences"
    folder.mkdir()
    for language, lines in SENTENCES.items():
        (folder / f"{language}.txt").write_text("\n".join([*lines] * 8) + "\n\n", "utf-8")
    (folder / "README.txt").write_text("not a language")
    return folder


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """As `encoding-detection` of the Web Platform Tests is laid out."""
    folder = tmp_path / "encoding-detection"
    folder.mkdir()
    for name, text, codec in (
        ("ru-KOI8-U.tentative.html", SENTENCES["ru"][0], "koi8-u"),
        ("tr-windows-1254.html", SENTENCES["tr"][0], "cp1254"),
        ("ja-council.html", "市議会は、橋はもう安全ではないと判断し、一年間通行止めにすることを決めました。", "cp932"),
        ("tr-windows-1254-late.html", SENTENCES["tr"][0], "cp1254"),
        ("utf-8.html", SENTENCES["ru"][0], "utf-8"),
        ("notes.html", SENTENCES["ru"][0], "utf-8"),
    ):
        expected = '<script>assert_equals(document.characterSet, "Shift_JIS")</script>' if "council" in name else ""
        (folder / name).write_bytes(f"<!doctype html><title>a</title><p>{text}</p>{expected}".encode(codec))
    return folder


def test_each_language_is_asked_with_one_three_and_eight_sentences(sentences: Path) -> None:
    sets = language_samples(sentences)
    assert [(each.name, len(each.samples)) for each in sets] == [
        ("1 sentence", 48),
        ("3 sentences", 15),
        ("8 sentences", 6),
    ]
    assert [each.samples[0].kind for each in language_samples(sentences, ["tr"])] == ["tr"] * 3
    for each in sets:
        found = recognize(each, "levada", *installed_tellers("languages", ["levada"])["levada"])
        assert (found.right, found.unknown, found.missed, found.samples) == (1, 0, {}, len(each.samples))


def test_pages_are_named_by_their_encoding_and_an_answer_is_right_if_the_text_is(pages: Path) -> None:
    (found,) = charset_samples(pages)
    kinds = [sample.kind for sample in found.samples]
    assert kinds == ["ja-council", "ru-KOI8-U", "tr-windows-1254", "utf-8"]
    name, teller = installed_tellers("charsets", ["levada"])["levada"]
    assert recognize(found, "levada", name, teller).right == 1
    always = recognize(found, "latin", "1", lambda body: "KOI8-R" if body.isascii() else "koi8_u")
    assert (always.right, set(always.missed)) == (0.25, {"ja-council", "tr-windows-1254", "utf-8"})


def test_sentences_are_written_in_the_old_encodings_of_their_language(sentences: Path) -> None:
    one, *_ = charset_samples(sentences)
    assert {sample.kind for sample in one.samples} == {
        "de windows-1252", "ru windows-1251", "ru koi8-r", "ru iso-8859-5", "ru ibm866", "tr windows-1254",
    }  # fmt: skip
    assert all(b"charset" not in sample.given for sample in one.samples)


def test_a_library_that_raises_has_no_answer(sentences: Path) -> None:
    def fails(text: bytes) -> str:
        raise ValueError("not mine")

    found = recognize(language_samples(sentences)[0], "fails", "1", fails)
    assert (found.right, found.unknown, found.missed) == (0, 1, {"de": 0, "ru": 0, "tr": 0})


def test_the_cost_of_a_library_is_measured_in_a_process_of_its_own() -> None:
    cost = cost_of("charsets", "charset-normalizer")
    assert cost.milliseconds > 0
    assert cost.disk_bytes > 100_000
    assert cost.memory_bytes > 0


def test_the_command_prints_languages_and_encodings(sentences: Path, pages: Path) -> None:
    typed = ["lab", "reading", "--languages", str(sentences), "--charsets", str(pages), "--charsets", str(sentences)]
    printed = CliRunner().invoke(app, [*typed, "--readers", "levada,charset-normalizer"])
    assert printed.exit_code == 0, printed.output
    for heading in ("languages: 3 sentences", "charsets: encoding-detection", "charsets: pages of 8", "memory, MB"):
        assert heading in printed.stdout
    told = CliRunner().invoke(app, [*typed, "--only", "tr,ru", "--readers", "levada", "--json"])
    answered = json.loads(told.stdout)
    assert answered["scores"] == []
    assert {(each["subject"], each["right"]) for each in answered["recognition"]} == {("languages", 1), ("charsets", 1)}
    assert answered["costs"]["languages"]["levada"]["disk_bytes"] > 0


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ([], "give --corpus, --languages or --charsets"),
        (["--only", "tr"], "--corpus, --languages or --charsets"),
        (["--charsets", ".", "--only", "tr"], "--only chooses among --languages"),
        (["--languages", ".", "--readers", "nobody"], "'nobody' is none of levada"),
    ],
)
def test_what_cannot_be_compared_is_said(typed: list[str], said: str) -> None:
    printed = CliRunner().invoke(app, ["lab", "reading", *typed])
    assert isinstance(printed.exception, UsageError)
    assert said in str(printed.exception)


def test_a_folder_without_samples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LevadaError, match="no file here is named by a language"):
        language_samples(tmp_path)
    (tmp_path / "tr.txt").write_text("bir\n")
    with pytest.raises(LevadaError, match="1 sentences are too few"):
        language_samples(tmp_path)
    with pytest.raises(LevadaError, match=r"there is no de\.txt"):
        language_samples(tmp_path, ["de"])
    (tmp_path / "page.html").write_text("<p>")
    with pytest.raises(LevadaError, match="no page here is named by its encoding"):
        charset_samples(tmp_path)
