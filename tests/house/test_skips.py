"""What CI must have is never skipped there: tests ask `tests.needs`, and every other skip has its reason here."""

from __future__ import annotations

import re

from tests.house.tree import HOUSE

SKIPS = {
    "tests/engines/test_flink.py": "Flink has a run of its own: make test-flink",
    "tests/scale/test_keda.py": "the compiler of gRPC is only for those who change the interface",
    "tests/capture/test_mongodb_proxy.py": "a container may not allow anybody to capture packets",
    "tests/small_disk.py": "a container may not allow anybody to mount a small disk",
}
_SKIP = re.compile(r"pytest\.(?:skip\(|importorskip\(|mark\.skip)")


def test_nothing_is_skipped_under_ci_without_a_reason() -> None:
    here = {
        str(path.relative_to(HOUSE))
        for path in HOUSE.glob("tests/**/*.py")
        if _SKIP.search(path.read_text(encoding="utf-8"))
    }
    assert here - {"tests/needs.py"} == set(SKIPS)
