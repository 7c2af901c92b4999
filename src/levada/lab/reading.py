"""The main text of judged pages, as Levada and the libraries that are installed here find it.

Two public corpora are read from where their repositories were put, each with its own measure:
`scrapinghub/article-extraction-benchmark` has whole texts (shingles of four words, precision and recall averaged over
the pages), and `adbar/trafilatura` has pieces of text that belong to the main text or do not (counted over all pages).
The hash of a page's file name puts it into one of two halves: what Levada has learnt it has learnt on the first.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import process_time
from typing import Any, Literal, NamedTuple

import msgspec

from levada.core.errors import LevadaError
from levada.pages.charset import decode
from levada.pages.html import tree_of
from levada.pages.text import main_text

Half = Literal["tuned", "held back"]
Reader = Callable[[bytes], str]
HALVES: tuple[Half, ...] = ("tuned", "held back")
SHINGLE = 4  # words
_WORD = re.compile(r"\w+")


class Judged(NamedTuple):
    """A page and what a person says about its main text: all of it, or pieces that belong to it and that do not."""

    name: str
    path: Path
    text: str = ""
    inside: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()

    @property
    def half(self) -> Half:
        return HALVES[sha256(self.name.encode()).digest()[0] % 2]

    def read(self) -> bytes:
        body = self.path.read_bytes()
        return gzip.decompress(body) if self.path.suffix == ".gz" else body


class Corpus(NamedTuple):
    name: str
    pages: tuple[Judged, ...]
    has_texts: bool  # or pieces of text


class ReadingScore(msgspec.Struct, frozen=True):
    """How well one reader found the main text of one half of a corpus."""

    corpus: str
    half: Half
    reader: str
    version: str
    pages: int
    precision: float
    recall: float
    f1: float
    milliseconds: float  # per page
    failures: int = 0  # pages on which the reader raised


def open_corpus(path: Path) -> Corpus:
    """The corpus whose repository is at this path; `LevadaError` if there is none that is known."""
    if (path / "ground-truth.json").is_file():
        truth = _judgements(path / "ground-truth.json")
        pages = (
            Judged(f"{key}.html", path / "html" / f"{key}.html.gz", text=each.get("articleBody", ""))
            for key, each in truth.items()
        )
        return Corpus("article-extraction-benchmark", _present(path, pages), has_texts=True)
    if (path / "tests" / "evaldata.json").is_file():
        path /= "tests"
    if (path / "evaldata.json").is_file():
        truth = _judgements(path / "evaldata.json")
        pages = (
            Judged(each["file"], _found(path, each["file"]), "", tuple(each["with"]), tuple(each["without"]))
            for each in truth.values()
        )
        return Corpus("trafilatura", _present(path, pages), has_texts=False)
    raise LevadaError(f"{path}: neither ground-truth.json nor evaldata.json is there: give the folder of a clone")


def _judgements(path: Path) -> Mapping[str, Any]:
    try:
        truth = json.loads(path.read_bytes())
    except ValueError as error:
        raise LevadaError(f"{path}: this is not JSON: {error}") from None
    if not isinstance(truth, dict) or not all(isinstance(each, dict) for each in truth.values()):
        raise LevadaError(f"{path}: this is not the judgements of a corpus: an object per page is expected")
    return truth


def _found(path: Path, name: str) -> Path:
    return next((each for folder in ("cache", "eval") if (each := path / folder / name).is_file()), path / name)


def _present(path: Path, pages: Iterator[Judged]) -> tuple[Judged, ...]:
    try:
        known = tuple(pages)
    except (KeyError, TypeError):
        raise LevadaError(f"{path}: a page has no file or no judgements") from None
    if missing := [page.path for page in known if not page.path.is_file()]:
        raise LevadaError(f"{path}: {len(missing)} pages are missing, the first is {missing[0]}")
    return known


def read_by_levada(body: bytes) -> str:
    html = decode(body, "text/html").utf8
    return main_text(tree_of(html), html).decode()


def _trafilatura() -> Reader:
    from trafilatura import extract

    return lambda body: extract(body, include_comments=False) or ""


def _resiliparse() -> Reader:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding
    from resiliparse.parse.html import HTMLTree

    def read(body: bytes) -> str:
        return str(
            extract_plain_text(HTMLTree.parse(bytes_to_str(body, detect_encoding(body) or "utf-8")), main_content=True)
        )

    return read


def _readability() -> Reader:
    from lxml.html import fromstring
    from readability import Document

    def read(body: bytes) -> str:
        summary = Document(decode(body, "text/html").utf8.decode()).summary(html_partial=True)
        return " ".join(fromstring(summary).itertext())

    return read


def _justext() -> Reader:
    from justext import get_stoplist, get_stoplists, justext

    stop_words = frozenset().union(*map(get_stoplist, get_stoplists()))
    return lambda body: "\n".join(each.text for each in justext(body, stop_words) if not each.is_boilerplate)


def _newspaper() -> Reader:
    from newspaper import fulltext

    return lambda body: fulltext(decode(body, "text/html").utf8.decode()) or ""


# By reader: its package, and how to get it.
_LIBRARIES: Mapping[str, tuple[str, Callable[[], Reader]]] = {
    "trafilatura": ("trafilatura", _trafilatura),
    "resiliparse": ("Resiliparse", _resiliparse),
    "readability": ("readability-lxml", _readability),
    "justext": ("jusText", _justext),
    "newspaper": ("newspaper4k", _newspaper),
}
READERS = ("levada", *_LIBRARIES)


def installed_readers(names: Sequence[str] = READERS) -> dict[str, tuple[str, Reader]]:
    """By name the version of each reader that is installed, and the reader."""
    readers: dict[str, tuple[str, Reader]] = {}
    for name in names:
        if name == "levada":
            readers[name] = (version("levada"), read_by_levada)
            continue
        package, make = _LIBRARIES[name]
        try:
            readers[name] = (version(package), make())
        except (ImportError, PackageNotFoundError):
            continue
    return readers


def score(corpus: Corpus, half: Half, name: str, release: str, reader: Reader) -> ReadingScore:
    """Read every page of the half and compare by the corpus's own measure; a page that fails has no text."""
    pages = [page for page in corpus.pages if page.half == half]
    texts = list[str]()
    seconds, failures = 0.0, 0
    for page in pages:
        body = page.read()
        begin = process_time()
        try:
            text = reader(body)
        except Exception:  # a library may raise anything on a page, and the others are to be compared all the same
            text, failures = "", failures + 1
        seconds += process_time() - begin
        texts.append(text)
    measure = by_shingles if corpus.has_texts else by_pieces
    precision, recall = measure(pages, texts)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    spent = 1000 * seconds / max(len(pages), 1)
    return ReadingScore(corpus.name, half, name, release, len(pages), precision, recall, f1, spent, failures)


def by_shingles(pages: Sequence[Judged], texts: Sequence[str]) -> tuple[float, float]:
    """Precision and recall of runs of four words, averaged over the pages that have a text there."""
    precisions, recalls = list[float](), list[float]()
    for page, text in zip(pages, texts, strict=True):
        judged, found = _shingles(page.text), _shingles(text)
        both = (judged & found).total()
        if found:
            precisions.append(both / found.total())
        if judged:
            recalls.append(both / judged.total())
    return _mean(precisions), _mean(recalls)


def _mean(figures: Sequence[float]) -> float:
    return sum(figures) / len(figures) if figures else 0.0


def _shingles(text: str) -> Counter[tuple[str, ...]]:
    words = _WORD.findall(text)
    ends = range(max(1, len(words) - SHINGLE + 1)) if words else ()
    return Counter(tuple(words[at : at + SHINGLE]) for at in ends)


def by_pieces(pages: Sequence[Judged], texts: Sequence[str]) -> tuple[float, float]:
    """Precision and recall of the pieces that belong to the main text and of those that do not, over all pages."""
    found = missed = wrong = 0
    for page, text in zip(pages, texts, strict=True):
        said = " ".join(text.split())
        inside = sum(" ".join(piece.split()) in said for piece in page.inside)
        found += inside
        missed += len(page.inside) - inside
        wrong += sum(" ".join(piece.split()) in said for piece in page.outside)
    return found / max(found + wrong, 1), found / max(found + missed, 1)
