"""`levada.testing` as the author of a plug-in meets it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from levada import testing

_WITHOUT = """
import sys
sys.modules[{missing!r}] = None
import levada.testing
assert not any(sys.modules.get(name) for name in ("hypothesis", "pytest"))
try:
    levada.testing.ClockContract, levada.testing.StoreContract
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("name", testing.__all__)
def test_every_suite_can_be_had_and_says_how_it_is_used(name: str) -> None:
    suite = getattr(testing, name)
    assert "    ```python\n    class TestMy" in suite.__doc__


def test_every_name_has_its_module() -> None:
    assert sorted(testing._MODULES) == testing.__all__


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'NothingContract'"):
        testing.NothingContract  # noqa: B018


@pytest.mark.parametrize("missing", ["pytest", "hypothesis"])
def test_without_pytest_it_is_imported_and_says_what_to_install(missing: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT.format(missing=missing)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("UsageError")
    assert f"needs {missing}: pip install 'levada[testing]'" in done.stdout
