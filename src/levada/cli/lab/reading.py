"""`levada lab reading`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from levada.cli.lab.tables import records_table, wide_printer
from levada.cli.options import JsonOption, print_result, split_names
from levada.cli.terminal import progress_bar
from levada.core.errors import LevadaError, UsageError

if TYPE_CHECKING:
    from levada.lab.reading import Corpus, ReadingScore
    from levada.lab.recognition import Cost, RecognitionScore, SampleSet, Subject

_COLUMNS: Mapping[str, Callable[[ReadingScore], str]] = {
    "reader": lambda score: score.reader,
    "version": lambda score: score.version,
    "pages": lambda score: str(score.pages),
    "precision": lambda score: f"{score.precision:.3f}",
    "recall": lambda score: f"{score.recall:.3f}",
    "F1": lambda score: f"{score.f1:.3f}",
    "ms/page": lambda score: f"{score.milliseconds:.1f}",
    "failed": lambda score: str(score.failures),
}


_MISSES = 3  # that are printed; JSON has all
_RECOGNITION_COLUMNS: Mapping[str, Callable[[RecognitionScore], str]] = {
    "reader": lambda score: score.reader,
    "version": lambda score: score.version,
    "samples": lambda score: str(score.samples),
    "right %": lambda score: f"{100 * score.right:.2f}",
    "unknown %": lambda score: f"{100 * score.unknown:.1f}",
    "µs": lambda score: f"{score.microseconds:.0f}",
    "least known": lambda score: ", ".join(
        f"{kind} {100 * share:.0f}" for kind, share in list(score.missed.items())[:_MISSES]
    ),
}
_COST_COLUMNS: Mapping[str, Callable[[tuple[str, Cost]], str]] = {
    "reader": lambda row: row[0],
    "first answer, ms": lambda row: f"{row[1].milliseconds:.0f}",
    "memory, MB": lambda row: f"{row[1].memory_bytes / 1e6:.1f}",
    "on disk, MB": lambda row: f"{row[1].disk_bytes / 1e6:.1f}",
}


def show(
    scores: Sequence[ReadingScore], told: Sequence[RecognitionScore], costs: Mapping[Subject, Mapping[str, Cost]]
) -> None:
    out = wide_printer()
    for subject in dict.fromkeys(score.subject for score in told):
        of_subject = [score for score in told if score.subject == subject]
        for name in dict.fromkeys(score.samples_of for score in of_subject):
            rows = [score for score in of_subject if score.samples_of == name]
            out.print(Text(f"\n{subject}: {name}", style="bold"))
            out.print(records_table(_RECOGNITION_COLUMNS, rows, lambda row: "bold" if row.reader == "levada" else None))
        out.print(Text(f"\n{subject}: cost of a process", style="bold"))
        cost_rows = list(costs[subject].items())
        out.print(records_table(_COST_COLUMNS, cost_rows, lambda row: "bold" if row[0] == "levada" else None))
    for corpus, half in dict.fromkeys((score.corpus, score.half) for score in scores):
        out.print(Text(f"\n{corpus}, {half} half", style="bold"))
        of_half = [score for score in scores if (score.corpus, score.half) == (corpus, half)]
        out.print(records_table(_COLUMNS, of_half, lambda score: "bold" if score.reader == "levada" else None))


def run(corpora: Sequence[Corpus], names: Sequence[str], *, quiet: bool) -> list[ReadingScore]:
    from levada.lab.reading import HALVES, installed_readers, score

    readers = installed_readers(names)
    if missing := [name for name in names if name not in readers]:
        raise LevadaError(f"--readers: {missing[0]} is not installed: pip install 'levada[bench]'")
    runs = [(corpus, half, name) for corpus in corpora for half in HALVES for name in readers]
    scores: list[ReadingScore] = []
    with progress_bar(quiet) as progress:
        for done, (corpus, half, name) in enumerate(runs):
            progress(done, len(runs), f"{name}: {corpus.name}")
            scores.append(score(corpus, half, name, *readers[name]))
    return scores


def tell(
    sets: Sequence[SampleSet], names: Sequence[str], *, quiet: bool
) -> tuple[list[RecognitionScore], dict[Subject, dict[str, Cost]]]:
    from levada.lab.recognition import cost_of, installed_tellers, recognize

    scores: list[RecognitionScore] = []
    costs: dict[Subject, dict[str, Cost]] = {}
    with progress_bar(quiet) as progress:
        for done, samples in enumerate(sets):
            for name, (version, teller) in installed_tellers(samples.subject, names).items():
                progress(done, len(sets), f"{name}: {samples.subject}, {samples.name}")
                scores.append(recognize(samples, name, version, teller))
                known = costs.setdefault(samples.subject, {})
                if name not in known:
                    known[name] = cost_of(samples.subject, name)
    return scores, costs


def reading(
    corpus: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="The clone of a corpus; may be repeated.")
    ] = None,
    languages: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Sentences in files such as tr.txt; may be repeated.")
    ] = None,
    only: Annotated[str | None, typer.Option(metavar="L,M", help="Only these languages; default: all.")] = None,
    charsets: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Pages such as pl-windows-1250.html, or sentences; may be repeated."),
    ] = None,
    readers: Annotated[str | None, typer.Option(metavar="A,B", help="Only these; default: all installed.")] = None,
    json: JsonOption = False,
) -> None:
    """Reads the main text, the languages and the encodings of public corpora, by Levada and by installed libraries.

    The corpora are clones of github.com/scrapinghub/article-extraction-benchmark and github.com/adbar/trafilatura,
    each judged by its own measure. What Levada's reader has learnt, it has learnt on the tuned half of their pages.

    Languages are told of one, three and eight sentences, and encodings of pages that declare none. Sentences are, for
    example, in language-testdata of github.com/pemistahl/lingua-py, and pages in encoding-detection of
    github.com/web-platform-tests/wpt. With sentences, `--charsets` tells pages in the old encodings of their languages.

    Examples:

    ```
    levada lab reading --corpus article-extraction-benchmark --corpus trafilatura
    levada lab reading --corpus trafilatura --readers levada,trafilatura --json
    levada lab reading --languages language-testdata/sentences --only tr,en,de
    levada lab reading --charsets wpt/encoding-detection --charsets language-testdata/sentences
    ```
    """
    from levada.lab.reading import READERS, installed_readers, open_corpus
    from levada.lab.recognition import TELLERS, charset_samples, language_samples

    if not (corpus or languages or charsets):
        raise UsageError("give --corpus, --languages or --charsets, as in: levada lab reading --corpus trafilatura")
    if only and not languages:
        raise UsageError("--only chooses among --languages: give them too")
    known = tuple(dict.fromkeys((*READERS, *TELLERS["languages"], *TELLERS["charsets"])))
    names = split_names(readers) if readers else known
    for name in names:
        if name not in known:
            raise UsageError(f"--readers: {name!r} is none of {', '.join(known)}")
    sets = [each for path in languages or () for each in language_samples(path, split_names(only or ""))]
    sets += [each for path in charsets or () for each in charset_samples(path)]
    wanted = [name for name in names if name in READERS] if readers else list(installed_readers())
    scores = run([open_corpus(path) for path in corpus], wanted, quiet=json) if corpus else []
    told, costs = tell(sets, names, quiet=json)
    print_result(json, {"scores": scores, "recognition": told, "costs": costs}, show, scores, told, costs)
