"""The tables of the guide `watch-one-part.md`: each row is what the parser makes of the guide's own page."""

from __future__ import annotations

import re

import pytest

from levada.core.site_rules.visit import ReadingRule
from levada.pages.parts.rule import compiled_rule
from tests.house.tree import HOUSE
from tests.pages.parts.reading import shown

GUIDE = (HOUSE / "docs" / "guides" / "watch-one-part.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| `([^`]+)` \| (?:`([^`]*)`)? ?\|", re.MULTILINE)


def block(language: str) -> bytes:
    found = re.search(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found
    return found[1].encode()


def rows(heading: str) -> list[tuple[str, str]]:
    found = re.search(rf"^## {heading}\n(.*?)(?=^## )", GUIDE, re.MULTILINE | re.DOTALL)
    assert found
    return _ROW.findall(found[1])


@pytest.mark.parametrize(("selector", "kept"), rows("Select"))
def test_a_selector_of_the_guide_stores_what_stands_beside_it(selector: str, kept: str) -> None:
    page, kind = (block("json"), "application/json") if selector.startswith("json:") else (block("html"), "text/html")
    assert shown(page, kind, ReadingRule(select=(selector,))).split("\n") == kept.split(" / ")


@pytest.mark.parametrize(("selector", "kept"), rows("Remove"))
def test_a_removal_of_the_guide_leaves_what_stands_beside_it(selector: str, kept: str) -> None:
    page, kind = (block("json"), "application/json") if selector.startswith("json:") else (block("html"), "text/html")
    assert shown(page, kind, ReadingRule(remove=(selector,))).split("\n") == kept.split(" / ")


@pytest.mark.parametrize(("ignored", "compared"), rows("Ignore"))
def test_an_entry_of_ignore_of_the_guide_compares_what_stands_beside_it(ignored: str, compared: str) -> None:
    line = re.search(r"^`(Updated 2026.*)`:$", GUIDE, re.MULTILINE)
    assert line
    assert compiled_rule(ReadingRule(ignore=(ignored,))).compared_text(line[1].encode()).decode() == compared


def test_the_guide_has_rows_for_every_language_and_every_kind_of_noise() -> None:
    assert {len(rows("Select")), len(rows("Remove")), len(rows("Ignore"))} == {12, 3, 6}
    assert len(rows("Triggers")) == 7


@pytest.mark.parametrize(("trigger", "holds"), rows("Triggers"))
def test_a_trigger_of_the_guide_holds_as_stands_beside_it(trigger: str, holds: str) -> None:
    line = re.search(r"for the line `(Lamp: .*?)`:$", GUIDE, re.MULTILINE)
    assert line
    assert compiled_rule(ReadingRule(trigger=(trigger,))).triggers.hold(line[1]) == (holds == "yes",)
