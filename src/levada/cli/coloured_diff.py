"""How does a change look? Red went, green came, and the words that differ stand out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from levada.telling.line_changes import DiffLine, Hunk

__all__ = ["unified", "word_by_word"]

_COLOUR = {"-": "red", "+": "green", " ": ""}
_BRACKETS = {"-": ("[-", "-]"), "+": ("{+", "+}")}


def unified(hunks: Sequence[Hunk]) -> Iterator[Text]:
    """As `diff -u`, one line of the page per line."""
    for hunk in hunks:
        yield _header(hunk)
        for each in hunk.lines:
            shown = Text(each.sign, _COLOUR[each.sign])
            whole = len(each.pieces) == 1
            for text, differs in each.pieces:
                shown.append(text, _style(each.sign, differs and not whole))
            yield shown


def word_by_word(hunks: Sequence[Hunk]) -> Iterator[Text]:
    """One line for a line that was rewritten: `the [-old-]{+new+} word`."""
    for hunk in hunks:
        yield _header(hunk)
        for old, new in _paired(hunk.lines):
            yield _merged(old, new)


def _header(hunk: Hunk) -> Text:
    before = f"-{hunk.before_line},{hunk.before_count}"
    return Text(f"@@ {before} +{hunk.after_line},{hunk.after_count} @@", "cyan")


def _style(sign: str, differs: bool) -> str:
    return f"bold reverse {_COLOUR[sign]}" if differs else _COLOUR[sign]


def _paired(lines: Sequence[DiffLine]) -> Iterator[tuple[DiffLine | None, DiffLine | None]]:
    """Lines that went, each with the one that came in its place; a line of both is a pair with itself."""
    gone: list[DiffLine] = []
    come: list[DiffLine] = []
    for each in [*lines, None]:
        if each is not None and each.sign == "-" and not come:
            gone.append(each)
        elif each is not None and each.sign == "+":
            come.append(each)
        else:
            yield from _in_step(gone, come)
            gone, come = [], []
            if each is not None and each.sign == "-":
                gone.append(each)
            elif each is not None:
                yield each, each


def _in_step(gone: list[DiffLine], come: list[DiffLine]) -> Iterator[tuple[DiffLine | None, DiffLine | None]]:
    both = min(len(gone), len(come))
    yield from zip(gone[:both], come[:both], strict=True)
    for each in gone[both:]:
        yield each, None
    for each in come[both:]:
        yield None, each


def _merged(old: DiffLine | None, new: DiffLine | None) -> Text:
    shown = Text()
    if old is new and old is not None:
        return Text(old.text)
    before, after = (list(each.pieces) if each else [] for each in (old, new))
    while before or after:
        for sign, pieces in (("-", before), ("+", after)):
            while pieces and pieces[0][1]:
                _mark(shown, sign, pieces.pop(0)[0])
        # What is left at the front is in both, or (once one side is used up) in neither.
        if before and after:
            shown.append(before.pop(0)[0])
            after.pop(0)
        elif before or after:
            shown.append((before or after).pop(0)[0])
    return shown


def _mark(shown: Text, sign: str, text: str) -> None:
    start, end = _BRACKETS[sign]
    word = text.rstrip()
    shown.append(f"{start}{word}{end}", f"bold {_COLOUR[sign]}")
    shown.append(text[len(word) :])
