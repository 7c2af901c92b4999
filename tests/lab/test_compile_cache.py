"""The compile cache keeps apart what differs, and follows the sources."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import levada
from levada.core import compile_cache
from levada.lab.stages.machine import run_samples
from levada.stages.rules import rule_named


def test_steps_of_one_module_are_cached_under_different_names() -> None:
    rules = [rule_named(name, 1, 2, {}) for name in ("linear", "drain-time", "hpa", "keda")]
    kernels = [compile_cache.compiled(run_samples, allocates=False, step=rule.step) for rule in rules]
    assert len({kernel.__qualname__ for kernel in kernels}) == len(rules)


def test_the_digest_covers_every_compiled_package() -> None:
    root = Path(levada.__file__).parent
    assert [part for part in compile_cache._COMPILED if not any((root / part).rglob("*.py"))] == []
    assert compile_cache._digest() != blake2b(digest_size=8).hexdigest()
