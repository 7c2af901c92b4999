"""Each process of a crawl starts without what it does not use. A small crawl costs little else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_PARTS = {"levada.freshness", "levada.grouping", "levada.sharding", "levada.stages"}
_FOLLOWER = {"asyncio", "email", "levada.sharding", "levada.stages", "pycurl", "selectolax", "ssl", "subprocess"}
_UNUSED = {
    "levada.collection.crawling": {"levada.follow.counter", "levada.grouping", "levada.sharding", "tantivy"},
    "levada.follow.index, levada.search.tantivy.index": _FOLLOWER | _PARTS | {"logging"},
    "levada.follow.counter": _FOLLOWER | {"levada.freshness", "tantivy"},
    "levada.parser.child": {"asyncio", "email", "sqlite3", "ssl", "tantivy"} | _PARTS,
}


@pytest.mark.parametrize("process", _UNUSED)
def test_a_process_of_the_crawl_loads_only_what_it_uses(process: str) -> None:
    code = f"import json, sys, {process}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert _UNUSED[process] & set(json.loads(done.stdout)) == set()
