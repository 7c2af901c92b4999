"""Questions over real pages: folders of HTML files, such as Debian's documentation packages unpack to.

The files are read as a crawl reads them, so titles, texts and links are what search gets. A page whose title and text
are those of another one is a copy, and counts as that one. A question names the ends of the paths that answer it.

The questions that are shipped (`data/search_questions.jsonl`) are our own. They are about the documentation of
Python, SQLite, PostgreSQL, Git, R, Django, pandas, SciPy, scikit-learn, Linux, Rust, CMake, Java, Boost, Node.js, Qt,
Debian, Haskell and Scala; one in ten is misspelt, and one in ten is half typed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

import msgspec

from levada.core.errors import LevadaError
from levada.core.hashing import content_digest
from levada.core.records import RawPage
from levada.lab.search import JudgedCorpus, JudgedQuestion, JudgedText
from levada.pages.compression import unpack_text_and_anchors
from levada.pages.parse import parse_page

_ENDINGS = (".html", ".htm")
_SITE = "http://pages.example"


class PathQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question, and the ends of the paths of the pages that answer it."""

    question: str
    answers: tuple[str, ...]
    as_you_type: bool = False


def read_pages(folder: Path, questions: Path | None = None) -> JudgedCorpus:
    """The HTML files below `folder`, with the questions of a file (or those that are shipped) that one of them
    answers."""
    asked = _questions(questions)
    if not folder.is_dir():
        raise LevadaError(f"--pages {folder}: there is no such folder")
    first: dict[bytes, JudgedText] = {}
    same: dict[str, str] = {}  # the name of each file: the name of the first one with this content
    for path in _html_files(folder):
        name = path.relative_to(folder).as_posix()
        page = _read(path, name)
        if page is not None:
            digest = content_digest(f"{page.title}\0{page.text}".encode("utf-8", "replace"))
            same[name] = first.setdefault(digest, page).name
    judged = [JudgedQuestion(each.question, _answers(each, same), each.as_you_type) for each in asked]
    answered = tuple(each for each in judged if each.answers)
    if not answered:
        raise LevadaError(f"--pages {folder}: none of its {len(same)} pages answers one of the questions")
    return JudgedCorpus(folder.name, tuple(first.values()), answered)


def _questions(path: Path | None) -> list[PathQuestion]:
    shipped = files("levada.lab").joinpath("data", "search_questions.jsonl")
    try:
        lines = (shipped if path is None else path).read_bytes().splitlines()
    except OSError as error:
        raise LevadaError(f"--questions {path}: {error.strerror}") from error
    questions = []
    for number, line in enumerate(lines, 1):
        try:
            questions.append(_decode(line))
        except msgspec.DecodeError as error:
            raise LevadaError(f"--questions {path}, line {number}: {error}") from error
    return questions


_decode = msgspec.json.Decoder(PathQuestion).decode


def _html_files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            if name.lower().endswith(_ENDINGS) and path.is_file() and not path.is_symlink():
                yield path


def _read(path: Path, name: str) -> JudgedText | None:
    url = f"{_SITE}/{quote(name, errors='replace')}"
    parsed = parse_page(RawPage(url, path.read_bytes(), "text/html"))
    if not parsed.content_zstd:
        return None
    text, anchors = unpack_text_and_anchors(parsed.content_zstd)
    return JudgedText(name, parsed.title, text.decode("utf-8", "replace"), parsed.language, url, anchors)


def _answers(question: PathQuestion, same: dict[str, str]) -> frozenset[str]:
    ends = tuple(f"/{end}" for end in question.answers)
    return frozenset(first for name, first in same.items() if f"/{name}".endswith(ends))
