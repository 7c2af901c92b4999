"""Language of a text, by a linear model of its words and of its runs of three letters.

`data/languages.bin` holds a row of weights, one per language, for each of some thirty thousand words and runs. A text's
score for a language is the sum of the weights of what is in it: the logarithm of the odds. A run that has no row
counts as one of its script, so that a script of one language tells that language, and unknown words tell against all.

A row is one big number with sixteen bits per language, so one addition adds all languages. The file is a hash table
that is mapped into memory: every process shares it, and it is never read as a whole. Rows that were met are kept.
The method is that of fastText (Joulin and others, Bag of tricks for efficient text classification, 2017) without its
hidden layer. `benchmarks/language_model.py` has learnt the weights; `data/SOURCE-languages.md` says from what.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from struct import Struct
from zlib import crc32

from levada.core.errors import LevadaError

FIRST, MORE = 160, 320  # bytes of a text that are read, and that are read then if it is not clear
WINDOWS = 3  # places where they are read: a text may begin in another language than it goes on
RUN = 3  # letters
STEPS = 8  # per unit of the logarithm of the odds
LARGEST = 63  # steps: the largest weight; sums of all that is in a sample fit into sixteen bits
_COMMON = "ar bg ca cs da de el en es fa fi fr he hi hr hu id it ja ko lt nl no pl pt ro ru sk sv th tr uk vi zh"
COMMON = frozenset(_COMMON.split())  # what most pages on the web are written in
UNKNOWN = ""  # the first language of the file: code, numbers, other languages
MAGIC = b"levada languages 1:"
_MOST_ROWS = 20_000  # that are kept
_MOST_WORDS, _LONGEST_WORD = 10_000, 20  # that are kept; letters of one
_FILE = Path(__file__).parent / "data" / "languages.bin"
_SCRIPTS = 0xF0000  # first of the private letters that stand for scripts
_OTHERS = bytes(code for code in range(128) if not chr(code).isalpha())
_PLAIN = bytes.maketrans(_OTHERS + ascii_uppercase.encode(), b" " * len(_OTHERS) + ascii_lowercase.encode())


def samples_of(text: bytes) -> list[tuple[bytes, bytes]]:
    """Of each place where a text in UTF-8 is read, some of it and some more; a short text is read whole."""
    if len(text) <= FIRST:
        return [(text, b"")]
    first = FIRST // WINDOWS
    both = min(FIRST + MORE, len(text)) // WINDOWS
    step = (len(text) - both) // (WINDOWS - 1)
    return [(text[at : at + first], text[at + first : at + both]) for at in range(0, WINDOWS * step, step)]


def plain_words(text: bytes) -> str:
    """The words of a text in UTF-8, in lower case and with a space before, between and behind them."""
    return f" {' '.join(text.translate(_PLAIN).decode('utf-8', 'ignore').lower().split())} "


def features_of(words: str) -> Iterator[str]:
    """Every run of three letters and every word."""
    return chain(map("".join, zip(words, words[1:], words[2:], strict=False)), words.split())


def script_of(run: str) -> str:
    """The feature that stands for a run without a row: the block of 128 letters from which its middle letter is."""
    return chr(_SCRIPTS + (ord(run[1]) >> 7))


def slot_of(feature: str, slots: int) -> tuple[int, int]:
    """The only place of a feature's row in the table, and the byte by which the row is recognized there."""
    mark = crc32(feature.encode("utf-8", "replace"))
    return mark % slots, (mark >> 24) or 1


class LanguageModel:
    """The rows of the file; `LevadaError` if it is missing or is not such a file."""

    def __init__(self, path: Path = _FILE) -> None:
        try:
            with path.open("rb") as file:
                table = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or error
            raise LevadaError(f"{path}: the model of languages cannot be read ({said}): install Levada again") from None
        head = table[: table.find(b"\n") + 1]
        self.languages = tuple(head.removeprefix(MAGIC).decode("ascii", "replace").removesuffix("\n").split(","))
        self._table, self._start, self._width = table, len(head), 1 + len(self.languages)
        self.places = {language: place for place, language in enumerate(self.languages)}
        self._lanes = Struct(f"<{len(self.languages)}H")
        self._slots, rest = divmod(len(table) - len(head), self._width)
        if not head.startswith(MAGIC) or rest or not self._slots or self._slots & (self._slots - 1):
            raise LevadaError(f"{path}: this is not a whole model of languages: install Levada again")
        self._rows = _Rows(self)
        self._words = _Words(self._rows)

    def weigh(self, words: str) -> int:
        """The odds of all languages in one number; the sum of such numbers is that of their odds.

        The sum over `features_of(words)`, of words as `plain_words` gives them: what is in one word is added up once.
        """
        each = words.split()
        between = [f"{word[-1]} {after[0]}" for word, after in pairwise(each)]
        return sum(map(self._words.__getitem__, each)) + sum(map(self._rows.__getitem__, between))

    def odds(self, weighed: int) -> tuple[int, ...]:
        """By language the logarithm of the odds, in steps and from an arbitrary zero."""
        return self._lanes.unpack(weighed.to_bytes(self._lanes.size, "little"))

    def row(self, feature: str) -> int | None:
        slot, mark = slot_of(feature, self._slots)
        at = self._start + slot * self._width
        row = self._table[at : at + self._width]
        if row[0] != mark:
            return None
        lanes = bytearray(self._lanes.size)
        lanes[::2] = row[1:]
        return int.from_bytes(lanes, "little")


class _Rows(dict[str, int]):
    """The rows that were met, as numbers."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def __missing__(self, feature: str) -> int:
        row = self._model.row(feature)
        if row is None:
            row = self[script_of(feature)] if len(feature) == RUN else 0
        if len(self) >= _MOST_ROWS:
            self.clear()
        self[feature] = row
        return row


class _Words(dict[str, int]):
    """The sums of the rows of words that were met and of the runs of letters in them."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows

    def __missing__(self, word: str) -> int:
        weighed = sum(map(self._rows.__getitem__, features_of(f" {word} ")))
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[word] = weighed
        return weighed


@cache
def language_model() -> LanguageModel:
    return LanguageModel()
