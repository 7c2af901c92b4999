"""Search beside the libraries that one could install, on judged collections.

A judged collection has documents, questions, and for each question the documents that answer it. Two forms are
read: that of the SMART system, in which Cranfield and CISI are passed on (ftp.cs.cornell.edu/pub/smart), and that of
BEIR (Thakur et al. 2021, arXiv:2104.08663). Every engine gets the questions as they were typed. Judgements count
as relevant or not; nDCG is that of Järvelin and Kekäläinen (2002).

The questions with an odd place are the half on which ours was tuned. The others are held back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from math import log2
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING

import msgspec

from levada.core.errors import LevadaError
from levada.core.records import Change, Document

if TYPE_CHECKING:
    from levada.search.hybrid.fusion import Near

DEPTH = 10  # hits that are judged


class JudgedText(msgspec.Struct, frozen=True):
    """A document of a judged collection."""

    name: str
    title: str
    text: str
    language: str = "en"
    url: str = ""  # of a real page
    anchors: bytes = b""  # what it calls others, as `Document.packed_anchors` has it


class JudgedQuestion(msgspec.Struct, frozen=True):
    """A question, and the names of the documents that answer it."""

    text: str
    answers: frozenset[str]
    as_you_type: bool = False  # its last word is half typed


class JudgedCorpus(msgspec.Struct, frozen=True):
    """A judged collection."""

    name: str
    documents: tuple[JudgedText, ...]
    questions: tuple[JudgedQuestion, ...]  # those with an answer

    def parts(self) -> dict[str, tuple[JudgedQuestion, ...]]:
        """The half on which ours was tuned, the other half, and all questions."""
        return {"tuned": self.questions[::2], "held back": self.questions[1::2], "all": self.questions}


class EngineScore(msgspec.Struct, frozen=True):
    """How well one engine answered some of the questions."""

    corpus: str
    half: str  # tuned, held back, or all
    engine: str
    questions: int
    ndcg: float
    mrr: float
    top3: int  # questions with an answer among the first three hits
    cpu_ms: float  # median of a question


def read_corpus(folder: Path) -> JudgedCorpus:
    """Read a judged collection. `LevadaError` says which file is missing."""
    if (folder / "corpus.jsonl").is_file():
        return _beir(folder)
    documents = _file(folder, r".*\.all(\..*)?", "the documents, such as cran.all.1400 or CISI.ALL")
    questions = _file(folder, r".*\.(qry|que)|query\.text", "the questions, such as cran.qry or CISI.QRY")
    judged = _file(folder, r".*(\.rel|qrels?(\..*)?)", "the judgements, such as cranqrel or CISI.REL")
    texts = tuple(
        JudgedText(fields["I"], fields.get("T", ""), fields.get("W", "")) for fields in _smart_records(documents)
    )
    rows = [line.split() for line in judged.read_text(encoding="utf-8", errors="replace").splitlines()]
    pairs = [(row[0].lstrip("0"), row[1]) for row in rows if len(row) > 1]
    asked = {fields["I"].lstrip("0"): fields.get("W", "") for fields in _smart_records(questions)}
    if not asked.keys() >= {number for number, _ in pairs}:
        # Cranfield's judgements count the questions, whatever their numbers are.
        asked = {str(place): text for place, text in enumerate(asked.values(), 1)}
    return _corpus(folder.name, texts, asked, pairs)


def _file(folder: Path, pattern: str, what: str) -> Path:
    named = re.compile(pattern, re.IGNORECASE)
    found = sorted(path for path in folder.glob("*") if path.is_file() and named.fullmatch(path.name))
    if not found:
        raise LevadaError(f"--corpus {folder}: no file holds {what}")
    return found[0]


def _smart_records(path: Path) -> Iterator[dict[str, str]]:
    """The records of a file of the SMART system: `.I` begins one, and other letters its fields."""
    text = path.read_text(encoding="utf-8", errors="replace")
    for record in re.split(r"^\.I\s+", text, flags=re.MULTILINE)[1:]:
        number, *parts = re.split(r"^\.([A-Z])\s*$", record, flags=re.MULTILINE)
        fields = {name: " ".join(value.split()) for name, value in zip(parts[::2], parts[1::2], strict=True)}
        yield {"I": number.strip(), **fields}


class _BeirText(msgspec.Struct):
    id: str = msgspec.field(name="_id")
    text: str
    title: str = ""


def _beir(folder: Path) -> JudgedCorpus:
    try:
        texts = [_beir_text(line) for line in (folder / "corpus.jsonl").read_bytes().splitlines()]
        asked = {each.id: each.text for each in map(_beir_text, (folder / "queries.jsonl").read_bytes().splitlines())}
        rows = [line.split("\t") for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]]
        pairs = [(row[0], row[1]) for row in rows if int(row[2]) > 0]
    except (OSError, ValueError, IndexError, msgspec.DecodeError) as error:
        raise LevadaError(f"--corpus {folder}: {error}") from error
    return _corpus(folder.name, tuple(JudgedText(each.id, each.title, each.text) for each in texts), asked, pairs)


_beir_text = msgspec.json.Decoder(_BeirText).decode


def _corpus(
    name: str, texts: tuple[JudgedText, ...], asked: Mapping[str, str], pairs: Iterable[tuple[str, str]]
) -> JudgedCorpus:
    answers: dict[str, set[str]] = {}
    known = {each.name for each in texts}
    for question, document in pairs:
        if document in known:
            answers.setdefault(question, set()).add(document)
    questions = [JudgedQuestion(text, frozenset(answers[key])) for key, text in asked.items() if key in answers]
    if not questions:
        raise LevadaError(f"--corpus {name}: no question has a document that answers it")
    return JudgedCorpus(name, texts, tuple(questions))


def gain_of(found: Sequence[str], answers: frozenset[str]) -> float:
    """The gain of the first hits, each less than the one before, as a share of the best possible."""
    gained = sum(1 / log2(place + 2) for place, name in enumerate(found[:DEPTH]) if name in answers)
    return gained / sum(1 / log2(place + 2) for place in range(min(DEPTH, len(answers))))


def reciprocal_rank(found: Sequence[str], answers: frozenset[str]) -> float:
    return next((1 / place for place, name in enumerate(found[:DEPTH], 1) if name in answers), 0.0)


Engine = Callable[[JudgedQuestion], Sequence[str]]
"""The names of the documents that a question finds, the best first."""


def compare(corpus: JudgedCorpus) -> Iterator[EngineScore]:
    """Ask every installed engine every question, ours first."""
    with TemporaryDirectory() as folder:
        for name, make in engines().items():
            engine = make(corpus, Path(folder))
            answered = {each: _answered(engine, each) for each in corpus.questions}
            for half, questions in corpus.parts().items():
                some = [answered[each] for each in questions]
                if some:
                    yield EngineScore(
                        corpus=corpus.name,
                        half=half,
                        engine=name,
                        questions=len(some),
                        ndcg=fmean(each.gain for each in some),
                        mrr=fmean(each.rank for each in some),
                        top3=sum(each.rank >= 1 / 3 for each in some),
                        cpu_ms=1_000 * median(each.cpu_s for each in some),
                    )


class _Answered(msgspec.Struct, frozen=True):
    gain: float
    rank: float
    cpu_s: float


def _answered(engine: Engine, question: JudgedQuestion) -> _Answered:
    start = process_time()
    found = engine(question)
    cpu_s = process_time() - start
    return _Answered(gain_of(found, question.answers), reciprocal_rank(found, question.answers), cpu_s)


def engines() -> dict[str, Callable[[JudgedCorpus, Path], Engine]]:
    """The engines that are installed."""
    known: dict[str, Callable[[JudgedCorpus, Path], Engine]] = {"levada": _ours, "tantivy, any word": _tantivy}
    if find_spec("wordllama"):
        known["levada, hybrid"] = _hybrid
    if find_spec("bm25s"):
        known["bm25s"] = _bm25s
        known["bm25s, stemmed"] = _bm25s_stemmed
    return known


def _hybrid(corpus: JudgedCorpus, folder: Path) -> Engine:
    from levada.search.hybrid.static import StaticEmbedder
    from levada.search.hybrid.vectors import VectorReader, VectorWriter

    embedder, path = StaticEmbedder(), folder / "hybrid"
    writer = VectorWriter(path, embedder)
    writer.apply([_change(number, each) for number, each in enumerate(corpus.documents, 1)])
    writer.close()
    return _ours(corpus, path, VectorReader([path], embedder).near)


def _ours(corpus: JudgedCorpus, folder: Path, near: Near | None = None) -> Engine:
    from levada.core.errors import BadQuery
    from levada.core.search_records import Query
    from levada.search.tantivy.index import TantivyIndex

    index = TantivyIndex(folder / "levada", writer=True, near=near)
    changes = [_change(number, each) for number, each in enumerate(corpus.documents, 1)]
    index.apply(changes)
    names = {change.url: each.name for change, each in zip(changes, corpus.documents, strict=True)}

    def ask(question: JudgedQuestion) -> list[str]:
        try:
            found = index.search(Query(question.text, limit=DEPTH, as_you_type=question.as_you_type))
        except BadQuery:  # a question may hold what the query language reads as an open phrase: a miss
            return []
        return [names[hit.url] for hit in found.hits]

    return ask


def _change(number: int, each: JudgedText) -> Change:
    url = each.url or f"https://corpus.example/{number}"
    document = Document(
        page_id=number,
        url=url,
        site="corpus.example",
        version=1,
        title=each.title,
        language=each.language,
        charset="utf-8",
        text=each.text,
        body=b"",
        status=200,
        headers=(),
        fetched_at=0.0,
        checked_at=0.0,
        words=len(each.text.split()),
        similarity=0.0,
        searchable=True,
        packed_anchors=each.anchors,
    )
    return Change(number, number, url, "corpus.example", document)


def _tantivy(corpus: JudgedCorpus, folder: Path) -> Engine:
    import tantivy

    build = tantivy.SchemaBuilder()
    build.add_unsigned_field("number", stored=True)
    build.add_text_field("text")
    schema = build.build()
    index = tantivy.Index(schema)
    writer = index.writer(32 << 20, num_threads=1)
    for number, each in enumerate(corpus.documents):
        document = tantivy.Document()
        document.add_unsigned("number", number)
        document.add_text("text", f"{each.title}\n{each.text}")
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def ask(question: JudgedQuestion) -> list[str]:
        words = set(re.findall(r"\w+", question.text.lower()))
        any_of = [(tantivy.Occur.Should, tantivy.Query.term_query(schema, "text", word)) for word in words]
        found = searcher.search(tantivy.Query.boolean_query(any_of), DEPTH, count=False)
        return [corpus.documents[searcher.doc(address)["number"][0]].name for _, address in found.hits]

    return ask


def _bm25s(corpus: JudgedCorpus, folder: Path) -> Engine:
    return _bm25s_with(corpus, None)


def _bm25s_stemmed(corpus: JudgedCorpus, folder: Path) -> Engine:
    import tantivy

    build = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    stem = build.filter(tantivy.Filter.stemmer("english")).build().analyze
    return _bm25s_with(corpus, lambda words: [(stem(word) or [word])[0] for word in words])


def _bm25s_with(corpus: JudgedCorpus, stemmer: Callable[[list[str]], list[str]] | None) -> Engine:
    import bm25s

    def tokens(texts: list[str]) -> object:
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    retriever = bm25s.BM25()
    retriever.index(tokens([f"{each.title}\n{each.text}" for each in corpus.documents]), show_progress=False)
    names = [each.name for each in corpus.documents]

    def ask(question: JudgedQuestion) -> list[str]:
        found, _ = retriever.retrieve(tokens([question.text]), k=min(DEPTH, len(names)), show_progress=False)
        return [names[number] for number in found[0]]

    return ask
