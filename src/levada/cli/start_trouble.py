"""Did the start addresses lead anywhere? If not, the user hears why and what to do, in one line each."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from shlex import quote

from levada.assemble.folder import DataFolder
from levada.assemble.reading import open_collection
from levada.cli.logs import tell
from levada.cli.printing import shortened
from levada.errors import LevadaError, Refused, UsageError
from levada.reasons import Reason
from levada.records import Found, PageRecord, PageState

__all__ = ["tell_trouble"]

_TOLD = 3  # lines, where other start addresses did better
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
    Reason.BYTES: "it is larger than fetch.max_bytes",
    Reason.DECODED_BYTES: "it is larger than fetch.max_decoded_bytes",
    Reason.HTTP_4XX: "the site does not give it to us",
    Reason.HTTP_5XX: "the site is out of order: run the same command again later",
}


def tell_trouble(folder: DataFolder, start: Sequence[Found]) -> None:
    """Raise the error of start addresses that all failed; of some that did, print a line each and go on."""
    with open_collection(folder) as collection:
        known = [page for each in start if (page := collection.store.page(each.url)) is not None]
        standing = collection.store.standing(collection.clock.now())
    if not standing.known:
        raise UsageError(f"no page is known in {folder.path}: where to start? levada crawl https://example.org")
    troubled = [page for page in known if page.state in _TROUBLED]
    if known and len(troubled) == len(known):
        raise _error(folder, troubled)
    if known and not standing.stored and all(page.visits for page in known):
        more = _says_more(folder, known[0])
        raise LevadaError(f"the start addresses lead on, but nothing could be stored: {more}")
    for page in troubled[:_TOLD]:
        tell(_sentence(folder, page), logging.WARNING)
    if len(troubled) > _TOLD:
        tell(f"and {len(troubled) - _TOLD} more of the start addresses", logging.WARNING)


def _error(folder: DataFolder, troubled: list[PageRecord]) -> LevadaError:
    others = len(troubled) - 1
    more = f" (and {others} more of the start addresses)" if others else ""
    kind = LevadaError if any(page.state is PageState.FAILED for page in troubled) else Refused
    return kind(_sentence(folder, troubled[0]) + more)


def _sentence(folder: DataFolder, page: PageRecord) -> str:
    advice = _ADVICE.get(page.reason) if page.reason else None
    known = f"nothing is stored of {shortened(page.url, 200)} ({page.reason})"
    return f"{known}: {advice or _says_more(folder, page)}"


def _says_more(folder: DataFolder, page: PageRecord) -> str:
    """A command that can be typed as it stands."""
    return f"levada why {quote(page.url)} --data {quote(str(folder.path))} says more"
