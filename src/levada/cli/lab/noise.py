"""`levada lab noise`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from levada.cli.lab.tables import records_table, wide_printer
from levada.cli.options import JsonOption, print_result
from levada.cli.terminal import progress_bar
from levada.core.errors import LevadaError

if TYPE_CHECKING:
    from levada.lab.injection import InjectionScore


def _columns(wrong: str) -> Mapping[str, Callable[[InjectionScore], str]]:
    return {
        "kind": lambda score: score.kind,
        "reader": lambda score: score.reader,
        "version": lambda score: score.version,
        "pages": lambda score: str(score.pages),
        wrong: lambda score: str(score.wrong),
    }


def show(scores: Sequence[InjectionScore]) -> None:
    out = wide_printer()
    for is_edit, heading, wrong in ((False, "noise", "false versions"), (True, "edits", "missed")):
        own = [score for score in scores if score.is_edit is is_edit]
        out.print(Text(f"\n{heading}", style="bold"))
        out.print(records_table(_columns(wrong), own, lambda score: "bold" if score.reader == "levada" else None))
        for reader in dict.fromkeys(score.reader for score in own):
            of_reader = [score for score in own if score.reader == reader]
            all_pages, all_wrong = (sum(getattr(each, name) for each in of_reader) for name in ("pages", "wrong"))
            out.print(f"{reader}: {all_wrong} of {all_pages} {wrong}")


def noise(
    corpus: Annotated[list[Path], typer.Option(metavar="DIR", help="The clone of a corpus; may be repeated.")],
    json: JsonOption = False,
) -> None:
    """Puts twelve kinds of noise into 60 real articles, makes 200 edits in them, and counts false versions and misses.

    The corpora are those of `levada lab reading`; the articles are from the half that Levada did not learn from. If
    inscriptis is installed, the text that changedetection.io compares by default is beside.

    Examples:

    ```
    levada lab noise --corpus article-extraction-benchmark --corpus trafilatura
    levada lab noise --corpus trafilatura --json
    ```
    """
    from levada.lab.injection import EDIT_KINDS, NOISE_KINDS, articles_of, scores
    from levada.lab.reading import open_corpus

    articles = articles_of([open_corpus(path) for path in corpus])
    if not articles:
        raise LevadaError("--corpus: no page of the held-back half has four paragraphs that were judged")
    found: list[InjectionScore] = []
    kinds = (*NOISE_KINDS, *EDIT_KINDS)
    with progress_bar(json) as progress:
        for done, kind in enumerate(kinds):
            progress(done, len(kinds), kind)
            found += scores(articles, kind)
    print_result(json, {"articles": len(articles), "scores": found}, show, found)
