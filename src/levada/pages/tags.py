"""The tags of an element as lexbor writes it, and the text behind each.

Tags are split at `<` and `>`, which is right unless an attribute holds such a sign: then a regular expression is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

_TOKEN = re.compile(r'<([^>"]*(?:"[^"]*"[^>"]*)*)>([^<]*)')
_PART_LETTERS, _PART_TAGS = 500_000, 20_000  # taken apart at once: the pieces take ten times the memory

TagsAndTexts = tuple[list[str], list[str]]


class SignInAttribute(Exception):
    """There is a sign of a tag in an attribute, so that `<` and `>` alone do not say where a tag ends."""


def tags_and_texts(html: str) -> Iterator[TagsAndTexts]:
    """What is in each tag of an element, and the text behind each; of a large element part after part.

    In place of its own tag there is one that means nothing.
    """
    start = html.find("<", 1)
    start = start if start > 0 else len(html)
    yield ["br"], [html[:start].partition(">")[2]]
    while start < len(html):
        end = html.find("<", start + _PART_LETTERS)
        part = html[start:] if end < 0 else html[start:end]
        start = len(html) if end < 0 else end
        if part.count("<") == part.count(">"):
            pieces = part.replace("<", ">").split(">")
            yield pieces[1::2], pieces[2::2]
        else:  # one is in an attribute
            found = [piece.partition(">") for piece in part.split("<")[1:]]
            yield [tag for tag, _, _ in found], [text for _, _, text in found]


def found_tags_and_texts(html: str) -> Iterator[TagsAndTexts]:
    """The same for HTML with signs of tags in attributes."""
    found = _TOKEN.finditer(html)
    own = next(found, None)
    yield ["br"], [own[2] if own else ""]
    while part := list(islice(found, _PART_TAGS)):
        yield [each[1].replace("<", "").replace(">", "") for each in part], [each[2] for each in part]
