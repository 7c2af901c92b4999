"""Are modules and ports as small as the house wants them?"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from levada import ports
from tests.house.tree import module_name, modules


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_half_of_the_modules_have_at_most_130_lines() -> None:
    assert median(lines(path) for path in modules()) <= 130


def test_no_module_has_more_than_500_lines() -> None:
    assert {module_name(path): lines(path) for path in modules() if lines(path) > 500} == {}


@pytest.mark.parametrize("port", ports.__all__)
def test_a_port_has_at_most_six_methods(port: str) -> None:
    methods = [name for name, value in vars(getattr(ports, port)).items() if callable(value) and name[0] != "_"]
    assert 1 <= len(methods) <= 6
