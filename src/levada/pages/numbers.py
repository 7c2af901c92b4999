"""Numbers in texts, and prices among them, as people write them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from levada.pages.folding import words

_LETTERS = (
    "USD EUR GBP JPY CNY TRY TL CHF SEK NOK DKK ISK PLN CZK HUF RON BGN UAH RUB INR Rs BRL MXN ARS CLP COP CAD AUD NZD"
    " SGD HKD TWD THB IDR MYR PHP VND ZAR KRW AED SAR ILS EGP NGN KES kr zł Kč Ft lei лв грн руб"
)
_CURRENCY = r"(?:[$€£¥₺₽₹₩₪₫฿₴₦₱₸₼₾円元]|(?<![^\W\d_])(?:" + "|".join(_LETTERS.split()) + r")(?![^\W\d_])\.?)"
_GROUPING = " \u00a0\u2009\u202f'’"  # signs that only group thousands
_NUMBER = (  # tried once at the beginning of each row of digits: pages hold rows of any length
    r"(?<!\d)(?<!\d[.,])(?>"
    r"\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d{1,2})?(?!\d)|"  # as in India: 1,29,999.00
    rf"\d{{1,3}}(?:[{_GROUPING}.,]\d{{3}})+(?:[.,]\d{{1,2}})?(?!\d)|\d+(?:[.,]\d+)?)"
)
_PRICE = re.compile(
    rf"{_CURRENCY}\s{{0,2}}({_NUMBER})|({_NUMBER})(?:[.,][-–—]+)?\s{{0,2}}{_CURRENCY}(?!\d)", re.IGNORECASE
)
_ANY_NUMBER = re.compile(_NUMBER)
_LONGEST_LINE = 2_000  # characters in which numbers are looked for


def prices(lines: Iterable[str]) -> Iterator[float]:
    """The numbers beside a currency."""
    for line in lines:
        yield from (number_of(found[1] or found[2]) for found in _PRICE.finditer(line[:_LONGEST_LINE]))


def numbers(lines: Iterable[str], near: str = "") -> Iterator[float]:
    """All numbers; with `near`, those in lines that have these words."""
    wanted = set(words(near))
    for line in lines:
        text = line[:_LONGEST_LINE]
        if not wanted or wanted <= set(words(text)):
            yield from (number_of(found[0]) for found in _ANY_NUMBER.finditer(text))


def number_of(written: str) -> float:
    """A number as people write it: `1,299.00`, `1.299,00`, `1 299`."""
    return float(decimal_of(written))


def decimal_of(written: str, *, point_is_decimal: bool = False) -> str:
    """The same as an exact decimal number, with a point: "1299.00"; "" if it is none.

    Of two kinds of signs the last is the decimal one. A single one before exactly three digits groups thousands; with
    `point_is_decimal`, only a comma does.
    """
    digits = re.sub(f"[{_GROUPING}]", "", written)
    last = max(digits.rfind("."), digits.rfind(","))
    sign, before, after = digits[last : last + 1], digits[: max(last, 0)], digits[last + 1 :]
    other = "," if sign == "." else "."
    if last < 0 or (digits.count(sign) > 1 and other not in digits) or _groups(sign, before, after, point_is_decimal):
        before, after = digits, ""
    elif sign in before:
        return ""  # 1.299,000,5: neither can be the decimal one
    whole = before.replace(".", "").replace(",", "")
    minus = "-" if whole.startswith("-") else ""
    whole = whole.removeprefix("-").lstrip("0") or "0"
    return f"{minus}{whole}.{after}" if after else f"{minus}{whole}"


def _groups(sign: str, before: str, after: str, point_is_decimal: bool) -> bool:
    """Whether a single sign groups thousands."""
    is_single = "." not in before and "," not in before
    is_figure = len(after) == 3 and not before.removeprefix("-").startswith("0")
    return is_single and is_figure and not (sign == "." and point_is_decimal)
