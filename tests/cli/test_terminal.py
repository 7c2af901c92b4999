"""What a person at a terminal sees, and what a pipe gets."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from levada.cli.pages.diff import unified
from levada.collection.diff import changes_between
from tests.cli.collection import ESCAPE, VAPUR

COLOUR = re.compile(r"\x1b\[[0-9;]*3[1-6]m")


def on_a_terminal(name: str, *arguments: object, **environment: str) -> str:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "levada", name, *map(str, arguments)]
    known = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    child = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**known, "TERM": "xterm-256color", **environment}
    )
    os.close(theirs)
    seen = b""
    try:
        while piece := _read(ours):
            seen += piece
    finally:
        os.close(ours)
        child.wait()
    return seen.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # the other end is closed
        return b""


def test_a_diff_is_coloured_on_a_terminal(data: Path) -> None:
    assert COLOUR.search(on_a_terminal("diff", VAPUR, "--data", data))


def test_no_color_is_obeyed(data: Path) -> None:
    seen = on_a_terminal("diff", VAPUR, "--data", data, NO_COLOR="1")
    assert "Kadıköy" in seen
    assert not COLOUR.search(seen)


def test_a_page_cannot_steer_the_terminal(data: Path) -> None:
    seen = on_a_terminal("why", ESCAPE, "--data", data)
    assert "kırmızı haber" in seen
    assert "\x1b[31m" not in seen
    assert "\x1b]0" not in seen


@pytest.mark.parametrize("form", ["--parquet", "--warc"])
def test_bytes_are_kept_from_the_terminal(data: Path, form: str) -> None:
    seen = on_a_terminal("export", form, "--data", data)
    assert seen.strip() == f"levada: {form} is not for reading on a terminal: name a file with --out FILE"


def test_an_export_ends_with_one_line(data: Path, tmp_path: Path) -> None:
    seen = on_a_terminal("export", "--jsonl", "--out", tmp_path / "x.jsonl", "--data", data)
    assert seen.rstrip().splitlines()[-1].endswith(f"kB in {tmp_path / 'x.jsonl'}")


def test_the_words_that_differ_stand_out() -> None:
    shown = list(unified(changes_between(["the ferry at 8 leaves"], ["the ferry at 9 leaves"])))
    assert [str(shown[1].plain[span.start : span.end]) for span in shown[1].spans if "reverse" in str(span.style)] == [
        "8 "
    ]
