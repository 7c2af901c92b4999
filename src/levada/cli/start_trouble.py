"""Did the start addresses lead anywhere? If not, the user hears why and what to do, in one line each."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from levada.assemble.folder import DataFolder
from levada.assemble.reading import Collection, open_collection
from levada.cli.logs import tell
from levada.cli.printing import command_for, shortened
from levada.errors import LevadaError, Refused, UsageError
from levada.reasons import Reason
from levada.records import Found, PageRecord, PageState
from levada.telling.refused import refusal_words

__all__ = ["tell_trouble"]

_TOLD = 3  # lines, where other start addresses did better
_MOST_HOPS = 50  # that are followed from a start address: in a circle there is no end
_TROUBLED = (PageState.FAILED, PageState.REFUSED, PageState.GONE, PageState.QUARANTINED)
_ADVICE = {
    Reason.DNS: "its name cannot be resolved: check the spelling and your network",
    Reason.CONNECT: "nobody answers there: check the address, its port and your network",
    Reason.TLS: "its certificate is not valid: for an authority of your own set fetch.ca_file",
    Reason.PROTOCOL: "what answers there does not speak HTTP: check the address and its port",
    Reason.ADDRESS: 'it is not a public address: for a site of your own put "ip:port" into guard.allow',
    Reason.ROBOTS: "its robots.txt does not allow it: ask the site's owner",
    Reason.ROBOTS_UNREACHABLE: "its robots.txt cannot be read: run the same command again later",
    Reason.GONE: "there is no such page: check the spelling",
    Reason.REDIRECTS: "it leads in a circle, or on and on (crawl.max_redirects)",
    Reason.BYTES: "it is larger than fetch.max_bytes",
    Reason.DECODED_BYTES: "it is larger than fetch.max_decoded_bytes",
    Reason.HTTP_4XX: "the site does not give it to us",
    Reason.HTTP_5XX: "the site is out of order: run the same command again later",
}


class _Trouble(msgspec.Struct, frozen=True):
    """Why nothing is stored of a start address."""

    start: str
    end: str  # where it led to at last: itself, if nowhere
    reason: Reason | None
    advice: str
    may_pass: bool = False


def tell_trouble(folder: DataFolder, start: Sequence[Found]) -> None:
    """Raise the error of start addresses that all failed; of some that did, print a line each and go on."""
    with open_collection(folder) as collection:
        known = [page for each in start if (page := collection.store.page(each.url)) is not None]
        standing = collection.store.standing(collection.clock.now())
        troubles = [trouble for page in known if (trouble := _trouble(collection, page)) is not None]
    if not standing.known:
        raise UsageError(f"no page is known in {folder.path}: where to start? levada crawl https://example.org")
    if known and len(troubles) == len(known):
        raise _error(troubles)
    if known and not standing.stored and all(page.visits for page in known):
        more = _says_more(folder, known[0].url)
        raise LevadaError(f"the start addresses lead on, but nothing could be stored: {more}")
    for trouble in troubles[:_TOLD]:
        tell(_sentence(trouble), logging.WARNING)
    if len(troubles) > _TOLD:
        tell(f"and {len(troubles) - _TOLD} more of the start addresses", logging.WARNING)


def _trouble(collection: Collection, start: PageRecord) -> _Trouble | None:
    """None if a page was met where the address leads to, or may still be."""
    page = start
    for _ in range(_MOST_HOPS):
        if page.leads_to is None:
            return _trouble_at(collection, start, page)
        following = collection.store.page(page.leads_to)
        if following is None:
            kept_out = refusal_words(collection, [page.leads_to])
            advice = kept_out or _says_more(collection.folder, page.url)
            return _Trouble(start.url, page.leads_to, None, advice)
        page = following
    return _Trouble(start.url, start.url, Reason.REDIRECTS, _ADVICE[Reason.REDIRECTS])


def _trouble_at(collection: Collection, start: PageRecord, end: PageRecord) -> _Trouble | None:
    if end.state not in _TROUBLED:
        return None
    advice = _ADVICE.get(end.reason) if end.reason else None
    may_pass = end.state is PageState.FAILED
    return _Trouble(start.url, end.url, end.reason, advice or _says_more(collection.folder, end.url), may_pass)


def _error(troubles: list[_Trouble]) -> LevadaError:
    others = len(troubles) - 1
    more = f" (and {others} more of the start addresses)" if others else ""
    kind = LevadaError if any(trouble.may_pass for trouble in troubles) else Refused
    return kind(_sentence(troubles[0]) + more)


def _sentence(trouble: _Trouble) -> str:
    leads = "" if trouble.end == trouble.start else f", which leads to {shortened(trouble.end, 200)}"
    because = f" ({trouble.reason})" if trouble.reason else ""
    return f"nothing is stored of {shortened(trouble.start, 200)}{leads}{because}: {trouble.advice}"


def _says_more(folder: DataFolder, url: str) -> str:
    return f"{command_for('why', url, folder.path)} says more"
