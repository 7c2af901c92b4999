"""Contract suites for the authors of plug-ins, one per extension point.

A suite is a class of pytest tests. Subclass it, name the subclass `Test...`, and override `make`:

```python
from levada.testing import ClockContract

class TestMyClock(ClockContract):
    def make(self):
        return MyClock()
```

Suites need pytest and hypothesis (`pip install 'levada[testing]'`); this module itself loads neither.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from levada.core.errors import UsageError

if TYPE_CHECKING:
    from levada.testing.clock import ClockContract
    from levada.testing.embedder import EmbedderContract
    from levada.testing.events import NotifierContract, PageHookContract
    from levada.testing.exporter import ExporterContract
    from levada.testing.fetcher import FetcherContract
    from levada.testing.grouping import GroupingContract
    from levada.testing.index import IndexContract
    from levada.testing.parser import ParserContract
    from levada.testing.policy import RevisitPolicyContract, RevisitRuleContract
    from levada.testing.reading import ChangeFilterContract, ExtractorContract, ReaderContract
    from levada.testing.stages import ControllerContract, WorkforceContract
    from levada.testing.store import ForgettingContract, StoreContract

__all__ = [
    "ChangeFilterContract",
    "ClockContract",
    "ControllerContract",
    "EmbedderContract",
    "ExporterContract",
    "ExtractorContract",
    "FetcherContract",
    "ForgettingContract",
    "GroupingContract",
    "IndexContract",
    "NotifierContract",
    "PageHookContract",
    "ParserContract",
    "ReaderContract",
    "RevisitPolicyContract",
    "RevisitRuleContract",
    "StoreContract",
    "WorkforceContract",
]

_MODULES = {
    "ChangeFilterContract": "reading",
    "ClockContract": "clock",
    "ControllerContract": "stages",
    "EmbedderContract": "embedder",
    "ExporterContract": "exporter",
    "ExtractorContract": "reading",
    "FetcherContract": "fetcher",
    "ForgettingContract": "store",
    "GroupingContract": "grouping",
    "IndexContract": "index",
    "NotifierContract": "events",
    "PageHookContract": "events",
    "ParserContract": "parser",
    "ReaderContract": "reading",
    "RevisitPolicyContract": "policy",
    "RevisitRuleContract": "policy",
    "StoreContract": "store",
    "WorkforceContract": "stages",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = f"{__name__}.{_MODULES[name]}"
    try:
        if module not in sys.modules:
            import_module("pytest").register_assert_rewrite(module)  # so that a failed law shows its values
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name not in ("hypothesis", "pytest"):
            raise
        raise UsageError(f"{name} needs {error.name}: pip install 'levada[testing]'") from error
