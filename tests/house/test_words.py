"""The first edition's coined words are gone from names, docstrings, docs, help texts and the dashboard.

The glossary says which word stands in the place of each. A word that is also ordinary English (orders, book, turns)
is looked for only where it was a name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.test_docs import COMMANDS, helps_of
from tests.house.tree import HOUSE, SOURCE, TEXTS, docstrings_of, module_name, modules, tree_of

# fmt: off
OLD_PARTS = frozenset((
    "agenda", "asked", "belief", "beliefs", "believed", "bell", "bookmark", "calm", "census", "crew", "crews",
    "desk", "errand", "happened", "happening", "happenings", "hearing", "hearsay", "heart", "lane", "narrowing",
    "newcomers", "obey", "obeying", "outlook", "reckoning", "settler", "settling", "shelf", "shelves", "sieve",
    "sitebook", "staffing", "storekeeper", "tap", "telling", "weather", "wish", "wishes",
))
"""Parts of the name of a module, class or function that are no longer used."""

OLD_NAMES = frozenset((
    "book", "card", "cards", "compiling", "expecting", "gate", "holding", "keeping", "notice", "notices",
    "orders", "post", "rest", "saying", "second-looks", "settled", "stamp", "stand-ins", "standing", "turns",
))
"""Whole names of modules and classes that are no longer used, where the word alone is ordinary English."""
# fmt: on

OLD_WORDS = (
    r"agendas?",
    r"believ(?:e|es|ed|ing)",
    r"bells?",
    r"bookmarks?",
    r"census(?:es)?",
    r"crews?",
    r"errands?",
    r"hearsay",
    r"happenings?",
    r"newcomers?",
    r"obey(?:s|ed|ing)?",
    r"outlooks?",
    r"reckon(?:s|ed|ing)?",
    r"second looks?",
    r"shel(?:f|ves)",
    r"sieves?",
    r"site ?books?",
    r"staffing",
    r"stand-ins?",
    r"storekeepers?",
    r"the truth",
    r"weather",
    r"wishes",
)
"""Words that docs and help texts no longer use, as regular expressions."""

PERSISTED = ("`believed`", "`happenings`", '"hearsay"', "`hearsay`", "`wishes`")
"""Names that lie on disks and in answers, and stay as they are: they may be written about."""

ALLOWED_NAMES: dict[str, str] = {
    "levada.serve.commands.WishesAnswer": "the name of a component in openapi.json, which generated clients use",
}
"""Names (`module.name`) that hold an old word for a reason, and the reason."""

ALLOWED_TEXTS: dict[str, str] = {
    "CHANGELOG.md": "names what was renamed, and what earlier versions called it",
    "glossary.md": "maps the old words to the new",
}
"""Texts that may use the old words, and why."""

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_WORDS = re.compile(rf"\b(?:{'|'.join(OLD_WORDS)})\b", re.IGNORECASE)


def names_of(path: Path) -> Iterator[tuple[str, bool]]:
    """The module's own name, its classes, and its functions; the latter are not asked for whole names."""
    yield module_name(path).rpartition(".")[2], True
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, isinstance(node, ast.ClassDef)


def old_names(path: Path) -> list[str]:
    found = []
    for name, whole in names_of(path):
        parts = [part.lower() for part in _PART.findall(name)]
        is_old = OLD_PARTS.intersection(parts) or (whole and "-".join(parts) in OLD_NAMES)
        if is_old and f"{module_name(path)}.{name}" not in ALLOWED_NAMES:
            found.append(name)
    return found


def old_words(text: str) -> list[str]:
    for name in PERSISTED:
        text = text.replace(name, "")
    return sorted({found.lower() for found in _WORDS.findall(text)})


@pytest.mark.parametrize("path", modules(), ids=module_name)
def test_names_are_the_fields_own_words(path: Path) -> None:
    assert old_names(path) == []


@pytest.mark.parametrize("path", [path for path in TEXTS if path.name not in ALLOWED_TEXTS], ids=lambda path: path.name)
def test_docs_use_the_new_words_only(path: Path) -> None:
    assert old_words(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", modules(), ids=module_name)
def test_docstrings_use_the_new_words_only(path: Path) -> None:
    assert old_words("\n".join(docstrings_of(path))) == []


@pytest.mark.parametrize("path", sorted(SOURCE.glob("serve/**/*.[jh][st]*")), ids=lambda path: path.name)
def test_the_dashboard_uses_the_new_words_only(path: Path) -> None:
    assert old_words(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_texts_use_the_new_words_only(command: str) -> None:
    def options(each: object) -> Iterator[str]:
        yield from (getattr(param, "help", None) or "" for param in getattr(each, "params", ()))
        for below in getattr(each, "commands", {}).values():
            yield from options(below)

    said = [*helps_of(COMMANDS[command]), *options(COMMANDS[command])]
    assert old_words("\n".join(said)) == []


def test_every_exception_is_still_one() -> None:
    known = {f"{module_name(path)}.{name}" for path in modules() for name, _ in names_of(path)}
    assert sorted(set(ALLOWED_NAMES) - known) == []
    assert HOUSE.joinpath("CHANGELOG.md").exists()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A Sieve keeps links out; the weather is fine.", ["sieve", "weather"]),
        ("`believed_current` is a share", []),
        ("whether the stand-ins are heard", ["stand-ins"]),
    ],
)
def test_it_would_be_noticed(text: str, found: list[str]) -> None:
    assert old_words(text) == found
