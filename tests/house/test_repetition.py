"""Nothing is written twice: no run of six lines stands in two places of the source without a reason beside it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.house.tree import module_name, modules, tree_of

RUN = 6  # lines
REASON = re.compile(r"#.*\brepeated because ")
"""A comment with these words, just above one of the two places or in it, is the reason."""

_THIN = re.compile(r'[\W_]*|(?:else|try|finally|return|pass|"""):?|@\w+(?:\.\w+)*')

Line = tuple[int, str]


def lines_of(path: Path) -> list[Line]:
    """The lines that say something: no imports, docstrings, comments, or lone punctuation."""
    text = path.read_text(encoding="utf-8").splitlines()
    passed_over: set[int] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            passed_over.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    numbered = ((number, " ".join(line.split())) for number, line in enumerate(text, 1) if number not in passed_over)
    return [(number, line) for number, line in numbered if not line.startswith("#") and not _THIN.fullmatch(line)]


def repeated(sources: dict[str, Sequence[Line]]) -> Iterator[tuple[str, int, str, int]]:
    """Each run that stands twice, once: the two modules, and the line where it starts in each."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, lines in sources.items():
        for at in range(len(lines) - RUN + 1):
            places[tuple(line for _, line in lines[at : at + RUN])].append((name, at))
    for found in places.values():
        for one, (name, at) in enumerate(found):
            for other, where in found[one + 1 :]:
                before = at and where and sources[name][at - 1][1] == sources[other][where - 1][1]
                if not before and (name != other or where - at >= RUN):  # else it is the rest of a longer run
                    yield name, sources[name][at][0], other, sources[other][where][0]


def has_reason(path: Path, start: int) -> bool:
    text = path.read_text(encoding="utf-8").splitlines()[max(0, start - 4) : start + RUN]
    return any(REASON.search(line) for line in text)


def test_no_six_lines_stand_twice_without_a_reason() -> None:
    paths = {module_name(path): path for path in modules()}
    found = [
        f"{one}:{at} and {other}:{where}"
        for one, at, other, where in repeated({name: lines_of(path) for name, path in paths.items()})
        if not has_reason(paths[one], at) and not has_reason(paths[other], where)
    ]
    assert found == []


def test_a_repetition_would_be_noticed() -> None:
    run = [(number, f"step_{number}()") for number in range(1, 9)]
    assert list(repeated({"a": run, "b": [(40, "x = 1"), *run]})) == [("a", 1, "b", 1)]
    assert list(repeated({"a": run[:5], "b": run[:5]})) == []
