"""By which name does a site address a crawler? The product token of RFC 9309."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["NOBODY", "product_of"]

NOBODY = "\x7fnobody\x7f"

_PRODUCT = re.compile(r"[A-Za-z_\-]+")


@lru_cache(maxsize=64)
def product_of(agent: str) -> str:
    """The token in lower case, of itself or of a whole User-Agent header; `NOBODY` if there is none."""
    found = _PRODUCT.match(agent.strip())
    return found[0].lower() if found else NOBODY
