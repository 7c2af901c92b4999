"""Webhooks: who is told of changes."""

from __future__ import annotations

import secrets
from typing import Annotated

import msgspec

from levada.dashboard.changes import Least, Site, Words
from levada.dashboard.operations import Nothing, Operation
from levada.dashboard.view import View
from levada.errors import NotFound, TooMany, UsageError
from levada.flow.feed import filter_of
from levada.pages.urls import canonical
from levada.records import Hook

__all__ = ["HOOKING"]

_MOST_HOOKS = 100


class HookAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
    site: Site = ""
    words: Words = ""
    least: Least = 0.0
    from_beginning: bool = False  # tell of everything in the log, not only of what is to come


class HookId(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class HookFacts(msgspec.Struct, frozen=True):
    id: str
    url: str
    site: str
    words: str
    least: float
    told: int  # changes, in all
    failures: int  # in a row
    trouble: str  # at the last try


class NewHookAnswer(msgspec.Struct, frozen=True):
    hook: HookFacts
    secret: str  # shown only now: requests are signed with it


class HooksAnswer(msgspec.Struct, frozen=True):
    hooks: list[HookFacts]


def _facts(hook: Hook) -> HookFacts:
    wanted = hook.wanted
    return HookFacts(
        hook.id, hook.url, wanted.site, wanted.words, wanted.least, hook.told, hook.failures, hook.trouble
    )


def _list(view: View, _ask: Nothing) -> HooksAnswer:
    return HooksAnswer([_facts(hook) for hook in view.hooks().hooks()])


def _add(view: View, ask: HookAsk) -> NewHookAnswer:
    address = canonical(ask.url)
    if not address.startswith(("http://", "https://")):
        raise UsageError(f"'{ask.url[:200]}' is not an http or https address")
    wanted = filter_of(ask.site, ask.words, ask.least)
    if len(view.hooks().hooks()) >= _MOST_HOOKS:
        raise TooMany(f"there are {_MOST_HOOKS} hooks already: remove one first")
    feed = view.feed()
    after = feed.start() if ask.from_beginning else feed.newest()
    hook = Hook(secrets.token_hex(8), address, secrets.token_urlsafe(32), wanted, after)
    view.hooks(create=True).add(hook)
    return NewHookAnswer(_facts(hook), hook.secret)


def _remove(view: View, ask: HookId) -> HooksAnswer:
    if not view.hooks().remove(ask.id):
        raise NotFound(f"there is no hook {ask.id}")
    return _list(view, Nothing())


HOOKING = [
    Operation(
        method="GET",
        path="/webhooks",
        summary="Who is told of changes",
        handle=_list,
        answer=HooksAnswer,
        errors=(404,),
        slow=True,
    ),
    Operation(
        method="POST",
        path="/webhooks",
        summary="Tell this address of changes",
        handle=_add,
        asks=HookAsk,
        in_body=True,
        answer=NewHookAnswer,
        status=201,
        errors=(404, 429),
        slow=True,
    ),
    Operation(
        method="DELETE",
        path="/webhooks",
        summary="Tell this one no more",
        handle=_remove,
        asks=HookId,
        answer=HooksAnswer,
        errors=(404,),
        slow=True,
    ),
]
