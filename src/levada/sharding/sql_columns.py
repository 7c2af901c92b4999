"""Which columns does a list name that is written as in CREATE TABLE?"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["column_names"]

_TOKEN = re.compile(r"""("(?:[^"]|"")*")|'(?:[^']|'')*'|([^\W\d][\w$]*)|([(),])|.""", re.DOTALL)


def column_names(columns: str) -> list[str] | None:
    """As PostgreSQL reads them: in small letters where no quotes are; None where LIKE brings unknown ones."""
    names = list(_first_words(columns))
    return None if ("like", False) in names else [name for name, _ in names]


def _first_words(columns: str) -> Iterator[tuple[str, bool]]:
    """Of each part between commas, and whether it stands in quotes."""
    depth, first = 0, True
    for quoted, word, sign in _TOKEN.findall(columns):
        if first and depth == 0 and (quoted or word):
            yield (quoted[1:-1].replace('""', '"') if quoted else word.lower()), bool(quoted)
            first = False
        depth += {"(": 1, ")": -1}.get(sign, 0)
        first = first or (sign == "," and depth == 0)
