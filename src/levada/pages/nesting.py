"""Is this page nested too deeply to be read? Every open element is looked at again by each tag that follows.

An estimate from the bytes, before the tree is built: building it is what hurts.
"""

from __future__ import annotations

import re

__all__ = ["too_deep"]

TAG_BYTES = 6  # a page of fewer bytes per level allowed cannot be deep enough to hurt

# Elements that hold nothing, or that the next of their kind closes.
_FLAT = frozenset(
    b"area base br col embed hr img input link meta source track wbr p li dt dd tr td th thead tbody tfoot option "
    b"optgroup colgroup param script style".split()
)
_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9]*)")


def too_deep(html: bytes, limit: int) -> bool:
    """Whether more than `limit` elements are open at once, as far as their tags tell."""
    if len(html) <= TAG_BYTES * limit or html.count(b"<") <= limit:
        return False
    depth = 0
    for found in _TAG.finditer(html):
        if found[2].lower() in _FLAT:
            continue
        depth = max(depth - 1, 0) if found[1] else depth + 1
        if depth > limit:
            return True
    return False
