"""Contract suite of the store: all suites of this package together."""

from __future__ import annotations

from levada.testing.store.documents import ChangeLogContract, DocumentContract, LookupContract, PageSampleContract
from levada.testing.store.duplicates import DuplicateContract
from levada.testing.store.forgetting import ForgettingContract
from levada.testing.store.frontier import FrontierContract, SiteContract
from levada.testing.store.hints import ChangeHintContract

__all__ = ["ForgettingContract", "StoreContract"]


class StoreContract(
    FrontierContract,
    SiteContract,
    DocumentContract,
    ChangeLogContract,
    PageSampleContract,
    ChangeHintContract,
    DuplicateContract,
    LookupContract,
):
    """Everything that the crawl needs of a store.

    ```python
    class TestMyStore(StoreContract):
        def make(self, folder: Path, limits: StoreLimits) -> Store:
            return MyStore(folder / "pages.db", limits)
    ```
    """
