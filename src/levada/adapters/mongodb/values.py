"""Which JSON scalar stands for a value of MongoDB?"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from bson import json_util
from bson.binary import UUID_SUBTYPE, Binary
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.objectid import ObjectId
from bson.timestamp import Timestamp

from levada.sharding.asked import Scalar

__all__ = ["is_end_of_all", "scalar"]


def scalar(value: Any) -> Scalar:
    """Texts and numbers as they are; what JSON has no word for as text."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)  # Int64 is an int of its own kind
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal128):
        return _decimal(value)
    return _text(value)


def is_end_of_all(value: Any) -> bool:
    """MinKey and MaxKey stand before and behind every value: a range that ends there is open."""
    return isinstance(value, (MinKey, MaxKey))


def _decimal(value: Decimal128) -> Scalar:
    try:
        return scalar(float(value.to_decimal()))
    except (ArithmeticError, ValueError):  # digits or an exponent that no decimal number has
        return value.bid.hex()


def _text(value: Any) -> str:
    if isinstance(value, ObjectId):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, DatetimeMS):  # beyond the year 9999
        return str(int(value))
    if isinstance(value, Timestamp):
        return f"{value.time}.{value.inc}"
    if isinstance(value, bytes):
        return _binary(value)
    try:
        return json_util.dumps(value, sort_keys=True)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return type(value).__name__


def _binary(value: bytes) -> str:
    if isinstance(value, Binary) and value.subtype == UUID_SUBTYPE and len(value) == 16:
        return str(value.as_uuid())
    return value.hex()
