"""Compiled kernels are kept under a digest of the sources that they come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.core import compile_cache


def test_the_digest_changes_with_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tmp_path / "stages" / "rule.py"
    kernel.parent.mkdir()
    kernel.write_text("one")
    monkeypatch.setattr(compile_cache, "__file__", str(tmp_path / "core" / "compile_cache.py"))
    before = compile_cache._digest()
    kernel.write_text("two")
    assert compile_cache._digest() != before


def test_every_package_in_the_digest_exists() -> None:
    root = Path(compile_cache.__file__).parents[1]
    assert [part for part in compile_cache._COMPILED if not list((root / part).glob("*.py"))] == []
