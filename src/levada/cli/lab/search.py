"""`levada lab search`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from levada.cli.lab.tables import records_table, wide_printer
from levada.cli.options import JsonOption, print_result
from levada.core.errors import UsageError

if TYPE_CHECKING:
    from levada.lab.search import EngineScore

_COLUMNS: Mapping[str, Callable[[EngineScore], str]] = {
    "engine": lambda score: score.engine,
    "questions": lambda score: score.half,
    "number": lambda score: f"{score.questions:,}",
    "nDCG@10": lambda score: f"{score.ndcg:.3f}",
    "top 3": lambda score: f"{score.top3:,}",
    "MRR": lambda score: f"{score.mrr:.3f}",
    "CPU ms": lambda score: f"{score.cpu_ms:.2f}",
}


def show(scores: list[EngineScore]) -> None:
    out = wide_printer()
    for name in dict.fromkeys(score.corpus for score in scores):
        own = [score for score in scores if score.corpus == name]
        out.print(Text(f"\n{name}", style="bold"))
        out.print(records_table(_COLUMNS, own, lambda score: "bold" if score.engine == "levada" else None))


def search(
    corpus: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="A folder with a judged collection; may be repeated.")
    ] = None,
    pages: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A folder of HTML files, such as unpacked documentation; may be repeated."),
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Questions for --pages, instead of those that are shipped.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Asks the questions of judged collections, and prints how well the search of Levada answers them, beside every
    search library that is installed.

    A folder holds the files of the SMART system (cran.all.1400, cran.qry and cranqrel; or CISI.ALL, CISI.QRY and
    CISI.REL), or those of BEIR (corpus.jsonl, queries.jsonl and qrels/test.tsv). With --pages the HTML files below a
    folder are searched. The questions that are shipped are about the documentation packages of Debian.

    Examples:

    ```
    levada lab search --corpus cranfield
    levada lab search --corpus cranfield --corpus cisi --json
    levada lab search --pages docs
    levada lab search --pages my-site --questions questions.jsonl
    ```
    """
    from levada.lab.judged_pages import read_pages
    from levada.lab.search import compare, read_corpus

    if not corpus and not pages:
        raise UsageError("--corpus is missing: name a folder with a judged collection, such as --corpus cranfield")
    if questions and not pages:
        raise UsageError("--questions needs --pages: the folder of HTML files that answer them")
    scores = [score for folder in corpus or () for score in compare(read_corpus(folder))]
    scores += [score for folder in pages or () for score in compare(read_pages(folder, questions))]
    print_result(json, {"scores": scores}, show, scores)
