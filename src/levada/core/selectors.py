"""Selectors that users bring along: CSS, XPath and properties of structured data for HTML, JSONPath for JSON.

They run on whatever a page contains, in the parser's child, whose limits end one that takes too long. None can reach
a file or the network, and none runs a regular expression that is not linear in the text: XPath has no functions but
its own, and the regular expressions of JSONPath are RE2's.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Any

from levada.core.patterns import compiled

_LONGEST = 1_000
_FUNCTIONS = """
    last position count id local-name namespace-uri name string concat starts-with contains substring-before
    substring-after substring string-length normalize-space translate boolean not true false lang number sum floor
    ceiling round text node comment processing-instruction and or mod div
"""
_XPATH_FUNCTIONS = frozenset(_FUNCTIONS.split())
_CALL = re.compile(r"([\w.-]+(?::[\w.-]+)?)\s*\(")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_JSON_DEPTH = 200
_PROPERTY = re.compile(r"[A-Za-z][\w:.-]{0,99}", re.ASCII)


class Language(Enum):
    CSS = "CSS selector"
    XPATH = "XPath"
    JSONPATH = "JSONPath"
    PROPERTY = "property of structured data"


_PREFIXES = {"css:": Language.CSS, "xpath:": Language.XPATH, "json:": Language.JSONPATH, "data:": Language.PROPERTY}


def language_of(selector: str) -> tuple[Language, str]:
    """The language of a selector as it is written, and what follows the prefix: without one it is CSS.

    >>> language_of("xpath://h1")
    (<Language.XPATH: 'XPath'>, '//h1')
    """
    for prefix, language in _PREFIXES.items():
        if selector.startswith(prefix):
            return language, selector[len(prefix) :].strip()
    return Language.CSS, selector.strip()


def check_selector(selector: str) -> None:
    """ValueError says in one sentence why this cannot be used."""
    language, written = language_of(selector)
    if len(written) > _LONGEST:
        raise ValueError(f"a selector has at most {_LONGEST} characters, not {len(written)}")
    if language is Language.CSS:
        _check_css(written)
    elif language is Language.XPATH:
        compiled_xpath(written)
    elif language is Language.PROPERTY:
        if not _PROPERTY.fullmatch(written):
            raise _wrong(written, language, "write its name, such as data:price")
    else:
        compiled_jsonpath(written)


@lru_cache(maxsize=1_000)
def _check_css(written: str) -> None:
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        LexborHTMLParser(b"<p>").css(written)
    except SelectolaxError:
        hint = ""
        if written.startswith(("/", "./")):
            hint = "; write xpath: before an XPath"
        elif written.startswith("$"):
            hint = "; write json: before a JSONPath"
        raise _wrong(written, Language.CSS, "it does not parse" + hint) from None


@lru_cache(maxsize=1_000)
def compiled_xpath(written: str) -> Any:
    """A compiled XPath 1.0, to be called with an element; ValueError says why it is none."""
    from lxml import etree

    outside = _QUOTED.sub('""', written)
    for name in _CALL.findall(outside):
        if name.rpartition("::")[2].rpartition(":")[2] != name.rpartition("::")[2]:
            raise _wrong(written, Language.XPATH, f"it takes no functions of other namespaces, such as {name}()")
        if name not in _XPATH_FUNCTIONS:
            raise _wrong(written, Language.XPATH, f"XPath 1.0 has no function {name}()")
    if "$" in outside:
        raise _wrong(written, Language.XPATH, "there are no variables")
    try:
        path = etree.XPath(written, regexp=False, smart_strings=False)
        path(etree.Element("html"))
    except (etree.XPathError, ValueError) as error:
        raise _wrong(written, Language.XPATH, f"it does not parse ({str(error)[:100].lower()})") from None
    return path


@lru_cache(maxsize=1_000)
def compiled_jsonpath(written: str) -> Any:
    """A compiled JSONPath (RFC 9535) with `finditer`; ValueError says why it is none."""
    if not written.startswith("$"):
        raise _wrong(written, Language.JSONPATH, "it begins with $")
    try:
        return _json_environment().compile(written)
    except RecursionError:
        raise _wrong(written, Language.JSONPATH, "it is nested too deeply") from None
    except Exception as error:  # the library's own errors cannot always be shown
        said = str(error.args[0])[:100] if error.args else ""
        raise _wrong(
            written, Language.JSONPATH, f"it does not parse ({said})" if said else "it does not parse"
        ) from None


@lru_cache(maxsize=1)
def _json_environment() -> Any:
    from jsonpath import JSONPathEnvironment
    from jsonpath.function_extensions import ExpressionType, FilterFunction

    class Matching(FilterFunction):
        """`match()` and `search()` of RFC 9535, in linear time."""

        arg_types = [ExpressionType.VALUE, ExpressionType.VALUE]  # noqa: RUF012
        return_type = ExpressionType.LOGICAL

        def __init__(self, whole: bool) -> None:
            self._whole = whole

        def __call__(self, value: object, pattern: object) -> bool:
            if not isinstance(value, str) or not isinstance(pattern, str):
                return False
            try:
                found = compiled(pattern)
            except ValueError:
                return False
            text = value.encode("utf-8", "replace")
            return bool(found.fullmatch(text) if self._whole else found.search(text))

    environment = JSONPathEnvironment(strict=True)
    environment.max_recursion_depth = _JSON_DEPTH
    environment.function_extensions["match"] = Matching(whole=True)
    environment.function_extensions["search"] = Matching(whole=False)
    return environment


def _wrong(written: str, language: Language, why: str) -> ValueError:
    return ValueError(f"{written[:200]!r} is no {language.value} that can be used: {why}")
