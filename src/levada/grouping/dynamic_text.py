"""As many neighbouring workers per key as it needs (DKG), as the thesis's text has it.

Exact loads instead of whole percents, and several steps back at once. See `levada.grouping.dynamic`.
"""

from __future__ import annotations

from levada.grouping.dynamic import DynamicKeyGrouping

__all__ = ["DynamicTextGrouping"]


class DynamicTextGrouping(DynamicKeyGrouping):
    """The thesis's own tables do not come from this reading."""

    whole_percents = False
