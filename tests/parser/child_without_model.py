"""A parser child whose model of languages is missing."""

from __future__ import annotations

import sys
from pathlib import Path

from levada.pages import language
from levada.pages.language_model import LanguageModel
from levada.parser import child as parser_child

language.language_model = lambda: LanguageModel(Path("/nowhere/languages.bin"))  # type: ignore[assignment,attr-defined]
if __name__ == "__main__":
    parser_child.main(sys.argv[1:])
