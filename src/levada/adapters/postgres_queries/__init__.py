"""What is a PostgreSQL asked? Its log and its statistics of statements, parsed with PostgreSQL's own grammar."""

from levada.errors import MissingExtra

try:
    import pglast  # noqa: F401  every module here needs it
except ImportError:
    raise MissingExtra("pglast", "postgresql") from None

__all__: list[str] = []
