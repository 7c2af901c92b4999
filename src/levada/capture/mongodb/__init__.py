"""Queries of a MongoDB from its wire protocol, its profiler and its log."""

from levada.core.errors import MissingExtra

try:
    import bson  # noqa: F401  every module here needs it
except ImportError:
    raise MissingExtra("pymongo", "mongodb") from None

__all__: list[str] = []
