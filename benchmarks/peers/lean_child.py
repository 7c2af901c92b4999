"""Levada's parser child, with the plain reading that the benchmark shares with Scrapy."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from lean import lean_parse

from levada.parser import child as parser_child

if __name__ == "__main__":
    vars(parser_child)["parse_page"] = lean_parse
    parser_child.main(sys.argv[1:])
