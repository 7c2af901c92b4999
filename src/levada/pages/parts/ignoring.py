"""What of a text does not count when two versions of a page are compared.

What is ignored is left out of the text that is compared, never of the text that is stored. All patterns run in time
linear in the text (`levada.core.patterns`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from levada.core.patterns import compiled
from levada.core.site_rules.reading import DATES, NUMBERS, ORDER, PATTERN, REPEATS
from levada.pages.text import tidy_lines

_MONTHS = """
    january|february|march|april|may|june|july|august|september|october|november|december
    januar|februar|märz|mai|juni|juli|oktober|dezember|jänner|maart|januari|februari|mei|augustus
    janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre
    enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre
    gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre
    janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro
    ocak|şubat|mart|nisan|mayıs|haziran|temmuz|ağustos|eylül|ekim|kasım|aralık
    jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec|okt|dez|dic
"""
_WEEKDAYS = """
    monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tue|wed|thu|fri|sat|sun
    montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag
    lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo
    lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica|maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag
    pazartesi|salı|çarşamba|perşembe|cuma|cumartesi|pazar
"""
_UNITS = """
    seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|sekunden?|minuten?|stunden?|tage?n?|wochen?
    monate?n?|jahre?n?|secondes?|heures?|jours?|semaines?|mois|ans?|segundos?|minutos?|horas?|días?|semanas?|mes(?:es)?
    años?|secondi|minuti|ore|giorni|settimane|mesi|anni|saniye|dakika|saat|gün|hafta|ay|yıl
"""


def _one_of(words: str) -> str:
    return "(?:" + "|".join(words.split()) + ")"


_MONTH, _WEEKDAY, _UNIT = map(_one_of, (_MONTHS, _WEEKDAYS, _UNITS))
_CLOCK = r"\d{1,2}[:.h]\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[ap]\.?m\b\.?)?"
_CLOCK_ALONE = r"\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[ap]\.?m\b\.?)?"
_ZONE = r"(?:\s?(?:z\b|utc|gmt|[+-]\d{2}:?\d{2}))?"
_TIME = rf"(?:,?\s*(?:t|at|um|à|a las|saat)?\s*{_CLOCK}{_ZONE})?"
_DAY = r"\d{1,2}(?:st|nd|rd|th|er|º|\.)?"
_DATES = "|".join(
    (
        rf"\b\d{{4}}-\d{{2}}-\d{{2}}{_TIME}",
        rf"\b\d{{4}}[./]\d{{1,2}}[./]\d{{1,2}}\b{_TIME}",
        rf"(?:\b{_WEEKDAY}\b\.?,?\s+)?\b\d{{1,2}}[./-]\d{{1,2}}[./-]\d{{2,4}}\b{_TIME}",
        rf"(?:\b{_WEEKDAY}\b\.?,?\s+)?\b{_DAY}(?:\s+|-)(?:of\s+|de\s+)?{_MONTH}\b\.?,?(?:(?:\s+|-)(?:de\s+)?\d{{4}})?{_TIME}",
        rf"(?:\b{_WEEKDAY}\b\.?,?\s+)?\b{_MONTH}\b\.?\s+{_DAY}(?:,?\s+\d{{4}})?\b{_TIME}",
        rf"\b{_MONTH}\b\.?\s+(?:de\s+)?\d{{4}}\b",
        r"\d{4}年\d{1,2}月(?:\d{1,2}日)?",
        rf"\b(?:\d+|an?|one)\s+{_UNIT}\s+(?:ago|önce)\b",
        rf"\b(?:vor|il y a|hace|há)\s+\d+\s+{_UNIT}\b",
        r"\bjust now\b",
        _CLOCK_ALONE + _ZONE,
    )
)
_NUMBERS = r"[+-]?\p{Nd}+(?:[.,:'’ \x{00A0}\x{2009}\x{202F}]\p{Nd}+)*"


class Ignoring:
    """The entries of `ignore`, compiled. Patterns and plain texts come first, then dates, numbers, and whole lines."""

    def __init__(self, ignored: Sequence[str]) -> None:
        patterns = [compiled(each.removeprefix(PATTERN)) for each in ignored if each.startswith(PATTERN)]
        plain = [each for each in ignored if not each.startswith(PATTERN) and each not in _STEPS and each not in _LINES]
        if plain:
            patterns.append(compiled(_lines_with(plain), ignore_case=True))
        patterns += [compiled(pattern, ignore_case=True) for name, pattern in _STEPS.items() if name in ignored]
        self._patterns = patterns
        self._lines = [work for name, work in _LINES.items() if name in ignored]

    def compared_text(self, text: bytes) -> bytes:
        for pattern in self._patterns:
            text = pattern.sub(b"", text)
        text = tidy_lines(text)
        for work in self._lines:
            text = b"\n".join(work(text.split(b"\n")))
        return text

    def pieces(self, text: bytes) -> list[bytes]:
        """What of a text is ignored: what the patterns find, and the lines that change places or go."""
        found = [match.group() for pattern in self._patterns for match in pattern.finditer(text)]
        lines = text.split(b"\n")
        for work in self._lines:
            kept = work(lines)
            gone = list((Counter(lines) - Counter(kept)).elements())
            found += gone or [one for one, other in zip(lines, kept, strict=True) if one != other]
        return [piece for piece in found if piece.strip()]


def ignored_pieces(entry: str, text: bytes) -> list[str]:
    """What one entry of `ignore` leaves out of a text."""
    return [piece.decode("utf-8", "replace") for piece in Ignoring((entry,)).pieces(text)]


def _lines_with(texts: Sequence[str]) -> str:
    """The pattern of whole lines that have one of these texts."""
    return rf"^.*(?:{'|'.join(map(_quoted, texts))}).*$"


def _quoted(text: str) -> str:
    return "".join(map(_quoted_sign, text))


def _quoted_sign(sign: str) -> str:
    return f"\\{sign}" if sign.isascii() and sign.isprintable() and not sign.isalnum() and sign not in " _" else sign


_STEPS = {DATES: _DATES, NUMBERS: _NUMBERS}
_LINES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    REPEATS: lambda lines: list(dict.fromkeys(lines)),
    ORDER: sorted,
}
