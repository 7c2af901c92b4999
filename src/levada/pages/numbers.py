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
    """A number as people write it: `1,299.00`, `1.299,00`, `1 299`.

    Of two kinds of signs the last is the decimal one. A single one before exactly three digits groups thousands.
    """
    digits = re.sub(f"[{_GROUPING}]", "", written)
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        return float(digits)
    sign, after = digits[last], len(digits) - last - 1
    other = "," if sign == "." else "."
    if other in digits:
        return float(digits.replace(other, "").replace(sign, "."))
    if digits.count(sign) > 1 or (after == 3 and not digits.startswith("0")):
        return float(digits.replace(sign, ""))
    return float(digits.replace(sign, "."))
