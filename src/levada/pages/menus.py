"""Menus: runs of short lines that are links and little else.

In these lines there is U+001E at the end of each, and U+001F before and after each link.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

MENU_WORDS = 4  # a link of more words is a headline
WORD_LETTERS = 3  # per word in a script without spaces
MENU_LETTERS = 60  # a line with more per link is no menu
_REMEMBERED = 200  # letters: a line with more is hardly repeated
MENU_RUN = 3  # this many short links in a row are a menu
MENU_SHARE = 0.7  # share of linked characters that makes a line with a run of links a menu
ENTRY_SHARE = 0.9  # the same with fewer links: a name with its price or date is content
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_COUNT = re.compile(r"\([\d.,\s]*+\)")  # the number of entries behind a menu link


def without_menus(text: str) -> str:
    """Drop runs of short lines that are links and little else."""
    if "\x1f" not in text:
        return text
    kept: list[str] = []
    run: list[str] = []
    entries = 0
    for line in text.split("\x1e"):
        links = _menu_links(line) if "\x1f" in line else 0
        if links:
            run.append(line)
            entries += links
        elif line and not line.isspace():
            if run:
                kept += run if entries < MENU_RUN else ()
                run, entries = [], 0
            kept.append(line)
    kept += run if entries < MENU_RUN else ()
    return "\x1e".join(kept).replace("\x1f", "")


def _menu_links(line: str) -> int:
    """The number of menu entries in this line; 0 if it is content."""
    return _known_menu_links(line) if len(line) <= _REMEMBERED else _menu_links_in(line)


@lru_cache(maxsize=4096)
def _known_menu_links(line: str) -> int:
    """The same for a line that the pages of a site may share."""
    return _menu_links_in(line)


def _menu_links_in(line: str) -> int:
    parts = line.split("\x1f")
    if len(line) > MENU_LETTERS * len(parts):
        return 0
    links = [part for part in parts[1::2] if part and not part.isspace()]
    linked = sum(map(len, links))
    words: float = sum(len(link.split()) for link in links)
    if not line.isascii():
        words = max(words, sum(len(_WITHOUT_SPACES.findall(link)) for link in links) / WORD_LETTERS)
    rest = "".join(parts[::2])
    if "(" in rest:
        rest = _COUNT.sub("", rest)
    unlinked = sum(map(str.isalnum, rest))  # the bars and dots between links do not count
    share = MENU_SHARE if len(links) >= MENU_RUN else ENTRY_SHARE
    if linked < share * (linked + unlinked) or words > MENU_WORDS * len(links):
        return 0
    return len(links)


def is_menu(lines: Sequence[str]) -> bool:
    """Whether these lines, with U+001F around each link, are a menu as a whole."""
    entries = [_menu_links(line) for line in lines if line.strip()]
    return all(entries) and sum(entries) >= MENU_RUN
