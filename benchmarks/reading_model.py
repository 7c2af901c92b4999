"""Learns the weights of `levada.pages.blocks` from the tuned half of public corpora.

    python benchmarks/reading_model.py --corpus article-extraction-benchmark --corpus trafilatura --docs /usr/share/doc

A page of which a person gave the whole text teaches that. Where there are only pieces, what trafilatura reads there is
taken for the text, corrected by the pieces. Pages of documentation (of each folder below `--docs` at most 40) teach
that all of a manual is its text, as the rules of `levada.pages.text` read it. It prints precision, recall and F1 of
threefold cross-validation on the tuned half, and writes `src/levada/pages/data/main_text.json`. It needs scikit-learn
and trafilatura: `pip install 'levada[bench,text]'`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from trafilatura import extract

from levada.lab.reading import SHINGLE, Judged, by_pieces, by_shingles, open_corpus
from levada.pages import blocks
from levada.pages.blocks import SLOTS, BlockModel, Weights, facts_of, first_word, names_of, words_of
from levada.pages.charset import decode
from levada.pages.html import tree_of
from levada.pages.text import page_lines, ruled_text

LEAST_PAGES = 8  # with a fact that has a weight
LEAST_WEIGHT = 0.02
REGULARIZATION = 0.02
MOST_OF_A_MANUAL = 40
_WORD = re.compile(r"\w+")


class Sample(NamedTuple):
    source: str
    page: Judged
    lines: list[blocks.Line]
    facts: list[list[str | int]]
    labels: list[int]
    weights: list[float]


def sample_of(source: str, page: Judged, body: bytes, how: str) -> Sample | None:
    html = decode(body, "text/html").utf8
    read = page_lines(tree_of(html), BlockModel(Weights(0.0, (0.0,) * SLOTS, {}, {}, {}, {})), keeps_paths=True)
    if read is None or not read[0].lines:
        return None
    lines = read[0].lines
    facts: list[list[str | int]] = []
    for line, slots in zip(lines, facts_of(*read), strict=True):
        names: list[str | int] = [*slots, f"first {first_word(line.text)}"]
        for level, container in enumerate(blocks.containers_of(line)):
            names += blocks.facts_in(container, level, max(read[0].containers[0].size, 1))
        path = line.path
        names += [f"inner {name}" for token in path[-2:] if token for name in names_of(token)]
        names += [f"outer {name}" for token in path[1:-2] for name in names_of(token)]
        if blocks.is_short(line.text):
            names += [f"word {word}" for word in words_of(line.text)]
        facts.append(names)
    texts = [line.text for line in lines]
    weights = [1.0] * len(texts)
    if how == "text":
        labels = labels_by(texts, page.text)
    elif how == "rules":
        labels, weights = labels_by(texts, ruled_text(tree_of(html), html).decode()), [0.3] * len(texts)
    else:
        labels, weights = labels_by_pieces(texts, page, extract(body, include_comments=False) or "")
    return Sample(source, page, lines, facts, labels, weights)


def labels_by(texts: list[str], truth: str) -> list[int]:
    """Whether each line is in the true text; one of a few words only if it is near longer ones that are."""
    words = _WORD.findall(truth.lower())
    runs = {size: {tuple(words[at : at + size]) for at in range(len(words) - size + 1)} for size in range(1, 5)}
    labels: list[float] = []
    sure: list[int] = []
    for at, text in enumerate(texts):
        said = _WORD.findall(text.lower())
        own = [tuple(said[at : at + SHINGLE]) for at in range(len(said) - SHINGLE + 1)]
        if own:
            labels.append(sum(run in runs[SHINGLE] for run in own) >= len(own) / 2)
            if labels[-1] and len(said) >= 2 * SHINGLE:
                sure.append(at)
        else:
            labels.append(0.5 if said and tuple(said) in runs[len(said)] else 0)
    first, last = (sure[0] - 3, sure[-1] + 3) if sure else (0, len(texts))
    return [int(label == 1 or (label == 0.5 and first <= at <= last)) for at, label in enumerate(labels)]


def labels_by_pieces(texts: list[str], page: Judged, taught: str) -> tuple[list[int], list[float]]:
    labels = labels_by(texts, taught)
    inside, outside = (tuple(" ".join(piece.split()) for piece in pieces) for pieces in (page.inside, page.outside))
    said = " ".join(taught.split())
    weights = [0.6 if all(piece in said for piece in inside) else 0.3] * len(texts)
    for at, text in enumerate(texts):
        if any(piece in text for piece in outside):
            labels[at], weights[at] = 0, 3.0
    for piece in inside:
        places = [at for at, text in enumerate(texts) if piece in text]
        for at in places:
            if len(places) == 1 or any(labels[max(0, at - 4) : at + 5]):
                labels[at], weights[at] = 1, 3.0
    return labels, weights


def samples_of(corpora: list[Path], docs: Path | None) -> list[Sample]:
    samples: list[Sample | None] = []
    for path in corpora:
        corpus = open_corpus(path)
        how = "text" if corpus.has_texts else "pieces"
        samples += [sample_of(corpus.name, page, page.read(), how) for page in corpus.pages if page.half == "tuned"]
    for manual in sorted(docs.iterdir()) if docs is not None else ():
        found = [path for path in manual.rglob("*.html") if path.is_file() and path.stat().st_size > 2000]
        found.sort(key=lambda path: sha256(path.name.encode()).digest())
        samples += [
            sample_of("manuals", Judged(path.name, path), path.read_bytes(), "rules")
            for path in found[:MOST_OF_A_MANUAL]
        ]
    return [sample for sample in samples if sample is not None]


class Learner:
    def __init__(self, samples: list[Sample]) -> None:
        self.samples = samples
        counts = Counter(fact for sample in samples for fact in {fact for facts in sample.facts for fact in facts})
        names = [fact for fact, count in counts.items() if isinstance(fact, str) and count >= LEAST_PAGES]
        self.columns: dict[str | int, int] = {fact: at for at, fact in enumerate((*range(SLOTS), *sorted(names)))}
        self.table = self.table_of(samples)
        self.labels = np.concatenate([sample.labels for sample in samples])
        self.weights = np.concatenate([self.weights_of(sample) for sample in samples])
        self.weights *= len(self.weights) / self.weights.sum()
        folds = [sha256(sample.page.name[:8].encode()).digest()[1] % 3 for sample in samples]
        self.folds = np.repeat(folds, [len(sample.lines) for sample in samples])

    def table_of(self, samples: list[Sample]) -> Any:
        columns: list[int] = []
        ends = [0]
        for sample in samples:
            for facts in sample.facts:
                columns += [self.columns[fact] for fact in facts if fact in self.columns]
                ends.append(len(columns))
        table = csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(ends) - 1, len(self.columns)))
        table.sum_duplicates()
        return table

    def weights_of(self, sample: Sample) -> Any:
        """A page counts the more, the more text it has, but not as much more."""
        sizes = np.array([1 + len(line.text) for line in sample.lines])
        return np.array(sample.weights) * np.sqrt(sizes) / np.sqrt(sizes.sum())

    def fit(self, rows: Any) -> Any:
        model = LogisticRegression(C=REGULARIZATION, solver="liblinear")
        return model.fit(self.table[rows], self.labels[rows], sample_weight=self.weights[rows])

    def held_out_scores(self) -> Any:
        scores = np.zeros(len(self.labels))
        for fold in range(3):
            model = self.fit(self.folds != fold)
            scores[self.folds == fold] = model.decision_function(self.table[self.folds == fold])
        return scores

    def figures(self, scores: Any, least: float) -> str:
        texts: dict[str, list[tuple[Judged, str]]] = {}
        start = 0
        for sample in self.samples:
            own = scores[start : start + len(sample.lines)]
            start += len(sample.lines)
            kept = [line.text for line, score in zip(sample.lines, own, strict=True) if score > least]
            texts.setdefault(sample.source, []).append((sample.page, "\n".join(kept)))
        shown: list[str] = []
        for source, read in texts.items():
            if source != "manuals":
                measure = by_shingles if read[0][0].text else by_pieces
                precision, recall = measure([page for page, _ in read], [text for _, text in read])
                f1 = 2 * precision * recall / (precision + recall)
                shown.append(f"{source} {precision:.3f} {recall:.3f} {f1:.4f}")
        manuals = np.repeat([s.source == "manuals" for s in self.samples], [len(s.lines) for s in self.samples])
        if manuals.any():
            own = manuals & (self.labels == 1)
            shown.append(f"lines of manuals kept {np.mean(scores[own] > least):.4f}")
        return ", ".join(shown)

    def learn(self) -> Weights:
        model = self.fit(np.ones(len(self.labels), bool))
        learnt = {fact: round(float(model.coef_[0][at]), 3) for fact, at in self.columns.items()}

        def named(kind: str) -> dict[str, float]:
            own = {fact: weight for fact, weight in learnt.items() if isinstance(fact, str) and fact.startswith(kind)}
            return {fact.removeprefix(kind): weight for fact, weight in own.items() if abs(weight) >= LEAST_WEIGHT}

        slots = tuple(learnt[slot] for slot in range(SLOTS))
        bias = round(float(model.intercept_[0]), 3)
        return Weights(bias, slots, named("inner "), named("outer "), named("word "), named("first "))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, action="append", required=True, metavar="DIR")
    parser.add_argument("--docs", type=Path, metavar="DIR")
    parser.add_argument("--out", type=Path, default=Path("src/levada/pages/data/main_text.json"), metavar="FILE")
    options = parser.parse_args()
    learner = Learner(samples_of(options.corpus, options.docs))
    print(f"{len(learner.samples)} pages, {len(learner.labels)} lines, {len(learner.columns)} facts", flush=True)
    scores = learner.held_out_scores()
    for least in (-0.4, 0.0, 0.4, 0.8):
        print(f"{least:+.1f}: {learner.figures(scores, least)}", flush=True)
    weights = learner.learn()
    fields = {name: getattr(weights, name) for name in weights.__struct_fields__}
    options.out.write_text(json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
