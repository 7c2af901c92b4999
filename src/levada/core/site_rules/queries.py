"""Parameters of queries that a site does not need: by its rule, one page has one address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from levada.core.patterns import check_pattern, compiled, glob_pattern

if TYPE_CHECKING:
    from levada.core.site_rules.section import SiteSettings

_Named = Callable[[str], bool]


class QueryRule:
    """The keys `keep_query` and `drop_query` of one rule: names of parameters, in which `*` is any text.

    >>> rule = QueryRule(keep=("id", "page"), drop=None)
    >>> rule.tidied("https://example.org/list?page=2&sort=up")
    'https://example.org/list?page=2'
    """

    def __init__(self, keep: Sequence[str] | None, drop: Sequence[str] | None) -> None:
        self._keep = None if keep is None else _any_of(keep)
        self._drop = _any_of(drop or ())

    def tidied(self, url: str) -> str:
        """A canonical URL without the parameters that do not count."""
        address, mark, query = url.partition("?")
        if not mark:
            return url
        parts = [part for part in query.split("&") if self._counts(part)]
        return f"{address}?{'&'.join(parts)}" if parts else address

    def key(self, url: str) -> str:
        """The key by which a canonical URL is none of the site's; "" if it is one."""
        for part in url.partition("?")[2].split("&"):
            if part and not self._counts(part):
                return "drop_query" if self._drop(_name(part)) else "keep_query"
        return ""

    def _counts(self, part: str) -> bool:
        name = _name(part)
        return (self._keep is None or self._keep(name)) and not self._drop(name)


def query_rule(keys: SiteSettings) -> QueryRule | None:
    """The query rule of these keys; None where they say nothing."""
    if keys.keep_query is None and not keys.drop_query:
        return None
    return QueryRule(keys.keep_query, keys.drop_query)


def check_parameters(key: str, names: Sequence[str] | None) -> None:
    """ValueError names the key and says what is wrong with one of its names."""
    for name in names or ():
        if any(mark in name for mark in "=&?#") or name != name.strip():
            raise ValueError(f'{key} takes names of parameters, such as "id" or "utm_*", not {name[:100]!r}')
        try:
            check_pattern(glob_pattern(name))
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None


def _name(part: str) -> str:
    """The name of a parameter as a person writes it, in lower case."""
    return unquote_plus(part.partition("=")[0]).lower()


def _any_of(names: Sequence[str]) -> _Named:
    plain = frozenset(name.lower() for name in names if "*" not in name)
    tests: list[Any] = [
        compiled("(?s:" + ".*".join(map(glob_pattern, name.lower().split("*"))) + ")").fullmatch
        for name in names
        if "*" in name
    ]
    if not tests:
        return plain.__contains__
    return lambda name: name in plain or any(test(name.encode("utf-8", "replace")) is not None for test in tests)
