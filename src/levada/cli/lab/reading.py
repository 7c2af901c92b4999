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


def show(scores: Sequence[ReadingScore]) -> None:
    out = wide_printer()
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


def reading(
    corpus: Annotated[list[Path], typer.Option(metavar="DIR", help="The clone of a corpus; may be repeated.")],
    readers: Annotated[str | None, typer.Option(metavar="A,B", help="Only these; default: all installed.")] = None,
    json: JsonOption = False,
) -> None:
    """Reads the main text of the judged pages of public corpora, by Levada and by every library that is installed.

    The corpora are clones of github.com/scrapinghub/article-extraction-benchmark and github.com/adbar/trafilatura,
    each judged by its own measure. What Levada's reader has learnt, it has learnt on the tuned half of their pages.

    Examples:

    ```
    levada lab reading --corpus article-extraction-benchmark --corpus trafilatura
    levada lab reading --corpus trafilatura --readers levada,trafilatura --json
    ```
    """
    from levada.lab.reading import READERS, installed_readers, open_corpus

    names = split_names(readers) if readers else tuple(installed_readers())
    for name in names:
        if name not in READERS:
            raise UsageError(f"--readers: {name!r} is none of {', '.join(READERS)}")
    scores = run([open_corpus(path) for path in corpus], names, quiet=json)
    print_result(json, {"scores": scores}, show, scores)
