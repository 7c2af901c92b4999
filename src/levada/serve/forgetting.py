"""Forgetting over HTTP: pages, a site or old versions, deleted for good."""

from __future__ import annotations

from typing import Annotated

import msgspec

from levada.collection.forgetting.run import forget, wanted
from levada.serve.operations import Operations
from levada.serve.view import View

FORGETTING = Operations()
_MOST_URLS = 1_000
_Address = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]


class ForgetAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pages, or a site, or the old versions of a site or of all."""

    urls: Annotated[tuple[_Address, ...], msgspec.Meta(max_length=_MOST_URLS)] = ()
    site: Annotated[str, msgspec.Meta(max_length=300)] = ""
    older_than: Annotated[str, msgspec.Meta(max_length=20, description="A length of time such as 90d.")] = ""
    versions_beyond: Annotated[int, msgspec.Meta(ge=1)] | None = None
    dry_run: bool = False  # say what would go, and delete nothing


class ForgetAnswer(msgspec.Struct, frozen=True):
    dry_run: bool
    pages: int
    versions: int
    messages: int  # changes and messages that waited to be sent
    queries: int  # recorded queries that named it
    maps: tuple[str, ...]  # warm maps that were deleted
    finished: bool  # false: a running crawl has the rest to do, and `waiting` says what
    waiting: str


@FORGETTING.add("POST", "/forget", "Delete pages, a site or old versions for good", errors=(404, 409), is_named=False)
def _forget(view: View, ask: ForgetAsk) -> ForgetAnswer:
    what = wanted(ask.urls, ask.site, ask.older_than or None, ask.versions_beyond)
    access = view.accounts.path if view.accounts else None
    report = forget(view.folder.path, what, dry_run=ask.dry_run, access=access)
    return msgspec.convert(report, ForgetAnswer, from_attributes=True)
