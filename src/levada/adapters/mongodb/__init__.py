"""What is a MongoDB asked? Its wire protocol, its profiler and its log, read without touching the application."""

from levada.errors import MissingExtra

try:
    import bson  # noqa: F401  every module here needs it
except ImportError:
    raise MissingExtra("pymongo", "mongodb") from None

__all__: list[str] = []
