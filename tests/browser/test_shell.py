"""Which pages look like empty shells, and what is remembered of their sites."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.browser.memory import RenderMemory
from levada.browser.shell import Shell, shell_of, words_of

SCRIPT = '<script src="/app.js"></script>'
TEXT = "<p>" + "A sentence that everybody can read without any script. " * 8 + "</p>"


@pytest.mark.parametrize(
    ("body", "shell"),
    [
        (f'<div id="root"></div>{SCRIPT}', Shell.YES),
        (f'<div id="app">Loading...</div>{SCRIPT}', Shell.YES),
        (f"<app-root></app-root>{SCRIPT}", Shell.YES),
        (f"<noscript>You need to enable JavaScript to run this app.</noscript><div></div>{SCRIPT}", Shell.YES),
        (f"<noscript>Bitte JavaScript einschalten</noscript>{SCRIPT}", Shell.YES),
        (f"<style>{'p { color: red } ' * 50}</style><div id=__next></div><script>boot()</script>", Shell.YES),
        (f"<div class=page></div>{SCRIPT}", Shell.MAYBE),
        (f"<h1>A short page</h1>{SCRIPT}", Shell.MAYBE),
        ("<h1>A short page</h1>", Shell.NO),
        ('<div id="root"></div>', Shell.NO),
        ('<div id="root"></div><script type="application/ld+json">{}</script>', Shell.NO),
        (f'<div id="root">{TEXT}</div>{SCRIPT}', Shell.NO),
        (f"<noscript>Please enable JavaScript for comments.</noscript>{TEXT}{SCRIPT}", Shell.NO),
        ("", Shell.NO),
    ],
)
def test_a_shell_has_scripts_and_hardly_any_text(body: str, shell: Shell) -> None:
    assert shell_of(f"<!doctype html><title>A title</title>{body}".encode()) is shell


def test_words_are_those_that_a_reader_sees() -> None:
    assert words_of(b"<title>no</title><style>no</style><p>one <b>two</b></p><noscript>no</noscript>three") == 3


def test_a_site_where_rendering_paid_has_its_doubtful_pages_rendered_too(tmp_path: Path) -> None:
    memory = RenderMemory(tmp_path / "rendering.json")
    assert not memory.wants("a.test", Shell.MAYBE)
    memory.note("a.test", 3, 200)
    memory.save()
    later = RenderMemory(tmp_path / "rendering.json")
    assert later.wants("a.test", Shell.MAYBE)
    assert not later.wants("a.test", Shell.NO)
    assert not later.wants("b.test", Shell.MAYBE)


def test_a_site_where_it_never_paid_is_left_alone_but_not_forever() -> None:
    memory = RenderMemory()
    for _ in range(5):
        assert memory.wants("a.test", Shell.YES)
        memory.note("a.test", 3, 3)
    wanted = [memory.wants("a.test", Shell.YES) for _ in range(100)]
    assert sum(wanted) == 5
    memory.note("a.test", 3, 300)
    assert memory.wants("a.test", Shell.YES)


@pytest.mark.parametrize("content", ["", "[]", '{"a.test": "x"}', "\0"])
def test_a_damaged_memory_is_begun_anew(tmp_path: Path, content: str) -> None:
    (tmp_path / "rendering.json").write_text(content)
    assert RenderMemory(tmp_path / "rendering.json").wants("a.test", Shell.YES)


def test_the_memory_of_rendering_names_no_site(tmp_path: Path) -> None:
    memory = RenderMemory(tmp_path / "rendering.json")
    memory.note("shop.example", before=3, after=300)
    memory.save()
    assert "shop" not in (tmp_path / "rendering.json").read_text()
    (tmp_path / "rendering.json").write_text('{"shop.example": [1, 1, 0]}')
    memory = RenderMemory(tmp_path / "rendering.json")
    memory.note("other.example", before=3, after=300)
    memory.save()
    assert "shop" not in (tmp_path / "rendering.json").read_text()
