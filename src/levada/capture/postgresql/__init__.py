"""Queries of a PostgreSQL from its log and its statement statistics."""

from levada.core.errors import MissingExtra

try:
    import pglast  # noqa: F401  every module here needs it
except ImportError:
    raise MissingExtra("pglast", "postgresql") from None

__all__: list[str] = []
