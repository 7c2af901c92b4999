"""Documentation and program agree."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
import typer

from levada.cli.app import app
from levada.core.plugins import GROUPS
from levada.core.reasons import Reason
from levada.core.reports import Report
from levada.core.settings import Settings, parse_settings
from levada.core.site_rules.section import SiteSettings
from levada.export.rows import ExportRow
from tests.house.tree import HOUSE, TEXTS, fenced

DOCS = HOUSE / "docs"
PROGRAM: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = dict(PROGRAM.commands)
SECTIONS = {field.name: field.type for field in msgspec.structs.fields(Settings) if field.name != "site"}

_LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FIRST_CELL = re.compile(r"^\| (`--.*?) \|", re.MULTILINE)
_ROW = re.compile(r"^\| `([^`]+)` \| (?:`([^`]*)` \|)?", re.MULTILINE)


@pytest.fixture(autouse=True)
def _named_collections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The collections that the examples name are there."""
    for name in ("blog", "news"):
        (tmp_path / "levada" / name).mkdir(parents=True)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def options_of(command: str) -> set[str]:
    family = [COMMANDS[command]]
    for each in family:  # a command of commands has the options of all, however deep
        family.extend(getattr(each, "commands", {}).values())
    params = [param for each in family for param in each.params]
    own = {flag for param in params for flag in (*param.opts, *param.secondary_opts) if flag.startswith("-")}
    return own | {"--help", "-h"}


def chapter(path: Path, heading: str) -> str:
    """What stands under a second-level heading."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text_of(path), re.MULTILINE | re.DOTALL)
    assert found, f"{path.name} has no chapter {heading!r}"
    return found[1]


def commands_in(block: str) -> list[list[str]]:
    """The `levada` command lines of a block, as words; what a shell would do after them is left out."""
    lines = (line.strip().removeprefix("$ ") for line in block.replace("\\\n", " ").splitlines())
    found = []
    for line in lines:
        if line.startswith("levada ") and "·" not in line:
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
            lexer.whitespace_split = True
            words = list(lexer)
            ends = [place for place, word in enumerate(words) if set(word) <= set("|&;<>")]
            found.append(words[: min(ends, default=len(words))])
    return found


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_and_all_its_options_are_described(command: str) -> None:
    rows = _FIRST_CELL.findall(chapter(DOCS / "commands.md", f"levada {command}"))
    told = {option for cell in rows for option in re.findall(r"`(--[a-z-]+)", cell)}
    assert told == options_of(command) - {"-h", "--help"}


def test_no_command_is_described_that_is_not_there() -> None:
    told = re.findall(r"^## levada (\S+)$", text_of(DOCS / "commands.md"), re.MULTILINE)
    assert sorted(told) == sorted(COMMANDS)


def helps_of(command: Any) -> Iterator[str]:
    """What a command and those below it say of themselves."""
    yield command.help or ""
    for each in getattr(command, "commands", {}).values():
        yield from helps_of(each)


def read_as_typed(words: Sequence[str]) -> None:
    """Take a command line apart as the program does, without running it: raises what a user would be told."""
    command: Any = PROGRAM
    context = None
    rest = list(words[1:])
    while True:
        context = command.make_context(command.name, rest, parent=context)
        rest = [*context._protected_args, *context.args]
        if not hasattr(command, "commands") or (not rest and command.invoke_without_command):
            return
        _, command, rest = command.resolve_command(context, rest)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_example_of_the_docs_can_be_typed(path: Path) -> None:
    for block in fenced(path):
        for words in commands_in(block):
            with suppress(typer.Exit):  # --help and --version end there
                read_as_typed(words)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_example_of_a_help_text_can_be_typed(command: str) -> None:
    examples = [words for text in helps_of(COMMANDS[command]) for words in commands_in(text)]
    assert examples
    for words in examples:
        read_as_typed(words)


def test_the_examples_of_the_docs_are_seen_by_this_test() -> None:
    seen = {words[1] for path in TEXTS for block in fenced(path) for words in commands_in(block)}
    assert seen >= set(COMMANDS)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_is_described_with_its_default(section: str) -> None:
    told = {
        key: tomllib.loads(f"value = {default}")["value"]
        for key, default in _ROW.findall(chapter(DOCS / "settings.md", f"[{section}]"))
    }
    defaults = msgspec.to_builtins(SECTIONS[section]())
    assert told == {key: list(value) if isinstance(value, tuple) else value for key, value in defaults.items()}


def test_every_key_of_a_site_rule_is_described_with_an_example() -> None:
    rows = _ROW.findall(chapter(DOCS / "settings.md", "[[site]]"))
    assert [key for key, _ in rows] == [field.name for field in msgspec.structs.fields(SiteSettings)]
    for key, value in rows[1:]:
        table = parse_settings(f'[[site]]\nmatch = "example.org"\n{key} = {value}\n', "the docs").site[0]
        assert getattr(table, key) is not None


def test_no_section_is_described_that_is_not_there() -> None:
    told = re.findall(r"^## \[(\w+)\]$", text_of(DOCS / "settings.md"), re.MULTILINE)
    assert told == list(SECTIONS)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_settings_file_in_the_docs_is_valid(path: Path) -> None:
    for block in fenced(path, "toml"):
        parse_settings(block, path.name)


def test_every_reason_is_described_once_and_no_other() -> None:
    told = [key for key, _ in _ROW.findall(text_of(DOCS / "reasons.md"))]
    assert sorted(told) == sorted(Reason)


@pytest.mark.parametrize("fields", [Report, ExportRow], ids=lambda fields: str(fields.__name__))
def test_every_field_that_a_program_reads_is_described(fields: Any) -> None:
    told = text_of(DOCS / "commands.md")
    assert [name for name in fields.__struct_fields__ if f"`{name}`" not in told] == []


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in _LINK.findall(text_of(path)):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), target
        if anchor:
            assert anchor in {_anchor(heading) for heading in _HEADING.findall(text_of(there))}, target


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize(
    "path", [*TEXTS, *sorted(DOCS.glob("*.py")), *sorted(DOCS.glob("images/*.svg"))], ids=lambda path: path.name
)
def test_the_docs_name_no_path_of_a_machine_where_they_were_written(path: Path) -> None:
    assert re.findall(r"(?<![\w.~])/(?:work|root|home/\w+|Users/\w+)\b[^\s`]*", text_of(path)) == []


@pytest.mark.parametrize("path", sorted(DOCS.glob("images/*.svg")), ids=lambda path: path.name)
def test_a_picture_needs_nothing_from_elsewhere(path: Path) -> None:
    picture = text_of(path)
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert "@font-face" not in picture
    assert re.findall(r"(?:href|src)\s*=(?!\"#)|url\((?!#)", picture) == []


def test_the_readme_begins_with_the_two_commands() -> None:
    assert next(fenced(HOUSE / "README.md")).split("\n")[:2] == ["make demo", "make test"]
    makefile = text_of(HOUSE / "Makefile")
    assert all(f"\n{target}:" in makefile for target in ("demo", "test", "setup", "check", "bench"))


NOW = [path for path in TEXTS if path.name != "CHANGELOG.md"]  # which also names what was
NO_MODULES = {"levada.db", "levada.toml", "levada.reports", *GROUPS}


@pytest.mark.parametrize("path", NOW, ids=lambda path: path.name)
def test_every_file_that_the_docs_name_is_there(path: Path) -> None:
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|md|toml|json|yaml))`", text_of(path)))
    roots = (HOUSE, HOUSE / "src" / "levada")
    assert sorted(name for name in named if not any((root / name).exists() for root in roots)) == []


@pytest.mark.parametrize("path", NOW, ids=lambda path: path.name)
def test_every_name_that_the_docs_import_is_there(path: Path) -> None:
    imported = re.findall(r"^from (levada[\w.]*) import (.+)$", "\n".join(fenced(path)), re.MULTILINE)
    for module, names in imported:
        found = import_module(module)
        assert [name for name in re.split(r",\s*", names) if not hasattr(found, name)] == [], module


@pytest.mark.parametrize("path", NOW, ids=lambda path: path.name)
def test_every_module_that_the_docs_name_is_there(path: Path) -> None:
    for dotted in set(re.findall(r"`(levada\.[a-z_.]+)`", text_of(path))) - NO_MODULES:
        module, _, name = dotted.rpartition(".")
        place = HOUSE.joinpath("src", *dotted.split("."))
        assert place.is_dir() or place.with_suffix(".py").exists() or hasattr(import_module(module), name), dotted
