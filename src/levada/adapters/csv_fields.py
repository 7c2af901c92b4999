"""How long may a field of a CSV file be? Python's own bound of 131,072 characters is less than many a text has."""

from __future__ import annotations

import csv

__all__ = ["LONGEST_FIELD", "allow_long_fields"]

LONGEST_FIELD = 64 << 20  # characters: a quote that is never closed must not fill the memory


def allow_long_fields() -> None:
    """For all readers of the process: `csv` has but one bound."""
    csv.field_size_limit(LONGEST_FIELD)
