"""Plug-ins that read pages, in process and real children: what they find counts, what they break is contained."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from levada.core import plugins
from levada.core.errors import LevadaError, ParserDied, PluginError
from levada.core.reasons import Reason
from levada.core.records import ParsedPage, RawPage
from levada.pages.change import text_part
from levada.pages.compression import unpack_text
from levada.pages.parse import ParseLimits, parse_page
from levada.pages.plugins import ReadingChoice
from levada.parser.channel import ParserSetup
from levada.parser.inline import InlineParser
from levada.parser.pool import ParserPool
from tests.crawl.simulated_crawl import World, page
from tests.plugged import child_program, install

NOTE = "application/x-note"
HTML = "text/html; charset=utf-8"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def note(name: str = "good") -> RawPage:
    return RawPage(f"http://a.test/{name}", b"Harbour\n\nThe ferry  leaves at noon.", NOTE)


def html(name: str, seen: int = 1) -> RawPage:
    body = f"<title>{name}</title><p>The page was seen {seen} times, and the ferry left.".encode()
    return RawPage(f"http://a.test/{name}", body, HTML)


def parsed_by(choice: ReadingChoice, raw: RawPage) -> ParsedPage:
    return parse_page(raw, ParseLimits(plugins=choice.load()))


def text_of(parsed: ParsedPage) -> str:
    return unpack_text(parsed.content_zstd).decode()


READER, EXTRACTOR = ReadingChoice(readers=("note",)), ReadingChoice("shout")
FILTER = ReadingChoice(change_filters=("digits",))


def test_a_reader_makes_a_page_of_its_content_type(folder: Path) -> None:
    parsed = parsed_by(READER, note())
    assert (parsed.title, text_of(parsed), parsed.language) == ("Harbour", "The ferry leaves at noon.", "en")
    assert parsed.links[0] == "http://a.test/next"
    assert (parsed.reason, parsed.published, parsed.plugin_failures) == (None, 5.0, ())
    assert parse_page(note()).reason is Reason.CONTENT_TYPE


def test_other_content_types_are_read_as_before(folder: Path) -> None:
    assert parsed_by(READER, html("x")) == parse_page(html("x"))


@pytest.mark.parametrize("how", ["raise", "rubbish", "odd", "exit"])
def test_a_page_that_its_reader_fails_on_has_the_reason_plugin(how: str, folder: Path) -> None:
    parsed = parsed_by(READER, note(how))
    assert parsed.reason is Reason.PLUGIN
    assert [(each.group, each.name) for each in parsed.plugin_failures] == [("levada.readers", "note")]


def test_an_extractor_with_options_finds_the_text(folder: Path) -> None:
    assert text_of(parsed_by(EXTRACTOR, html("x"))) == "SHOUTED!"
    assert text_of(parsed_by(ReadingChoice("shout", options={"shout": {"mark": "?"}}), html("x"))) == "SHOUTED?"


@pytest.mark.parametrize("how", ["raise", "rubbish", "long", "exit"])
def test_an_extractor_that_fails_leaves_the_built_in_text(how: str, folder: Path) -> None:
    parsed = parsed_by(EXTRACTOR, html(how))
    assert text_of(parsed) == text_of(parse_page(html(how)))
    assert [each.name for each in parsed.plugin_failures] == ["shout"]


def test_what_a_change_filter_leaves_out_is_no_change_and_stays_in_the_text(folder: Path) -> None:
    one, other = (parsed_by(FILTER, html("x", seen)) for seen in (5, 77))
    assert text_part(one.text_digest) == text_part(other.text_digest)
    assert "77 times" in text_of(other)
    assert text_part(parse_page(html("x", 5)).text_digest) != text_part(parse_page(html("x", 77)).text_digest)


@pytest.mark.parametrize("how", ["raise", "rubbish", "long", "exit"])
def test_a_change_filter_that_fails_leaves_the_whole_text(how: str, folder: Path) -> None:
    parsed = parsed_by(FILTER, html(how))
    assert parsed.text_digest == parse_page(html(how)).text_digest
    assert [each.name for each in parsed.plugin_failures] == ["digits"]


def test_a_filter_that_leaves_nothing_makes_no_two_pages_alike(folder: Path) -> None:
    numbers = [RawPage(f"http://a.test/{n}", b"%d" % n, "text/plain") for n in (1, 2)]
    one, other = (parsed_by(FILTER, each) for each in numbers)
    assert text_part(one.text_digest) != text_part(other.text_digest)


def test_only_built_ins_are_no_plug_ins() -> None:
    assert ReadingChoice().load() is None
    chosen = ParseLimits(plugins=ReadingChoice(readers=("html", "feed")).load())
    assert parse_page(html("x"), chosen) == parse_page(html("x"))


def in_children(
    folder: Path, choice: ReadingChoice, *pages: RawPage, cpu_seconds: float = 5.0
) -> list[ParsedPage | BaseException]:
    async def run() -> list[ParsedPage | BaseException]:
        pool = ParserPool(cpu_seconds=cpu_seconds, setup=ParserSetup(reading=choice), program=child_program(folder))
        try:
            return await asyncio.gather(*map(pool.parse, pages), return_exceptions=True)
        finally:
            await pool.close()

    return asyncio.run(run())


def test_children_read_with_the_chosen_plug_ins(folder: Path) -> None:
    choice = ReadingChoice("shout", ("note",), ("digits",), {"shout": {"mark": "?"}})
    pages = [note(), note("raise"), html("x"), html("rubbish"), html("exit")]
    assert in_children(folder, choice, *pages) == [parsed_by(choice, each) for each in pages]


@pytest.mark.parametrize("how", ["spin", "wait"])
@pytest.mark.parametrize("choice", [READER, EXTRACTOR, FILTER], ids=["reader", "extractor", "filter"])
def test_one_that_hangs_is_killed_with_its_child_and_the_next_page_is_read(
    how: str, choice: ReadingChoice, folder: Path
) -> None:
    make = note if choice is READER else html
    stuck, fine = in_children(folder, choice, make(how), make("fine"), cpu_seconds=0.3)
    assert isinstance(stuck, ParserDied)
    assert stuck.cause == Reason.PARSE_SECONDS
    assert isinstance(fine, ParsedPage)


@pytest.mark.parametrize("choice", [READER, EXTRACTOR, FILTER], ids=["reader", "extractor", "filter"])
def test_one_that_eats_memory_meets_the_limit_of_the_child(choice: ReadingChoice, folder: Path) -> None:
    make = note if choice is READER else html
    greedy, fine = in_children(folder, choice, make("eat"), make("fine"))
    assert isinstance(greedy, ParsedPage)
    assert greedy.reason is Reason.PARSE_MEMORY
    assert isinstance(fine, ParsedPage)


@pytest.mark.parametrize(
    ("name", "said"), [("broken", "it never works"), ("shouted", r'no plug-in "shouted".*did you mean "shout"')]
)
def test_children_that_cannot_load_a_plug_in_say_why_in_one_sentence(
    name: str, said: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (answer,) = in_children(folder, ReadingChoice(name), html("x"))
    with pytest.raises(PluginError, match=said):
        raise answer if isinstance(answer, LevadaError) else AssertionError(answer)
    assert "Traceback" not in capfd.readouterr().err


def test_a_crawl_goes_on_counts_failures_and_logs_the_first(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = InlineParser(ParseLimits(plugins=EXTRACTOR.load()))
    names = ("/raise-1", "/raise-2", "/fine")
    web = {"http://a.test/": page("Front", *names), **{f"http://a.test{name}": page(name) for name in names}}
    monkeypatch.setattr(plugins, "_failures", {})
    with caplog.at_level(logging.WARNING):
        report = World(web, parser=parser).crawl("http://a.test/")
    assert report.pages == 4
    assert report.plugin_failures == {"parse.main_text:shout": 2}
    assert [record.message for record in caplog.records if "shout" in record.message] == [
        "plugin: parse.main_text:shout failed (KeyError: 'as the address says'); further failures are only counted"
    ]
